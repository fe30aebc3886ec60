"""Where a piece of text stands: positions, spans, and the file that they point into."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import TYPE_CHECKING

from auditor.model.records import dataclass

if TYPE_CHECKING:
    import re


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """One place in a file: `offset` from 0, `line` and `column` from 1; all count characters, not bytes."""

    offset: int
    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open piece of one file: `end` is one past the last character; `path` is relative to the root, with `/`."""

    path: str
    start: Position
    end: Position


class SourceFile:
    """One decoded file. Line and column of an offset are derived here and nowhere else.

    `text` has no byte-order mark; `data` are the bytes as they stand on disk. A line ends at LF, CRLF or a lone CR,
    which is how editors and code-scanning viewers count.
    """

    __slots__ = ("_digest", "_found", "_starts", "data", "encoding", "path", "text")

    def __init__(self, path: str, text: str, data: bytes | None = None, encoding: str = "utf-8") -> None:
        self.path = path
        self.text = text
        self.data = text.encode("utf-8", "surrogatepass") if data is None else data
        self.encoding = encoding
        self._starts: list[int] | None = None
        self._digest: str | None = None
        self._found: dict[bytes, frozenset[bytes]] = {}

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hex; what caches are keyed by."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.data).hexdigest()
        return self._digest

    def found(self, pattern: re.Pattern[bytes]) -> frozenset[bytes]:
        """What the one group of a pattern holds wherever it matches in the bytes; searched for once."""
        known = self._found.get(pattern.pattern)  # a pattern itself is hashed anew at every use
        if known is None:
            known = self._found[pattern.pattern] = frozenset(pattern.findall(self.data))
        return known

    @property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line; the first entry is 0."""
        if self._starts is None:
            starts = [0]
            text = self.text
            if "\r" in text:
                index, length = 0, len(text)
                while index < length:
                    char = text[index]
                    if char == "\n" or (char == "\r" and text[index + 1 : index + 2] != "\n"):
                        starts.append(index + 1)
                    index += 1
            else:
                index = text.find("\n")
                while index != -1:
                    starts.append(index + 1)
                    index = text.find("\n", index + 1)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> Position:
        """The position of a character offset; an offset outside of the text is moved to its nearest end."""
        offset = min(max(offset, 0), len(self.text))
        starts = self.line_starts
        line = bisect_right(starts, offset)
        return Position(offset, line, offset - starts[line - 1] + 1)

    def offset(self, line: int, column: int) -> int:
        """The character offset of a line and column, both from 1; the reverse of `position`."""
        starts = self.line_starts
        if line > len(starts):
            return len(self.text)
        return min(starts[max(line, 1) - 1] + max(column, 1) - 1, len(self.text))

    def span(self, start: int, end: int) -> Span:
        """The span between two character offsets."""
        return Span(self.path, self.position(start), self.position(end))

    def slice(self, span: Span) -> str:
        """The text that a span covers."""
        return self.text[span.start.offset : span.end.offset]

    def line_text(self, line: int) -> str:
        """The text of one line, from 1, without its line end; empty past the end of the file."""
        starts = self.line_starts
        if not 1 <= line <= len(starts):
            return ""
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")

    def utf16_column(self, position: Position) -> int:
        """The column of a position in UTF-16 code units, from 1: the unit of SARIF's `utf16CodeUnits`."""
        start = self.line_starts[position.line - 1]
        return len(self.text[start : position.offset].encode("utf-16-le", "surrogatepass")) // 2 + 1
