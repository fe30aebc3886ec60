"""Source files on their way to the code checks: parsed as little as will do, in worker processes on big trees."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from auditor.checks.code_shapes import Shape, class_shape
from auditor.errors import ReadError
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import CodeTree, Mentioning, parse

if TYPE_CHECKING:
    from auditor.cache import FactCache
    from auditor.syntax.python_parts import PythonParts

TOO_DEEP = "nested too deeply for the code rules"
SEARCHED_BYTES, PARSED_BYTES = 400_000_000, 8_000_000  # below these a second process costs more than it saves
SHARES = 8  # of each process: what there is to find stands close together in a tree

Wanted = Callable[..., bool]  # of the bytes of a file, and from where to where
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def few_collections() -> Iterator[None]:
    """Nodes of syntax trees are made by the million, and the search for cycles among them finds next to nothing."""
    before = gc.get_threshold()
    gc.freeze()  # a worker process then never touches, and so copies, what it was born with
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@dataclass(slots=True)
class Reading:
    """One file while it is looked at: its tree, made once, and what could not be read."""

    module: CodeModule
    problems: list[Problem] = field(default_factory=list)
    _tree: CodeTree | None = None
    _tried: bool = False
    _parts: PythonParts | None = None
    _classes: dict[frozenset[str], CodeTree | None] = field(default_factory=dict)
    _mentioning: dict[tuple[Wanted, frozenset[str]], CodeTree | None] = field(default_factory=dict)

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
        found = self._cut().functions(wanted)
        return self.tree() if found is None else self._of(found, partial(self._with_mentioning, wanted))

    def _with_mentioning(self, wanted: Wanted, texts: frozenset[str]) -> CodeTree | None:
        """The functions that are wanted, and those that hold one of the texts."""
        if (wanted, texts) not in self._mentioning:
            sought = [text.encode() for text in texts]
            self._mentioning[wanted, texts] = self.part(
                lambda data, start, end: (
                    any(data.find(text, start, end) >= 0 for text in sought) or wanted(data, start, end)
                )
            )
        return self._mentioning[wanted, texts]

    def classes(self, wanted: Wanted) -> CodeTree | None:
        """The classes that are wanted, whole, with those of the file that they inherit from."""
        if self._tried or self.module.language != "python":
            return self.tree()
        found = self._cut().classes(wanted)
        return self.tree() if found is None else self._of(found)

    def _cut(self) -> PythonParts:
        if self._parts is None:
            from auditor.syntax.python_parts import PythonParts

            self._parts = PythonParts(self.module.source)
        return self._parts

    def _of(self, module: ast.Module, mentioning: Mentioning | None = None) -> CodeTree:
        return CodeTree(self.module.source, module, "python", self.tree, self._named, mentioning)

    def _named(self, names: frozenset[str]) -> CodeTree | None:
        if names not in self._classes:
            self._classes[names] = self.classes(class_shape(names).holds)
        return self._classes[names]

    def broke(self, what: str, error: Exception) -> None:
        """Note a bug of ours in one file, which never costs the findings of the others."""
        reason = f"{what} failed: {type(error).__name__}: {error}"
        self.problems.append(Problem(self.module.source.path, reason, "internal"))

    def too_deep(self) -> None:
        """Note that the file nests beyond what a check can follow."""
        self.problems.append(Problem(self.module.source.path, TOO_DEEP, "limit"))


def holds(shape: Shape | None, module: CodeModule) -> bool:
    """Whether a file may be of interest. The shapes are for Python, the language of large trees."""
    if shape is None or module.language != "python":
        return True
    return shape.holds_file(module.source)


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work: at most `jobs` processes, and a cache that spares what was done in an earlier run. `kinds` are
    the records that answers are made of, by name."""

    jobs: int = 1
    cache: FactCache | None = None
    kinds: Mapping[str, type] = field(default_factory=dict)

    def each(
        self,
        work: partial[list[Answer]],
        items: Sequence[Item],
        modules: Sequence[CodeModule],
        parsed: bool = False,
        light: bool = False,
    ) -> list[Answer]:
        """`work` over all items, one answer for each, in order. An answer may depend on the module that belongs to the
        item and on the arguments that are bound in `work`, and on nothing else: by them it is cached. `light` work is
        done here: one search over a tree takes no longer than starting processes for it."""
        jobs = 1 if light else self.jobs
        if self.cache is None:
            return spread(work, items, [len(module.source.data) for module in modules], jobs, parsed)
        from auditor.cache import MISSING
        from auditor.packing import digest, pack, unpack

        stage = digest(work.func.__qualname__, work.args)
        answers: list[Any] = []
        left: list[int] = []
        for number, known in enumerate(self.cache.know(stage, [module.source for module in modules])):
            answer = known
            if known is not MISSING:
                try:
                    answer = unpack(known, self.kinds)
                except ValueError:
                    answer = MISSING
            if answer is MISSING:
                left.append(number)
            answers.append(answer)
        sizes = [len(modules[number].source.data) for number in left]
        made = spread(work, [items[number] for number in left], sizes, jobs, parsed)
        packed: Any = None
        before: Any = MISSING
        asked: list[Any] = []
        for number, answer in zip(left, made, strict=True):
            answers[number] = answer
            if before is MISSING or answer != before:  # most files have nothing to tell, one after the other
                packed, before = pack(answer), answer
            asked.append(packed)
        self.cache.learn(stage, [modules[number].source for number in left], asked)
        return answers


def spread(
    work: Callable[[Sequence[Item]], list[Answer]],
    items: Sequence[Item],
    sizes: Sequence[int],
    jobs: int,
    parsed: bool = False,
) -> list[Answer]:
    """`work` over all items, in order; in worker processes where there is enough to search, or to parse. The answer is
    the same."""
    total = sum(sizes)
    if jobs < 2 or len(items) < 2 or total < (PARSED_BYTES if parsed else SEARCHED_BYTES):
        return work(items)
    from concurrent.futures import ProcessPoolExecutor

    shares = _shares(sizes, total / (jobs * SHARES))
    if not _forks():
        with ProcessPoolExecutor(min(jobs, len(shares))) as pool:
            return [answer for part in pool.map(work, [items[share] for share in shares]) for answer in part]
    # A forked worker has the items already: sending a tree of sources costs as much as searching it.
    _inherited.append((work, items))
    try:
        with ProcessPoolExecutor(min(jobs, len(shares))) as pool:
            return [answer for part in pool.map(_work_share, shares) for answer in part]
    finally:
        _inherited.pop()


_inherited: list[tuple[Callable[[Sequence[Any]], list[Any]], Sequence[Any]]] = []


def _work_share(share: slice) -> list[Any]:
    work, items = _inherited[-1]
    return work(items[share])


def _forks() -> bool:
    """Whether worker processes begin as a copy of this one, the rule on Linux; nowhere is it forced."""
    import multiprocessing

    return multiprocessing.get_start_method() == "fork"


def _shares(sizes: Sequence[int], share: float) -> list[slice]:
    """Neighbouring items of about `share` bytes together."""
    found: list[slice] = []
    start, filled = 0, 0
    for number, size in enumerate(sizes):
        if number > start and filled >= share:
            found.append(slice(start, number))
            start, filled = number, 0
        filled += size
    return [*found, slice(start, len(sizes))]
