"""The concrete syntax of one function: exact spans and rewriting for code that a check has already found with `ast`.

libcst costs a fifth of a second to import and twenty times `ast` to parse, so it is imported by the first finding that
needs it and sees one function at a time. The text is never dedented: that would change strings that span lines. An
indented function is parsed as it stands, under a line that opens a block, and its offsets are shifted back.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.errors import ReadError
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span

if TYPE_CHECKING:
    import libcst

    from auditor.syntax.code_tree import FunctionNode

_OPENING = "if 1:\n"
# libcst's parser recurses on the machine's stack without a bound: beyond these it takes minutes or ends the process.
DEEPEST = 100  # levels of `ast` nodes, of which an `elif` and an operator of a chain are one each
LONGEST = 256 * 1024  # characters of one function


@dataclass(frozen=True, slots=True)
class FunctionCst:
    """A function's concrete syntax. `start` and `end` are the offsets of its text in the file, from the first column of
    the line of its first decorator; `spans` gives the offsets of every node's text without its own parentheses,
    `places` the expressions by these."""

    source: SourceFile
    start: int
    end: int
    module: libcst.Module
    node: libcst.FunctionDef
    spans: dict[libcst.CSTNode, tuple[int, int]]
    places: dict[tuple[int, int], list[libcst.BaseExpression]]

    @property
    def text(self) -> str:
        """The text of the function in the file."""
        return self.source.text[self.start : self.end]

    def at(self, span: Span) -> list[libcst.BaseExpression]:
        """The expressions that cover exactly this span, outer ones first."""
        return self.places.get((span.start.offset, span.end.offset), [])

    def slice(self, node: libcst.CSTNode) -> str:
        """The text of a node as it stands in the file. libcst's own code of a node leaves out the indentation of its
        later lines."""
        start, end = self.spans[node]
        return self.source.text[start:end]


def function_cst(source: SourceFile, function: FunctionNode) -> FunctionCst:
    """The concrete syntax of a function that `ast` found in the file. Raises `ReadError`: it goes beyond a bound,
    libcst does not take it, or does not give the same text back."""
    first = min([function.lineno, *(entry.lineno for entry in function.decorator_list)])
    start = source.offset(first, 1)
    last = function.end_lineno or first
    end = _offset(source, last, function.end_col_offset or 0)
    if end - start > LONGEST:
        raise ReadError(f"a function longer than {LONGEST // 1024} KiB", start, limit=True)
    if _depth(function) > DEEPEST:
        raise ReadError("a function nested deeper than the concrete syntax is read", start, limit=True)
    text = source.text[start:end]
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    shift = len(_OPENING) if indent else 0
    whole = (_OPENING if indent else "") + text

    import libcst
    from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

    try:
        module = libcst.parse_module(whole)
        if module.code != whole:
            raise ReadError("the concrete syntax does not give the text back", start)
        body: Sequence[libcst.CSTNode] = module.body
        if indent and isinstance(body[0], libcst.If):
            body = body[0].body.body
        made = body[0]
        if len(body) != 1 or not isinstance(made, libcst.FunctionDef):
            raise ReadError("a function that shares its first line with something else", start)
        found = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    except libcst.ParserSyntaxError as error:
        raise ReadError(f"not Python to libcst: {error.message}", start) from None
    except libcst.CSTValidationError as error:
        raise ReadError(f"not Python to libcst: {error}", start) from None
    except (RecursionError, KeyError):  # libcst's spans turn the first into the second
        raise ReadError("a function nested deeper than the concrete syntax is read", start, limit=True) from None
    except UnicodeError:
        raise ReadError("text that is no Unicode", start) from None
    characters = _characters(whole)
    by = start - shift
    spans: dict[libcst.CSTNode, tuple[int, int]] = {}
    places: dict[tuple[int, int], list[libcst.BaseExpression]] = {}
    for node, place in found.items():
        low, high = place.start, place.start + place.length
        if low < shift:
            continue  # the line above the function
        if characters is not None:
            # The end of the last line counts a line break that the text may not have.
            low, high = characters[low], characters[min(high, len(characters) - 1)]
        spans[node] = (by + low, by + high)
        if isinstance(node, libcst.BaseExpression):
            places.setdefault(spans[node], []).append(node)
    for nodes in places.values():
        nodes.reverse()  # libcst records from the inside
    return FunctionCst(source, start, end, module, made, spans, places)


def _characters(text: str) -> list[int] | None:
    """The character offset of each offset in UTF-8 bytes; `None` where they are the same."""
    if text.isascii():
        return None
    table: list[int] = []
    for number, character in enumerate(text):
        table.extend([number] * len(character.encode("utf-8")))
    return [*table, len(text)]


def _offset(source: SourceFile, line: int, column: int) -> int:
    """The character offset of a line from 1 and a column in UTF-8 bytes from 0."""
    text = source.line_text(line)
    if not text.isascii():
        column = len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "surrogatepass"))
    return source.offset(line, column + 1)


def _depth(function: ast.AST) -> int:
    """How deep the nodes nest; stops counting beyond the bound."""
    deepest = 0
    stack = [(function, 0)]
    while stack and deepest <= DEEPEST:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest
