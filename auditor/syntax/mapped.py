"""Text taken out of a file (a block scalar, a quoted string, a RUN line) that knows where each character stood."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Mapped:
    """`text[i]` stands at the character offset `offsets[i]` of the file; `offsets` has one entry more than `text`,
    the offset just past the last character. Offsets never decrease, but may skip (indentation, escapes, quotes)."""

    text: str
    offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.text)

    def piece(self, start: int, end: int) -> Mapped:
        """The part between two indexes of `text`."""
        if start >= end:
            return Mapped("", (self.offsets[start],))
        stop = self.offsets[end - 1] + 1
        return Mapped(self.text[start:end], (*self.offsets[start:end], stop))

    def span(self, source: SourceFile, start: int, end: int) -> Span:
        """The span of the file from `text[start]` to just past `text[end - 1]`."""
        first = self.offsets[start]
        last = self.offsets[end - 1] + 1 if end > start else first
        return source.span(first, last)


def piece_of(source: SourceFile, start: int = 0, end: int | None = None) -> Mapped:
    """The characters of a file between two offsets, as they stand."""
    end = len(source.text) if end is None else end
    return Mapped(source.text[start:end], range(start, end + 1))


def join(parts: Sequence[Mapped], between: str = "") -> Mapped:
    """Several pieces after each other; the characters of `between` stand at the end of the piece before them."""
    text: list[str] = []
    offsets: list[int] = []
    last = 0
    for index, part in enumerate(parts):
        if index and between:
            text.append(between)
            offsets.extend([last] * len(between))
        text.append(part.text)
        offsets.extend(part.offsets[: len(part.text)])
        last = part.offsets[len(part.text)] if part.offsets else last
    offsets.append(last)
    return Mapped("".join(text), offsets)
