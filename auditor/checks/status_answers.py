"""What the names of a test stand for: an answer to a posted prompt, several of them, or their status."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from auditor.checks.code_params import StatusParams
from auditor.checks.generation_posts import posts, text_of
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import FunctionNode, last_name
from auditor.syntax.python_nodes import children_of, walk

Kind = Literal["one", "many", "status", "statuses", ""]
STATUS = frozenset({"status_code", "status", "getcode", "code", "StatusCode"})
SUCCESS = frozenset({"ok", "is_success", "raise_for_status", "is_ok", "status_ok", "IsSuccessStatusCode"})
# Calls that hand on what they are given, or what the function that they are given answers.
THROUGH = frozenset(
    {"run", "run_until_complete", "wait_for", "shield", "create_task", "ensure_future", "submit", "to_thread"}
    | {"run_in_executor", "run_sync", "apply", "apply_async", "spawn", "start_soon", "partial", "cast", "loop_run"}
)
ALL_OF = frozenset(
    {
        "gather",
        "list",
        "tuple",
        "set",
        "sorted",
        "as_completed",
        "reversed",
        "wait",
        "values",
        "wait_all",
        "joinall",
        "WhenAll",
        "ToList",
    }
)
MAPS = frozenset({"map", "Select", "imap", "imap_unordered", "starmap", "map_async"})
AWAITED = frozenset(
    {"result", "get", "join", "value", "ConfigureAwait", "GetAwaiter", "GetResult", "EnsureSuccessStatusCode"}
)
PLURAL: dict[Kind, Kind] = {"one": "many", "status": "statuses"}
SINGULAR: dict[Kind, Kind] = {"many": "one", "statuses": "status"}


@dataclass(slots=True)
class Answers:
    """The answers of one function. `texts` are what names stand for, `helpers` the functions that it may call, by
    name, with what they answer."""

    texts: dict[str, str]
    params: StatusParams
    helpers: dict[str, Kind] = field(default_factory=dict)
    names: dict[str, Kind] = field(default_factory=dict)

    def kind(self, node: ast.AST | None) -> Kind:
        """What an expression is."""
        if isinstance(node, (ast.Await, ast.Starred, ast.NamedExpr)):
            return self.kind(node.value)
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            inner = self.kind(node.value)
            if inner and node.attr == "Result":  # of a task of C#
                return inner
            return "status" if inner == "one" and (node.attr in STATUS or node.attr in SUCCESS) else ""
        if isinstance(node, ast.Subscript):
            return SINGULAR.get(self.kind(node.value), "")
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._comprehended(node.elt, node.generators)
        if isinstance(node, ast.DictComp):
            return self._comprehended(node.value, node.generators)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return next((PLURAL[kind] for part in node.elts if (kind := self.kind(part)) in PLURAL), "")
        if isinstance(node, ast.IfExp):
            return self.kind(node.body) or self.kind(node.orelse)
        if isinstance(node, ast.Lambda):
            return self.kind(node.body)
        return self._called(node) if isinstance(node, ast.Call) else ""

    def _comprehended(self, made: ast.expr, generators: list[ast.comprehension]) -> Kind:
        for loop in generators:
            self.each(loop.target, loop.iter)
        kind = self.kind(made)
        return PLURAL.get(kind, kind)

    def _called(self, node: ast.Call) -> Kind:
        name = last_name(node.func)
        if posts(node, self.texts, self.params):
            return "one"
        if name in self.helpers:
            return self.helpers[name]
        receiver = self.kind(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if receiver == "one" and name in STATUS:
            return "status"
        if receiver and name in (*AWAITED, "values"):
            return receiver
        given = [self._made(part) for part in node.args]
        first: Kind = next((kind for kind in given if kind), "")
        if name in THROUGH:
            return first
        if name in MAPS or name in ALL_OF:
            return PLURAL.get(first, first)
        return "one" if name == "getresponse" and "one" in self.names.values() else ""

    def _made(self, node: ast.expr) -> Kind:
        """What an argument is, or what it answers where it is a function."""
        name = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        return self.kind(node) or self.helpers.get(name, "")

    def each(self, target: ast.expr, source: ast.expr) -> None:
        """`for r in replies`, `for prompt, r in zip(prompts, replies)`."""
        if isinstance(source, ast.Call) and last_name(source.func) in ("zip", "enumerate", "items"):
            parts = target.elts if isinstance(target, ast.Tuple) else []
            inside: list[ast.expr | None] = list(source.args)
            if last_name(source.func) == "enumerate":
                inside = [None, *inside]
            elif isinstance(source.func, ast.Attribute):
                inside = [None, source.func.value]
            for part, value in zip(parts, inside, strict=False):
                self.bind(part, SINGULAR.get(self.kind(value), ""))
            return
        kind = SINGULAR.get(self.kind(source), "")
        self.bind(target, kind)
        text = "" if kind or not isinstance(target, ast.Name) else text_of(source, self.texts)
        if text:
            self.texts[last_name(target)] = text

    def bind(self, target: ast.expr, kind: Kind) -> None:
        """A name stands for something from here on."""
        if isinstance(target, ast.Name) and kind:
            self.names[target.id] = kind
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and kind in PLURAL:
            self.names[target.value.id] = PLURAL[kind]
        elif isinstance(target, ast.Tuple) and kind in SINGULAR:
            for part in target.elts:
                self.bind(part, SINGULAR[kind])

    def learn(self, node: ast.AST) -> None:
        """Take in what a statement binds."""
        if isinstance(node, ast.Assign):
            kind = self.kind(node.value)
            for target in node.targets:
                if kind:
                    self.bind(target, kind)
                elif isinstance(target, ast.Name):
                    text = text_of(node.value, self.texts)
                    if text:
                        self.texts[target.id] = text
        elif isinstance(node, ast.NamedExpr):
            self.bind(node.target, self.kind(node.value))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, self.kind(item.context_expr))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.each(node.target, node.iter)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            self.kind(node)
        elif isinstance(node, ast.Call) and last_name(node.func) in ("append", "add", "put") and len(node.args) == 1:
            kind = self.kind(node.args[0])
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and kind in PLURAL:
                self.names[node.func.value.id] = PLURAL[kind]


def own_nodes(function: FunctionNode) -> list[ast.AST]:
    """The nodes of a function in the order of the text, without those of functions inside of it."""
    known: list[ast.AST] | None = getattr(function, "own_nodes", None)  # a helper is looked at once for each caller
    if known is not None:
        return known
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if hasattr(node, "lineno"):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(children_of(node))
    found.sort(key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
    function.own_nodes = found  # type: ignore[union-attr]
    return found


def nested(function: FunctionNode) -> Iterator[FunctionNode]:
    """The functions inside of a function."""
    for node in walk(function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not function:
            yield node
