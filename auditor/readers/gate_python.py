"""Python that asks a running engine for its pool, holds it against the context, and ends where the pool is short.

Words prove nothing: docstrings, messages and code that hands both numbers on name them too. What counts is an ordering
comparison of the two figures whose answer ends the process.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from auditor.model.records import dataclass

POOL = re.compile(r"max_total_num_tokens", re.IGNORECASE)
LIMIT = re.compile(r"context_len|max_req_input_len|max_model_len", re.IGNORECASE)
_CLIENTS = re.compile(r"(?:requests|httpx|aiohttp|urllib3|urllib\.request|http\.client)(?:\.|$)|.*\burlopen$")
_PROGRAMS = re.compile(r"\b(?:curl|wget)\b")
_SAME = frozenset(
    {"int", "float", "str", "abs", "round", "min", "max", "sum", "next", "ceil", "floor", "getattr", "get"}
)
_EXITS = frozenset({"exit", "_exit", "quit", "SystemExit", "fail", "abort"})
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ROUNDS = 6  # how far names are followed through assignments, calls and returns

Kinds = frozenset[str]
_NONE: Kinds = frozenset()


def python_gate(text: str) -> int | None:
    """The line, from 1, where the compared pool is first named in code; none where nothing compares, or no Python."""
    try:
        tree = ast.parse(text)
        return _Reading(tree).line() if _asks(tree) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # whatever it is, it is no comparison that can be shown


def _asks(tree: ast.Module) -> bool:
    """It has a client for HTTP and names the endpoint, both outside of docstrings."""
    client = endpoint = False
    for node in _code(tree):
        if isinstance(node, ast.Import):
            client = client or any(_CLIENTS.match(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            client = client or any(_CLIENTS.match(name) for name in names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            client = client or _PROGRAMS.search(node.value) is not None
            endpoint = endpoint or "server_info" in node.value
    return client and endpoint


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, without statements that are a mere string."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


class _Reading:
    """What the names of one file stand for, and which expressions end the process."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[tuple[ast.AST, str]] = []  # each node with the function that it stands in
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.kinds: dict[tuple[str, str], Kinds] = {}
        self.around: dict[int, _Branch] = {}  # the innermost branch that a node stands in
        waiting: list[tuple[ast.AST, str, _Branch | None]] = [(tree, "", None)]
        while waiting:
            node, scope, branch = waiting.pop()
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            self.nodes.append((node, scope))
            if branch is not None:
                self.around[id(node)] = branch
            if isinstance(node, _FUNCTIONS):
                self.functions[node.name] = node
                scope = node.name
            if isinstance(node, (ast.If, ast.While)):
                waiting.append((node.test, scope, branch))
                inside = _Branch(node, scope)
                waiting.extend((child, scope, inside) for child in (*node.body, *node.orelse))
            else:
                waiting.extend((child, scope, branch) for child in ast.iter_child_nodes(node))
        for _ in range(_ROUNDS):
            before = dict(self.kinds)
            for node, scope in self.nodes:
                self._learn(node, scope)
            if self.kinds == before:
                break

    def line(self) -> int | None:
        compared = {id(node) for node, scope in self.nodes if isinstance(node, ast.Compare) and self._held(node, scope)}
        if not compared:
            return None
        if not any(id(part) in compared for expression in self._ending() for part in ast.walk(expression)):
            return None
        return min(_lines(node for node, _ in self.nodes), default=None)

    # -- figures

    def _learn(self, node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, scope)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
            self._bind(node.target, node.value, scope)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._add(("()", scope), self._of(node.value, scope))
        elif isinstance(node, ast.Call) and (made := self.functions.get(_name(node.func))) is not None:
            parameters = [one.arg for one in (*made.args.posonlyargs, *made.args.args)]
            if isinstance(node.func, ast.Attribute):
                parameters = parameters[1:]
            for parameter, value in zip(parameters, node.args, strict=False):
                self._add((made.name, parameter), self._of(value, scope))
            for keyword in node.keywords:
                if keyword.arg is not None:
                    self._add((made.name, keyword.arg), self._of(keyword.value, scope))

    def _bind(self, target: ast.AST, value: ast.AST, scope: str) -> None:
        if isinstance(target, ast.Name):
            self._add((scope, target.id), self._of(value, scope))
        elif isinstance(target, ast.Attribute):
            self._add((".", target.attr), self._of(value, scope))
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            if len(parts) == len(target.elts):
                for one, part in zip(target.elts, parts, strict=True):
                    self._bind(one, part, scope)
            else:
                for one in target.elts:
                    self._bind(one, value, scope)

    def _add(self, key: tuple[str, str], kinds: Kinds) -> None:
        if kinds:
            self.kinds[key] = self.kinds.get(key, _NONE) | kinds

    def _of(self, node: ast.AST, scope: str) -> Kinds:
        """Which figures a value is made of; `gap` is the difference of the two."""
        if isinstance(node, ast.Name):
            known = self.kinds.get((scope, node.id)) or self.kinds.get(("", node.id), _NONE)
            return known | figure(node.id)
        if isinstance(node, ast.Attribute):
            known = figure(node.attr) or self.kinds.get((".", node.attr), _NONE)
            return known or self._of(node.value, scope)
        if isinstance(node, ast.Subscript):
            return _literal(node.slice) or self._of(node.value, scope)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
                return _NONE  # a message
            left, right = self._of(node.left, scope), self._of(node.right, scope)
            if isinstance(node.op, ast.Sub) and across(left, right):
                return frozenset({"gap"})
            return left | right
        if isinstance(node, ast.Call):
            return self._of_call(node, scope)
        parts: Iterable[ast.AST] = ()
        if isinstance(node, (ast.BoolOp, ast.Dict)):
            parts = node.values
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = node.elts
        elif isinstance(node, ast.UnaryOp):
            parts = () if isinstance(node.op, ast.Not) else (node.operand,)
        elif isinstance(node, ast.IfExp):
            parts = (node.body, node.orelse)
        elif isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            parts = (node.value,)
        elif isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
            parts = (node.elt,)
        return _NONE.union(*(self._of(part, scope) for part in parts))

    def _of_call(self, node: ast.Call, scope: str) -> Kinds:
        literals = _NONE.union(*(_literal(argument) for argument in node.args))
        name = _name(node.func)
        if literals:
            return literals
        if name in self.functions:
            return self.kinds.get(("()", name), _NONE)
        if name in _SAME:
            return _NONE.union(*(self._of(argument, scope) for argument in node.args))
        return _NONE

    def _held(self, node: ast.Compare, scope: str) -> bool:
        """Pool and context stand on the two sides of an ordering, or their difference on one."""
        sides = [self._of(side, scope) for side in (node.left, *node.comparators)]
        return any(
            isinstance(operator, _ORDER) and (across(left, right) or "gap" in left | right)
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False)
        )

    # -- what ends the process

    def _ending(self) -> list[ast.AST]:
        """The expressions on whose answer the process ends: tests before an exit or a raise, assertions, exit codes,
        and what flows into them by name or by the return of a function."""
        ending: dict[int, ast.AST] = {}
        names: set[tuple[str, str]] = set()
        functions: set[str] = set()
        for _ in range(_ROUNDS):
            before = len(ending)
            for node, scope in self.nodes:
                for expression, place in self._ends(node, scope, names, functions):
                    if id(expression) in ending:
                        continue
                    ending[id(expression)] = expression
                    for part in ast.walk(expression):
                        if isinstance(part, ast.Name):
                            names.add((place, part.id))
                        elif isinstance(part, ast.Call):
                            functions.add(_name(part.func))
            if len(ending) == before:
                break
        return list(ending.values())

    def _ends(
        self, node: ast.AST, scope: str, names: set[tuple[str, str]], functions: set[str]
    ) -> Iterator[tuple[ast.AST, str]]:
        """What ends the process at one node, each with its function: the tests of all branches around it, from the
        inside out up to one that is known already."""
        for expression in _ends(node, scope, names, functions):
            yield expression, scope
        if _stops(node) or _passes(node, scope, names, functions):
            branch = self.around.get(id(node))
            while branch is not None and not branch.known:
                branch.known = True
                yield branch.statement.test, branch.scope
                branch = self.around.get(id(branch.statement))


