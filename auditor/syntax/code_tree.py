"""A source file as a syntax tree with spans. One tree shape serves every language: the nodes of Python's `ast` module.

Python files are parsed by `ast` itself; a syntax module for another language (`csharp.py`) lowers its own tree to the
same nodes, with `lineno` and `col_offset` (bytes of UTF-8, as `ast` counts) of the text that a node stands for. Rules
are then written once. What a language has and Python has not is lowered to the nearest shape: a field reached without
`this` becomes an attribute of `self`, a property with a body a method, an enumeration a class whose base is `Enum`, an
`out` parameter one of type `Out[T]`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from auditor.errors import ReadError
from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span

SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Import,
    ast.ImportFrom,
    ast.Raise,
    ast.Pass,
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SUFFIXES = {".py": "python", ".pyi": "python", ".cs": "csharp"}


Mentioning = Callable[[frozenset[str]], "CodeTree | None"]


@dataclass(slots=True)
class CodeTree:
    """A parsed file; `memo` holds what is worked out of it once. A tree may hold only the functions that a search
    found; `whole()` gives the tree of the whole file, or `None` where that cannot be parsed. `gap` is the first place
    that was not understood, in a file of which the rest was."""

    source: SourceFile
    module: ast.Module
    language: str
    rest: Callable[[], CodeTree | None] | None = None
    whole_classes: Callable[[frozenset[str]], CodeTree | None] | None = None
    mentioning: Mentioning | None = None
    gap: ReadError | None = None
    memo: dict[str, object] = field(default_factory=dict)

    def whole(self) -> CodeTree | None:
        """The tree of the whole file."""
        return self if self.rest is None else self.rest()

    def with_classes(self, names: Iterable[str]) -> CodeTree:
        """The tree with all methods of these classes in it; this tree itself where they cannot be parsed."""
        if self.rest is None:
            return self
        found = self.whole_classes(frozenset(names)) if self.whole_classes is not None else self.rest()
        return found or self

    def with_mentioning(self, texts: Iterable[str]) -> CodeTree:
        """This tree with all functions of the file in it that hold one of these texts."""
        if self.rest is None:
            return self
        found = self.mentioning(frozenset(texts)) if self.mentioning is not None else self.rest()
        return found or self

    def offset(self, line: int, column: int) -> int:
        """The character offset of a line (from 1) and a column in UTF-8 bytes (from 0)."""
        start = self.source.line_starts[min(line, len(self.source.line_starts)) - 1]
        text = self.source.text
        piece = text[start : start + column]
        if piece.isascii():
            return min(start + column, len(text))
        line_text = self.source.line_text(line)
        return start + len(line_text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.AST) -> Span:
        """The text that a node covers."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        start = self.offset(line, column)
        end = start if end_line is None or end_column is None else self.offset(end_line, end_column)
        return self.source.span(start, max(start, end))

    def text(self, node: ast.AST) -> bytes:
        """The whole lines that a node covers, as bytes."""
        source = self.source
        starts = source.line_starts
        first: int = getattr(node, "lineno", 1)
        last: int = getattr(node, "end_lineno", None) or first
        end = starts[last] if last < len(starts) else len(source.text)
        return source.text[starts[first - 1] : end].encode("utf-8", "surrogatepass")

    def name_span(self, node: ast.AST, name: str) -> Span:
        """The span of a definition's name: the first `name` after the definition's start."""
        start = self.offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
        at = self.source.text.find(name, start)
        return self.source.span(at, at + len(name)) if at >= 0 else self.span(node)


@dataclass(frozen=True, slots=True)
class Scope:
    """A function and where it is defined: the class around it (or `None`), the dotted name, and whether it stands
    inside of another function."""

    node: FunctionNode
    owner: ast.ClassDef | None
    name: str
    inside: bool = False


def parse(source: SourceFile, language: str) -> CodeTree:
    """The tree of a file. Raises `ReadError` where the file is not of the language, or goes beyond a bound."""
    if language == "csharp":
        from auditor.syntax.csharp import parse_csharp

        module, gap = parse_csharp(source)
        return CodeTree(source, module, language, gap=gap)
    from auditor.syntax.python_tree import parse_python

    return CodeTree(source, parse_python(source), language)


def scopes(tree: CodeTree) -> tuple[Scope, ...]:
    """All functions of a file in the order of the text, nested ones after the one around them."""
    known = tree.memo.get("scopes")
    if isinstance(known, tuple):
        return known
    found = tuple(_scopes(tree.module.body, None, ""))
    tree.memo["scopes"] = found
    return found


def _scopes(body: list[ast.stmt], owner: ast.ClassDef | None, prefix: str) -> Iterator[Scope]:
    # An explicit stack: a file may nest deeper than Python's own call stack allows.
    stack: list[tuple[ast.stmt, ast.ClassDef | None, str, bool]] = [
        (node, owner, prefix, False) for node in reversed(body)
    ]
    while stack:
        node, around, before, within = stack.pop()
        inner: list[tuple[ast.stmt, ast.ClassDef | None, str, bool]] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Scope(node, around, before + node.name, within)
            inner = [(child, around, f"{before}{node.name}.", True) for child in node.body]
        elif isinstance(node, ast.ClassDef):
            inner = [(child, node, f"{before}{node.name}.", within) for child in node.body]
        elif not isinstance(node, SIMPLE):
            inner = [(child, around, before, within) for child in _blocks(node)]
        stack.extend(reversed(inner))


def _blocks(node: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(node, name, ())
    for handler in getattr(node, "handlers", ()):
        yield from handler.body
    for case in getattr(node, "cases", ()):
        yield from case.body


def classes(tree: CodeTree) -> tuple[ast.ClassDef, ...]:
    """All classes of a file in the order of the text."""
    known = tree.memo.get("classes")
    if isinstance(known, tuple):
        return known
    found: list[ast.ClassDef] = []
    stack: list[ast.stmt] = list(reversed(tree.module.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ClassDef):
            found.append(node)
        if not isinstance(node, SIMPLE):
            stack.extend(reversed(list(_blocks(node))))
    tree.memo["classes"] = tuple(found)
    return tuple(found)


def imports(tree: CodeTree) -> dict[str, str]:
    """What imported names stand for, dotted, in functions as well: `from a.b import C as D` gives `D: a.b.C`."""
    known = tree.memo.get("imports")
    if isinstance(known, dict):
        return known
    found: dict[str, str] = {}
    stack: list[ast.stmt] = list(reversed(tree.module.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            found.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif not isinstance(node, SIMPLE):
            stack.extend(reversed(list(_blocks(node))))
    tree.memo["imports"] = found
    return found


def last_name(node: ast.AST) -> str:
    """The last identifier of a callee or a base: `a.b.c` -> `c`; empty where there is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.rpartition(".")[2]
    return ""


def path_of(node: ast.AST) -> str | None:
    """A name, attribute chain or item as text (`self.queue[i].req`); `None` for anything that is computed."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = path_of(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Subscript):
        base = path_of(node.value)
        if base is None:
            return None
        inner = node.slice
        key = repr(inner.value) if isinstance(inner, ast.Constant) else path_of(inner)
        return None if key is None else f"{base}[{key}]"
    if isinstance(node, ast.Await):
        return path_of(node.value)
    if isinstance(node, ast.NamedExpr):
        return path_of(node.target)
    return None


def positional(node: FunctionNode) -> list[ast.arg]:
    """The parameters of a function without `self` and `cls`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if arguments and arguments[0].arg in ("self", "cls"):
        arguments = arguments[1:]
    return [*arguments, *([node.args.vararg] if node.args.vararg else []), *node.args.kwonlyargs]
