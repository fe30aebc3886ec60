"""Parses only those functions of a Python file whose text matches: `ast` costs nine times the search that finds them.

A file is cut at the lines that begin in the first column, a class once more at its methods. The cuts are made without a
tokenizer, so a piece may end inside of a string that spans lines; such a piece has an odd number of triple quotes, does
not parse, and the whole file is parsed instead.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.model.spans import SourceFile

_TOP = re.compile(rb"(?m)^[A-Za-z_@]")
_WORD = re.compile(rb"@|[A-Za-z_]+")
_CLASS = re.compile(rb"(?m)^class\s+(\w+)[^\n]*")
_METHOD = re.compile(rb"(?m)^([ \t]+)(?:@|async[ \t]+def\b|def\b|class\b)")
_IMPORT = re.compile(rb"(?m)^(?:from\s+\S+\s+import\s+(?:\([^)]*\)|[^\n(]+)|import\s+[^\n]+)")
_CONTINUES = frozenset({b"else", b"elif", b"except", b"finally"})
_COMPOUND = frozenset({b"def", b"async", b"if", b"try", b"with", b"for", b"while", b"match"})
_SMALL_FILE = 3000  # bytes; cutting it up costs as much as parsing it


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a file: where it begins and ends in bytes, and the class around it."""

    start: int
    end: int
    owner: str = ""


def matching_parts(source: SourceFile, patterns: Sequence[re.Pattern[bytes]]) -> ast.Module | None:
    """A module with the functions that match one of the patterns, each in its class, and the imports. `None` where the
    file has to be parsed whole."""
    data = source.text.encode("utf-8", "surrogatepass")
    if len(data) < _SMALL_FILE or b"\r" in data or b"\f" in data:
        return None
    body: list[ast.stmt] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body.extend(_imports([match.group(0) for match in _IMPORT.finditer(data)]))
            line, at = 1, 0
            for piece in _pieces(data, patterns):
                line += data.count(b"\n", at, piece.start)
                at = piece.start
                body.extend(_parse(data[piece.start : piece.end], line, piece.owner))
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


def _pieces(data: bytes, patterns: Sequence[re.Pattern[bytes]]) -> Iterator[_Piece]:
    starts = [match.start() for match in _TOP.finditer(data)]
    blocks: list[tuple[int, bytes]] = []
    decorated = False
    for start in starts:
        found = _WORD.match(data, start)
        word = found.group(0) if found is not None else b""
        if word in _CONTINUES and blocks:
            continue
        if decorated:
            blocks[-1] = (blocks[-1][0], word if word != b"@" else blocks[-1][1])
            decorated = word == b"@"
            continue
        blocks.append((start, word))
        decorated = word == b"@"
    for (start, word), end in zip(blocks, [*(start for start, _ in blocks[1:]), len(data)], strict=True):
        if word not in _COMPOUND and word != b"class":
            continue
        if not any(pattern.search(data, start, end) for pattern in patterns):
            continue
        if word == b"class":
            yield from _methods(data, start, end, patterns)
        else:
            yield _Piece(start, end)


def _methods(data: bytes, start: int, end: int, patterns: Sequence[re.Pattern[bytes]]) -> Iterator[_Piece]:
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
            starts.append(match.start())
        decorated = data[match.end() - 1 : match.end()] == b"@"
    for first, last in zip(starts, [*starts[1:], end], strict=True):
        if any(pattern.search(data, first, last) for pattern in patterns):
            yield _Piece(first, last, header.group(1).decode("utf-8", "replace"))
