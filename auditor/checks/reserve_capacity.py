"""Takes from a free list without a look at how much is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import SlotParams
from auditor.checks.slot_pools import in_order, is_free_list
from auditor.syntax.code_tree import CodeTree, FunctionNode, last_name, path_of, scopes
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

TAKES = frozenset({"pop", "popleft", "popitem", "heappop", "Pop", "Dequeue", "get_nowait", "dequeue"})


def run(tree: CodeTree, index: CodeIndex, params: SlotParams) -> Iterator[Match]:
    """The unchecked takes of one file."""
    for scope in scopes(tree):
        parts = words(scope.node.name)
        if scope.owner is None or not parts:
            continue
        if parts[0] not in params.taking and "_".join(parts[:2]) != "pre_alloc":
            continue
        node = _take(scope.node, params)
        if node is None or _checked(scope.node, params):
            continue
        yield Match(
            "unbounded",
            tree.span(node),
            subject=f"{scope.owner.name}.{scope.node.name}",
            scope=scope.name,
            values={"method": scope.name, "take": tree.source.slice(tree.span(node))},
            properties={"method": scope.name},
        )


def _take(method: FunctionNode, params: SlotParams) -> ast.AST | None:
    for node in in_order(method):
        if isinstance(node, ast.Call) and last_name(node.func) in TAKES:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if last_name(node.func) == "heappop" and node.args:
                owner = node.args[0]
            path = path_of(owner) if owner is not None else None
            # A lookup by key (`self.pool.pop(rid, None)`) is no take from a list.
            keyed = bool(node.args) and last_name(node.func) in ("pop", "Pop")
            if path is not None and _is_list(path, params) and (not keyed or isinstance(node.args[0], ast.Constant)):
                return node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            path = path_of(node.value)
            if path is not None and _is_list(path, params) and node.slice.lower is None and node.slice.upper:
                return node
    return None


def _is_list(path: str, params: SlotParams) -> bool:
    return path.startswith("self.") and is_free_list(path, params)


def _checked(method: FunctionNode, params: SlotParams) -> bool:
    for node in walk(method):
        if isinstance(node, (ast.Try, ast.Assert, ast.While)) or type(node).__name__ == "TryStar":
            return True
        if isinstance(node, (ast.If, ast.IfExp)) and _asks(node.test, params):
            return True
        if isinstance(node, ast.BoolOp) and _asks(node, params):
            return True
        if isinstance(node, ast.Call):
            parts = word_set(last_name(node.func))
            if not parts.isdisjoint(
                {"ensure", "require", "check", "evict", "wait", "wait_for", "grow", "refill", "expand"}
            ):
                return True
            if not parts.isdisjoint({"semaphore", "acquire"}) and last_name(node.func) != method.name:
                return True
    return False


def _asks(test: ast.expr, params: SlotParams) -> bool:
    """A comparison of an amount, an emptiness test, or a question about capacity."""
    for part in walk(test):
        if isinstance(part, ast.Compare) and any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in part.ops):
            return True
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if name and (not word_set(name).isdisjoint(params.free) or not word_set(name).isdisjoint(params.capacity)):
            return True
    return False