@dataclass(slots=True)
class _Branch:
    """An `if` or `while` in a function; `known` once it is found to end the process."""

    statement: ast.If | ast.While
    scope: str
    known: bool = False


def _ends(node: ast.AST, scope: str, names: set[tuple[str, str]], functions: set[str]) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assert):
        yield node.test
    elif isinstance(node, ast.Call) and _name(node.func) in _EXITS:
        yield from node.args
    elif isinstance(node, ast.BoolOp) and any(_stops(part) for value in node.values for part in ast.walk(value)):
        yield node
    elif isinstance(node, ast.Return):
        if scope in functions and node.value is not None and _answers(node.value):
            yield node.value
    elif isinstance(node, ast.Assign) and _answers(node.value) and _targets(node, scope, names):
        yield node.value


def _answers(node: ast.AST) -> bool:
    """A value that says whether a comparison held; the smaller of two figures does not."""
    if isinstance(node, ast.IfExp):
        return _plain(node.body) and _plain(node.orelse)
    if isinstance(node, ast.Call):
        return _name(node.func) in ("all", "any", "bool", "int")
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.ListComp))


def _plain(node: ast.AST | None) -> bool:
    """A flag, a code or a message."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, (ast.Constant, ast.JoinedStr))


def _stops(node: ast.AST) -> bool:
    """A raise, or an exit that tells of a failure."""
    if isinstance(node, ast.Raise):
        return not (isinstance(node.exc, ast.Call) and _name(node.exc.func) == "SystemExit" and not _fails(node.exc))
    return isinstance(node, ast.Call) and _name(node.func) in _EXITS and _fails(node)


def _fails(call: ast.Call) -> bool:
    if not call.args:
        return _name(call.func) in ("fail", "abort")
    return not (isinstance(call.args[0], ast.Constant) and call.args[0].value in (0, None))


def _passes(node: ast.AST, scope: str, names: set[tuple[str, str]], functions: set[str]) -> bool:
    """It changes what the process ends on: an answer of a function, a flag, a list of problems."""
    if isinstance(node, ast.Return):
        return scope in functions and _plain(node.value)
    if isinstance(node, ast.Assign):
        return _plain(node.value) and _targets(node, scope, names)
    if isinstance(node, ast.AugAssign):
        return _plain(node.value) and _known(node.target, scope, names)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "add", "extend")
        and _known(node.func.value, scope, names)
    )


def _targets(node: ast.Assign, scope: str, names: set[tuple[str, str]]) -> bool:
    return any(_known(target, scope, names) for target in node.targets)


def _known(node: ast.AST, scope: str, names: set[tuple[str, str]]) -> bool:
    return isinstance(node, ast.Name) and (scope, node.id) in names


def across(left: AbstractSet[str], right: AbstractSet[str]) -> bool:
    """Whether one side is made of the pool and the other of the context."""
    return ("pool" in left and "limit" in right) or ("limit" in left and "pool" in right)


def figure(name: str) -> Kinds:
    """Which of the two figures a word names."""
    if POOL.search(name):
        return frozenset({"pool"})
    return frozenset({"limit"}) if LIMIT.search(name) else _NONE


def _literal(node: ast.AST) -> Kinds:
    return figure(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else _NONE


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _lines(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        word = node.value if isinstance(node, ast.Constant) else _name(node)
        if isinstance(word, str) and POOL.search(word) and isinstance(node, (ast.Constant, ast.Name, ast.Attribute)):
            yield node.lineno
