"""String literals of Python source: their text with the place of each character, f-strings with their holes.

Positions of the parts of an f-string are exact in the `ast` of Python 3.12 and later only; so literals are read here
from their own text, which gives the same answer on every version.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TypeGuard

from auditor.model.facts import Hole, Unresolved, Value
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.words import Word

_LITERAL = re.compile(r"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0", "a": "\a", "b": "\b", "f": "\f"}

Resolver = Callable[[str], Hole]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters with their offsets, or (`expression`) the source of one f-string hole."""

    text: str
    offsets: tuple[int, ...]
    expression: bool = False


class Offsets:
    """Character offsets of `ast` nodes, whose columns count UTF-8 bytes."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._plain = source.text.isascii()

    def of(self, line: int, column: int) -> int:
        """The character offset of a line from 1 and a byte column from 0."""
        starts = self.source.line_starts
        if line > len(starts):
            return len(self.source.text)
        start = starts[line - 1]
        if self._plain:
            return start + column
        text = self.source.line_text(line).encode("utf-8", "surrogatepass")[:column]
        return start + len(text.decode("utf-8", "replace"))

    def ends(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        return self.of(line, column), self.of(end_line, end_column)

    def span(self, node: ast.AST) -> Span:
        """The span of a node."""
        return self.source.span(*self.ends(node))


TextNode = ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call


def is_text(node: ast.AST) -> TypeGuard[TextNode]:
    """Whether the node is a string: a literal, an f-string, or a literal behind which `%` or `.format` fills holes."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and is_text(node.left)
    if isinstance(node, ast.Call):
        function = node.func
        return (
            isinstance(function, ast.Attribute)
            and function.attr == "format"
            and isinstance(function.value, ast.Constant)
            and is_text(function.value)
        )
    return isinstance(node, ast.JoinedStr)


