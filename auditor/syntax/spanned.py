"""A value of a TOML or JSON document with the place where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped


class Spanned:
    """One value. `start` and `end` enclose it as written, of a string what is between the quotes. `offsets` is the
    place of each character of a string with escapes, or a function that finds them when they are asked for; `None`
    where the characters stand as they are. `key` is the offset of the key that the value belongs to, -1 for items and
    for the document."""

    __slots__ = ("_offsets", "end", "key", "start", "value")

    def __init__(
        self,
        value: str | int | float | bool | list[Spanned] | dict[str, Spanned] | None,
        start: int,
        end: int,
        offsets: Sequence[int] | Callable[[], Sequence[int]] | None = None,
        key: int = -1,
    ) -> None:
        self.value, self.start, self.end, self.key = value, start, end, key
        self._offsets = offsets

    @property
    def text(self) -> str | None:
        """The string, `None` for another kind of value."""
        return self.value if isinstance(self.value, str) else None

    @property
    def items(self) -> list[Spanned]:
        """The items of a list, nothing for another kind of value."""
        return self.value if isinstance(self.value, list) else []

    @property
    def pairs(self) -> dict[str, Spanned]:
        """The entries of a table, nothing for another kind of value."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, *path: str) -> Spanned | None:
        """The value below a path of keys."""
        node: Spanned | None = self
        for key in path:
            node = node.pairs.get(key) if node is not None else None
        return node

    def table(self, *path: str) -> dict[str, Spanned]:
        """The entries of the table below a path of keys; nothing where there is none."""
        node = self.get(*path)
        return node.pairs if node is not None else {}

    def list(self, *path: str) -> list[Spanned]:
        """The items of the list below a path of keys; nothing where there is none."""
        node = self.get(*path)
        return node.items if node is not None else []

    def word(self, *path: str) -> str | None:
        """The string below a path of keys."""
        node = self.get(*path)
        return node.text if node is not None else None

    @property
    def mapped(self) -> Mapped:
        """A string with the place of each of its characters; of another value nothing."""
        text = self.value if isinstance(self.value, str) else ""
        if callable(self._offsets):
            self._offsets = self._offsets()
            if text:
                self.start, self.end = self._offsets[0], self._offsets[len(text) - 1] + 1
        places = self._offsets if self._offsets is not None else range(self.start, self.start + len(text) + 1)
        return Mapped(text, places)

    def span(self, source: SourceFile) -> Span:
        """The place of the value in its file."""
        if callable(self._offsets):
            _ = self.mapped
        return source.span(self.start, self.end)

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Spanned]]:
        """Every value below, with its path; items of a list have the path of the list. In document order. A value that
        is shared (a YAML anchor) is given once."""
        seen: set[int] = set()
        stack: list[tuple[tuple[str, ...], Spanned]] = [(path, self)]
        while stack:
            here, node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield here, node
            if isinstance(node.value, dict):
                stack.extend(((*here, key), node.value[key]) for key in reversed(node.value))
            elif isinstance(node.value, list):
                stack.extend((here, item) for item in reversed(node.value))

    def plain(self) -> object:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value
