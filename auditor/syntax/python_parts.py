"""Parses only those functions of a Python file whose text matches: `ast` costs nine times the search that finds them.

A file is cut at the lines that begin in the first column, a class once more at its methods. The cuts are made without a
tokenizer, so a piece may end inside of a string that spans lines; such a piece has an odd number of triple quotes, does
not parse, and the whole file is parsed instead.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from auditor.model.records import dataclass
from auditor.model.spans import SourceFile

_TOP = re.compile(rb"\n(@|[A-Za-z_]\w*)")  # begins with a literal, which is searched fast
_CLASS = re.compile(rb"(?m)^class\s+(\w+)([^\n]*)")
_METHOD_BEGINS = rb"(?:@|async[ \t]+def\b|def\b|class\b)"
_METHOD = re.compile(rb"\n([ \t]+)" + _METHOD_BEGINS)
_CONTINUES = frozenset({b"else", b"elif", b"except", b"finally"})
_IMPORTS = frozenset({b"from", b"import"})
_COMPOUND = frozenset({b"def", b"async", b"if", b"try", b"with", b"for", b"while", b"match"})
_SMALL_FILE = 3000  # bytes; cutting it up costs as much as parsing it


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a file: where it begins and ends in bytes, and the class around it."""

    start: int
    end: int
    owner: str = ""


_Block = tuple[int, int, bytes]  # from, to, and the word that it begins with
Wanted = Callable[[bytes, int, int], bool]


class PythonParts:
    """One file, cut up; each piece of it is parsed at most once, whoever asks for it."""

    def __init__(self, source: SourceFile) -> None:
        text = source.text
        same = text.isascii() and len(text) == len(source.data)  # the common case, in which the bytes are at hand
        data = self._data = source.data if same else text.encode("utf-8", "surrogatepass")
        self._blocks = _blocks(data) if len(data) >= _SMALL_FILE and b"\r" not in data and b"\f" not in data else None
        self._known: dict[_Piece, list[ast.stmt]] = {}
        self._imports: list[ast.stmt] | None = None
        self._line, self._at = 1, 0

    def functions(self, wanted: Wanted) -> ast.Module | None:
        """A module with the functions that `wanted` says yes to, each in its class, and the imports. `None` where the
        file has to be parsed whole."""
        return self._module(lambda blocks: _functions(self._data, blocks, wanted))

    def classes(self, wanted: Wanted) -> ast.Module | None:
        """A module with the classes that `wanted` says yes to, whole, those of the same file that they inherit from,
        and the imports. `None` where the file has to be parsed whole."""
        return self._module(lambda blocks: _classes(self._data, blocks, wanted))

    def _module(self, pieces: Callable[[list[_Block]], Iterable[_Piece]]) -> ast.Module | None:
        if self._blocks is None:
            return None
        body: list[ast.stmt] = []
        owner: ast.ClassDef | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for piece in pieces(self._blocks):
                    made = self._parsed(piece)
                    if not (piece.owner and made):
                        body.extend(made)
                        continue
                    if owner is None or owner is not body[-1] or owner.name != piece.owner:
                        owner = _part_of_class(piece.owner, made)
                        body.append(owner)
                    owner.body.extend(made)
                if body:
                    body[:0] = self._imported()
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return ast.Module(body, [])

    def _parsed(self, piece: _Piece) -> list[ast.stmt]:
        known = self._known.get(piece)
        if known is None:
            if piece.start < self._at:
                self._line, self._at = 1, 0
            self._line += self._data.count(b"\n", self._at, piece.start)
            self._at = piece.start
            known = _parse(self._data[piece.start : piece.end], self._line, piece.owner)
            self._known[piece] = known
        return known

    def _imported(self) -> list[ast.stmt]:
        if self._imports is None:
            lines = [self._data[start:end] for start, end, word in self._blocks or () if word in _IMPORTS]
            self._imports = _imports(lines)
        return self._imports


