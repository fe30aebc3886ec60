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

from auditor.model.records import dataclass
from auditor.model.spans import SourceFile

_TOP = re.compile(rb"\n(@|[A-Za-z_]\w*)")  # begins with a literal, which is searched fast
_CLASS = re.compile(rb"(?m)^class\s+(\w+)([^\n]*)")
_METHOD = re.compile(rb"\n([ \t]+)(?:@|async[ \t]+def\b|def\b|class\b)")
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


def matching_functions(source: SourceFile, wanted: Wanted) -> ast.Module | None:
    """A module with the functions that `wanted` says yes to, each in its class, and the imports. `None` where the file
    has to be parsed whole."""
    return _module(source, lambda data, blocks: _functions(data, blocks, wanted))


def matching_classes(source: SourceFile, wanted: Wanted) -> ast.Module | None:
    """A module with the classes that `wanted` says yes to, whole, those of the same file that they inherit from, and
    the imports. `None` where the file has to be parsed whole."""
    return _module(source, lambda data, blocks: _classes(data, blocks, wanted))


def _module(source: SourceFile, pieces: Callable[[bytes, list[_Block]], Iterable[_Piece]]) -> ast.Module | None:
    data = source.text.encode("utf-8", "surrogatepass")
    if len(data) < _SMALL_FILE or b"\r" in data or b"\f" in data:
        return None
    body: list[ast.stmt] = []
    blocks = _blocks(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            line, at = 1, 0
            for piece in pieces(data, blocks):
                line += data.count(b"\n", at, piece.start)
                at = piece.start
                body.extend(_parse(data[piece.start : piece.end], line, piece.owner))
            if body:
                body[:0] = _imports([data[start:end] for start, end, word in blocks if word in _IMPORTS])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return ast.Module(body, [])


def _imports(lines: list[bytes]) -> list[ast.stmt]:
    try:
        return ast.parse(b"\n".join(lines).decode("utf-8", "replace")).body
    except SyntaxError:  # a line of prose that begins with "from": leave that one out
        return [] if len(lines) < 2 else [node for line in lines for node in _imports([line])]


def _parse(piece: bytes, line: int, owner: str) -> list[ast.stmt]:
    text = piece.decode("utf-8", "surrogatepass")
    if not owner:
        return ast.parse("\n" * (line - 1) + text).body
    made = ast.parse("\n" * (line - 2) + f"class {owner}:\n" + text).body
    for node in made:
        node.partial = True  # type: ignore[attr-defined]
    return made


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


def _methods(data: bytes, start: int, end: int, wanted: Wanted) -> Iterator[_Piece]:
    header = _CLASS.search(data, start, end)
    if header is None:
        yield _Piece(start, end)
        return
    indent: bytes | None = None
    starts: list[int] = []
    decorated = False
    for match in _METHOD.finditer(data, header.end(), end):
        if indent is None:
            indent = match.group(1)
        if match.group(1) != indent:
            continue
        if not decorated:
            starts.append(match.start(1))
        decorated = data[match.end() - 1 : match.end()] == b"@"
    for first, last in zip(starts, [*starts[1:], end], strict=True):
        if wanted(data, first, last):
            yield _Piece(first, last, header.group(1).decode("utf-8", "replace"))