def pieces_of(node: ast.AST, offsets: Offsets) -> list[Piece]:
    """The literal text and the holes of a string node, implicit concatenation included."""
    if isinstance(node, ast.BinOp):
        return _filled(_pieces(node.left, offsets), _PERCENT, _percent_arguments(node.right), offsets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _filled(_pieces(node.func.value, offsets), _BRACES, _format_arguments(node), offsets)
    return _pieces(node, offsets)


# A conversion of `%`, or a doubled sign; a replacement field of `str.format`, or a doubled brace.
_PERCENT = re.compile(r"%(?:(?P<double>%)|(?:\((?P<name>\w+)\))?[#0\- +]*\d*(?:\.\d+)?[sdifrxgu])")
_BRACES = re.compile(r"(?P<double>\{\{|\}\})|\{(?P<name>\w*)[^{}]*\}")


def _percent_arguments(node: ast.expr) -> dict[str, ast.expr]:
    """What stands behind `%`: by number, or by name."""
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return {str(key): value for key, value in zip(keys, node.values, strict=True) if key is not None}
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    return {str(number): item for number, item in enumerate(items)}


def _format_arguments(call: ast.Call) -> dict[str, ast.expr]:
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return {**{str(number): item for number, item in enumerate(call.args)}, **named}


def _filled(
    pieces: list[Piece], fields: re.Pattern[str], arguments: dict[str, ast.expr], offsets: Offsets
) -> list[Piece]:
    """The pieces with each field replaced: by the text of a literal, or by a hole for the expression. A field without
    an argument is a hole of its own name: its value is not to be seen here."""
    found: list[Piece] = []
    turn = 0
    for piece in pieces:
        at = 0
        for field in fields.finditer(piece.text):
            found.append(Piece(piece.text[at : field.start()], piece.offsets[at : field.start()]))
            at = field.end()
            places = piece.offsets[field.start() : at]
            if field["double"]:
                found.append(Piece(field["double"][:1], places[:1]))
                continue
            name = field["name"] or str(turn)
            turn += not field["name"]
            argument = arguments.get(name)
            if isinstance(argument, ast.Constant):
                text = str(argument.value)
                found.append(Piece(text, tuple(min(places[0] + n, places[-1]) for n in range(len(text)))))
            else:
                text = offsets.source.text[slice(*offsets.ends(argument))] if argument is not None else name
                found.append(Piece(text, places, expression=True))
        found.append(Piece(piece.text[at:], piece.offsets[at:]))
    return [piece for piece in found if piece.text]


def _pieces(node: ast.AST, offsets: Offsets) -> list[Piece]:
    index, end = offsets.ends(node)
    text = offsets.source.text
    found: list[Piece] = []
    while index < end:
        opening = _LITERAL.match(text, index, end)
        if opening is None:
            index += 1
            continue
        prefix, quote = opening[1].lower(), opening[2]
        body = opening.end()
        stop = body
        while stop < end and not text.startswith(quote, stop):
            stop += 2 if text[stop] == "\\" else 1
        found.extend(_body(text, body, min(stop, end), raw="r" in prefix, formatted="f" in prefix))
        index = stop + len(quote)
    return found


def _body(text: str, index: int, end: int, *, raw: bool, formatted: bool) -> list[Piece]:
    found: list[Piece] = []
    chars: list[str] = []
    places: list[int] = []

    def flush() -> None:
        if chars:
            found.append(Piece("".join(chars), tuple(places)))
            chars.clear()
            places.clear()

    while index < end:
        char = text[index]
        if char == "\\" and not raw and index + 1 < end:
            following = text[index + 1]
            if following == "\n":
                index += 2
                continue
            escape = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}").match(text, index + 1, end)
            if escape:
                code = int(escape[0][1:], 16)
                chars.append(chr(code) if code < 0x110000 else "\ufffd")
                places.append(index)
                index = escape.end()
                continue
            chars.append(_SIMPLE.get(following, following))
            places.append(index + 1)
            index += 2
        elif formatted and char == "{" and text[index + 1 : index + 2] != "{":
            close, depth = index + 1, 1
            while close < end and depth:
                depth += {"{": 1, "}": -1}.get(text[close], 0)
                close += 1
            flush()
            inside = (
                re.split(r"![rsa](?=[:}]|$)|:(?!=)", text[index + 1 : close - 1], maxsplit=1)[0].strip().rstrip("=")
            )
            found.append(Piece(inside, tuple(range(index, close)), expression=True))
            index = close
        else:
            chars.append(char)
            places.append(index)
            index += 2 if formatted and char in "{}" and text[index + 1 : index + 2] == char else 1
    flush()
    return found


def value_of(pieces: list[Piece], hole: Resolver) -> Value:
    """The text, or `Unresolved` with a hole for each expression."""
    if not any(piece.expression for piece in pieces):
        return "".join(piece.text for piece in pieces)
    parts = tuple(hole(piece.text) if piece.expression else piece.text for piece in pieces)
    return Unresolved("".join("{" + p.text + "}" if p.expression else p.text for p in pieces), parts)


def mapped_of(pieces: list[Piece], end: int) -> Mapped:
    """The text as shell text: holes written as `${expression}`, each character at its place."""
    text: list[str] = []
    places: list[int] = []
    for piece in pieces:
        if piece.expression:
            written = "${" + re.sub(r"\W+", "_", piece.text).strip("_") + "}"
            first, last = piece.offsets[0], piece.offsets[-1]
            places.extend(min(first + number, last) for number in range(len(written)))
            text.append(written)
        else:
            text.append(piece.text)
            places.extend(piece.offsets)
    places.append(places[-1] + 1 if places else end)
    return Mapped("".join(text), places)


def word_of(node: ast.AST, offsets: Offsets, hole: Resolver) -> Word:
    """A string node as one word; its span leaves the quotes out."""
    pieces = pieces_of(node, offsets)
    start, end = offsets.ends(node)
    places = [place for piece in pieces for place in piece.offsets]
    span = offsets.source.span(places[0], places[-1] + 1) if places else offsets.source.span(start, end)
    value = value_of(pieces, hole)
    mapped = mapped_of(pieces, end) if isinstance(value, str) else None
    return Word(value, span, offsets.source.text[start:end], quoted=True, mapped=mapped)
