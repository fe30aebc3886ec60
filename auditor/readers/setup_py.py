"""setup.py: the requirement texts that stand in it as literals. Nothing is run.

A text counts where it is an item of a list, a tuple or a dict, or the value of a name or an argument, and is a
requirement as a whole. A bare name counts only under a name that speaks of requirements: `{"sglang": ...}` is an extra.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from auditor.model.facts import Fact, Hole, PackageReference, Unresolved, Value
from auditor.model.spans import SourceFile
from auditor.syntax.python_tree import parse_python
from auditor.syntax.requirement_lines import normalise, requirement_of_word
from auditor.syntax.words import Word

_SPEAKS = re.compile(r"requir|depend|deps|install", re.IGNORECASE)


class _Places:
    """Character offsets of nodes: `ast` counts columns in UTF-8 bytes and lines by LF, CR and CRLF, as we do."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source

    def offset(self, line: int, column: int) -> int:
        starts = self.source.line_starts
        if line > len(starts):
            return len(self.source.text)
        start = starts[line - 1]
        text = self.source.text[start : starts[line] if line < len(starts) else len(self.source.text)]
        if text.isascii():
            return start + column
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))

    def word(self, node: ast.expr, value: Value) -> Word:
        start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        span = self.source.span(start, end)
        return Word(value, span, self.source.slice(span), quoted=True)


def read(source: SourceFile) -> Iterator[Fact]:
    """The project itself, then every requirement in order."""
    tree = parse_python(source)
    places = _Places(source)
    constants = {
        target.id: (node.value.value, places.word(node.value, node.value.value))
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    itself = _itself(tree, places, constants)
    if itself is not None:
        yield itself
    for node, scope in _texts(tree):
        value = _value(node, constants)
        if value is None:
            continue
        fact = requirement_of_word(places.word(node, value), source, scope)
        if fact is None or (itself is not None and fact.name == itself.name):
            continue
        if fact.kind != "bare" or _SPEAKS.search(scope):
            yield fact


Constants = dict[str, tuple[str, Word]]


def _value(node: ast.expr, constants: Constants) -> Value | None:
    """The text of a constant or an f-string; names in it are holes, with the module's constant as default."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts: list[str | Hole] = []
    for part in node.values:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            parts.append(part.value)
        elif isinstance(part, ast.FormattedValue):
            name = part.value.id if isinstance(part.value, ast.Name) else ast.unparse(part.value)
            known = constants.get(name)
            parts.append(Hole(name, known[0], known[1].span) if known else Hole(name))
    shown = "".join(part if isinstance(part, str) else "{" + part.name + "}" for part in parts)
    return Unresolved(shown, tuple(parts)) if any(isinstance(part, Hole) for part in parts) else shown


def _texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """String expressions that can be requirements, with the name they stand under. In document order."""
    stack: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while stack:
        node, scope, item = stack.pop()
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            if item:
                yield node, scope
            continue
        children: list[tuple[ast.AST, str, bool]] = []
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            name = ast.unparse(targets[0])
            if node.value is not None:
                children.append((node.value, name, True))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            children.append((node.func, scope, False))
            grows = called.rpartition(".")[2] in ("append", "extend", "insert", "add")
            inner = called.rpartition(".")[0] if grows else scope
            children.extend((argument, inner, grows) for argument in node.args)
            children.extend((keyword.value, keyword.arg or scope, True) for keyword in node.keywords)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                under = scope
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SPEAKS.search(scope):
                    under = f"{scope} {key.value}"
                children.append((value, under, True))
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Starred, ast.BinOp, ast.IfExp)):
            children.extend(
                (child, scope, not isinstance(node, ast.IfExp) or child is not node.test)
                for child in ast.iter_child_nodes(node)
            )
        elif isinstance(node, (ast.Compare, ast.Expr)) and not isinstance(getattr(node, "value", None), ast.Call):
            continue
        else:
            named = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
            returns = isinstance(node, ast.Return)
            children.extend((child, named, returns) for child in ast.iter_child_nodes(node))
        stack.extend(reversed(children))


def _itself(tree: ast.Module, places: _Places, constants: Constants) -> PackageReference | None:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup"):
            continue
        arguments = {keyword.arg: keyword.value for keyword in node.keywords}
        name = arguments.get("name")
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            return None
        word = places.word(name, name.value)
        version = arguments.get("version")
        value = _value(version, constants) if version is not None else None
        if isinstance(version, ast.Name) and version.id in constants:
            value = constants[version.id][0]
        end = word.span.end.offset
        if version is not None and value is not None:
            end = max(end, places.word(version, value).span.end.offset)
        span = places.source.span(word.span.start.offset, end)
        return PackageReference(
            normalise(name.value), "source", "project", span, version=value if isinstance(value, str) else None
        )
    return None
