"""Source files on their way to the code checks: parsed as little as will do, in worker processes on big trees."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from auditor.checks.code_shapes import Shape, class_shape
from auditor.errors import ReadError
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import CodeTree, parse

TOO_DEEP = "nested too deeply for the code rules"
PARALLEL_BYTES = 2_000_000  # of source to parse; below it a second process costs more than it saves

Wanted = Callable[..., bool]  # of the bytes of a file, and from where to where
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Reading:
    """One file while it is looked at: its tree, made once, and what could not be read."""

    module: CodeModule
    problems: list[Problem] = field(default_factory=list)
    _tree: CodeTree | None = None
    _tried: bool = False
    _classes: dict[frozenset[str], CodeTree | None] = field(default_factory=dict)

    def tree(self) -> CodeTree | None:
        """The whole file; `None` where it cannot be parsed, which is a problem of the file then."""
        if not self._tried:
            self._tried = True
            source, error = self.module.source, None
            try:
                self._tree = parse(source, self.module.language)
                error = self._tree.gap
            except ReadError as failure:
                error = failure
            if error is not None:
                span = source.span(error.offset, error.offset) if error.offset is not None else None
                kind: Literal["unread", "limit"] = "limit" if error.limit else "unread"
                self.problems.append(Problem(source.path, error.reason, kind, span))
        return self._tree

    def part(self, wanted: Wanted | None) -> CodeTree | None:
        """The functions that are wanted; the whole file where that is parsed already, or cannot be cut up."""
        if wanted is None or self._tried or self.module.language != "python":
            return self.tree()
        from auditor.syntax.python_parts import matching_functions

        found = matching_functions(self.module.source, wanted)
        return self.tree() if found is None else self._of(found)

    def classes(self, wanted: Wanted) -> CodeTree | None:
        """The classes that are wanted, whole, with those of the file that they inherit from."""
        if self._tried or self.module.language != "python":
            return self.tree()
        from auditor.syntax.python_parts import matching_classes

        found = matching_classes(self.module.source, wanted)
        return self.tree() if found is None else self._of(found)

    def _of(self, module: ast.Module) -> CodeTree:
        return CodeTree(self.module.source, module, "python", self.tree, self._named)

    def _named(self, names: frozenset[str]) -> CodeTree | None:
        if names not in self._classes:
            self._classes[names] = self.classes(class_shape(names).holds)
        return self._classes[names]

    def too_deep(self) -> None:
        """Note that the file nests beyond what a check can follow."""
        self.problems.append(Problem(self.module.source.path, TOO_DEEP, "limit"))


def holds(shape: Shape | None, module: CodeModule) -> bool:
    """Whether a file may be of interest. The shapes are for Python, the language of large trees."""
    if shape is None or module.language != "python":
        return True
    return shape.holds_file(module.source.path, module.source.data)


def spread(
    work: Callable[[Sequence[Item]], list[Answer]], items: Sequence[Item], sizes: Sequence[int], jobs: int
) -> list[Answer]:
    """`work` over all items, in order; in worker processes where there is enough of them. The answer is the same."""
    total = sum(sizes)
    if jobs < 2 or len(items) < 2 or total < PARALLEL_BYTES:
        return work(items)
    from concurrent.futures import ProcessPoolExecutor

    chunks: list[list[Item]] = [[]]
    filled, share = 0, total / (jobs * 4)
    for item, size in zip(items, sizes, strict=True):
        if chunks[-1] and filled >= share:
            chunks.append([])
            filled = 0
        chunks[-1].append(item)
        filled += size
    with ProcessPoolExecutor(min(jobs, len(chunks))) as pool:
        return [answer for part in pool.map(work, chunks) for answer in part]