def _part_of_class(name: str, methods: list[ast.stmt]) -> ast.ClassDef:
    made = ast.ClassDef(name=name, bases=[], keywords=[], body=[], decorator_list=[])
    made.lineno, made.col_offset = max(1, methods[0].lineno - 1), 0
    made.partial = True  # type: ignore[attr-defined]
    return made


def _imports(lines: list[bytes]) -> list[ast.stmt]:
    try:
        return ast.parse(b"\n".join(lines).decode("utf-8", "replace")).body
    except SyntaxError:  # a line of prose that begins with "from": leave that one out
        return [] if len(lines) < 2 else [node for line in lines for node in _imports([line])]


def _parse(piece: bytes, line: int, owner: str) -> list[ast.stmt]:
    """The statements of a piece that begins on this line; those inside of its class for one that has an owner."""
    text = piece.decode("utf-8", "surrogatepass")
    if not owner:
        return ast.parse("\n" * (line - 1) + text).body
    return [
        node
        for made in ast.parse("\n" * (line - 2) + f"class {owner}:\n" + text).body
        for node in (made.body if isinstance(made, ast.ClassDef) else ())
    ]


def _functions(data: bytes, blocks: list[_Block], wanted: Wanted) -> Iterator[_Piece]:
    for start, end, word in blocks:
        if (word not in _COMPOUND and word != b"class") or not wanted(data, start, end):
            continue
        if word == b"class":
            yield from _methods(data, start, end, wanted)
        else:
            yield _Piece(start, end)


def _classes(data: bytes, blocks: list[_Block], wanted: Wanted) -> Iterator[_Piece]:
    compound = [(start, end) for start, end, word in blocks if word == b"class" or word in _COMPOUND]
    headers = [_CLASS.search(data, start, end) for start, end in compound]
    chosen = {number for number, (start, end) in enumerate(compound) if wanted(data, start, end)}
    grown = True
    while grown:
        bases = {
            word
            for number in chosen
            if (header := headers[number]) is not None
            for word in re.findall(rb"\w+", header.group(2))
        }
        more = {number for number, header in enumerate(headers) if header is not None and header.group(1) in bases}
        grown = not more <= chosen
        chosen |= more
    for number in sorted(chosen):
        yield _Piece(*compound[number])


def _blocks(data: bytes) -> list[_Block]:
    """The statements that begin in the first column."""
    blocks: list[tuple[int, bytes]] = []
    decorated = False
    first = re.match(rb"@|[A-Za-z_]\w*", data)
    found = [(match.start(1), match.group(1)) for match in _TOP.finditer(data)]
    for start, word in [(0, first.group()), *found] if first is not None else found:
        if decorated:
            blocks[-1] = (blocks[-1][0], word if word != b"@" else blocks[-1][1])
            decorated = word == b"@"
        elif word not in _CONTINUES or not blocks:
            blocks.append((start, word))
            decorated = word == b"@"
    ends = [*(start for start, _ in blocks[1:]), len(data)] if blocks else []
    return [(start, end, word) for (start, word), end in zip(blocks, ends, strict=True)]


@lru_cache(maxsize=16)
def _method_at(indent: bytes) -> re.Pattern[bytes]:
    """Where a method begins that stands in by so much: a literal, which is searched fast."""
    return re.compile(rb"\n" + indent + rb"(?=[@adc])" + _METHOD_BEGINS)


def _methods(data: bytes, start: int, end: int, wanted: Wanted) -> Iterator[_Piece]:
    header = _CLASS.search(data, start, end)
    if header is None:
        yield _Piece(start, end)
        return
    starts: list[int] = []
    decorated = False
    first = _METHOD.search(data, header.end(), end)
    for match in _method_at(first.group(1)).finditer(data, first.start(), end) if first is not None else ():
        if not decorated:
            starts.append(match.start() + 1)
        decorated = data[match.end() - 1 : match.end()] == b"@"
    for begin, last in zip(starts, [*starts[1:], end], strict=True):
        if wanted(data, begin, last):
            yield _Piece(begin, last, header.group(1).decode("utf-8", "replace"))
