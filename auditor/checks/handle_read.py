"""A pool hands out what stands behind a bare index: whoever held the index last week may still read with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import SlotParams
from auditor.checks.slot_pools import begins, gives_back, in_order, is_free_list, methods, pool_tree
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, positional
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

NUMBERS = frozenset({"index", "idx", "id", "slot", "page", "row", "position", "pos", "offset", "number", "block"})
GATHERING = frozenset({"index_select", "gather", "take", "take_along_axis"})
COPYING = frozenset({"copy", "copy_", "clone", "write", "memcpy", "copyto", "send", "put", "CopyTo"})


def run(tree: CodeTree, index: CodeIndex, params: SlotParams) -> Iterator[Match]:
    """The unverified reads of one file."""
    whole = pool_tree(tree, params)
    if whole is None:
        return
    for owner in classes(whole):
        found = list(methods(owner))
        if not any(gives_back(method, params) for method in found):
            continue
        for method in found:
            node = _read(method, params)
            if node is None:
                continue
            yield Match(
                "unverified",
                tree.span(node),
                subject=f"{owner.name}.{method.name}",
                scope=f"{owner.name}.{method.name}",
                values={"method": f"{owner.name}.{method.name}", "read": tree.source.slice(tree.span(node))},
                properties={"method": f"{owner.name}.{method.name}"},
            )


def _read(method: FunctionNode, params: SlotParams) -> ast.AST | None:
    if method.name.startswith("__") or begins(method.name, (*params.releasing, *params.taking)):
        return None
    outward = {argument.arg for argument in positional(method) if _is_out(argument)}
    handles = {argument.arg for argument in positional(method) if word_set(argument.arg).isdisjoint(params.keys)}
    handles -= outward
    if not handles or _verifies(method, params):
        return None
    aliases = {}
    nodes = in_order(method)
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if _is_item(node.value, handles, params):
                if node.targets[0].id in outward:
                    return node.value
                aliases[node.targets[0].id] = node.value
            elif not isinstance(node.value, ast.Name):
                handles -= {node.targets[0].id} if not _same(node.value, handles) else set()
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
            read = _given(node.value, handles, aliases, params)
            if read is not None:
                return read
        # A private method that copies moves pages inside of the pool; one that returns them is how they get out.
        if isinstance(node, ast.Call) and last_name(node.func) in COPYING and not method.name.startswith("_"):
            for part in [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]:
                read = _given(part, handles, aliases, params)
                if read is not None:
                    return read
    return None


def _is_out(argument: ast.arg) -> bool:
    """A parameter that the caller gets back: `out T item`."""
    kind = argument.annotation
    return isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name) and kind.value.id == "Out"


def _same(value: ast.expr, handles: set[str]) -> bool:
    """`index = int(index) // page`: still the caller's number."""
    return any(isinstance(part, ast.Name) and part.id in handles for part in walk(value))


def _is_item(node: ast.AST, handles: set[str], params: SlotParams) -> bool:
    if isinstance(node, (ast.Call,)) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        owner = path_of(node.func.value) or ""
        return owner.startswith("self.") and isinstance(node.args[0], ast.Name) and node.args[0].id in handles
    if isinstance(node, ast.Call) and last_name(node.func) in GATHERING:
        return _gathers(node, handles, params)
    if not isinstance(node, ast.Subscript):
        return False
    base = path_of(node.value)
    if base is None or not base.startswith("self.") or is_free_list(base, params) or base[5:].isupper():
        return False
    if not word_set(base).isdisjoint(params.owning) or "constant" in words(base):
        return False
    inner = node.slice
    if isinstance(inner, ast.Attribute) and not word_set(inner.attr).isdisjoint(NUMBERS):
        inner = inner.value  # `handle.index`, of a handle whose other half nobody looks at
    return isinstance(inner, ast.Name) and inner.id in handles


def _gathers(node: ast.Call, handles: set[str], params: SlotParams) -> bool:
    """`torch.index_select(self.rows, 0, handles)`, `self.rows.index_select(0, handles)`."""
    sources = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    bases = [path_of(part) or "" for part in (*sources, *node.args)]
    own = [base for base in bases if base.startswith("self.") and not is_free_list(base, params)]
    asked = any(isinstance(part, ast.Name) and part.id in handles for part in node.args)
    return asked and any(word_set(base).isdisjoint(params.owning) for base in own)


def _given(value: ast.expr, handles: set[str], aliases: dict[str, ast.expr], params: SlotParams) -> ast.AST | None:
    """The read inside of what is returned or copied; an alias counts where it was read."""
    for part in in_order(value):
        if _is_item(part, handles, params):
            return part
        if isinstance(part, ast.Name) and part.id in aliases:
            return aliases[part.id]
    return None


def _verifies(method: FunctionNode, params: SlotParams) -> bool:
    """Something of the method compares a generation, an owner, a lease."""
    for node in walk(method):
        if isinstance(node, ast.Compare):
            for part in walk(node):
                name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
                if name and not word_set(name).isdisjoint(params.owning):
                    return True
        if isinstance(node, ast.Call):
            parts = word_set(last_name(node.func))
            if not parts.isdisjoint({"check", "verify", "validate", "ensure", "require", "assert"}) and not (
                parts.isdisjoint({*params.owning, "handle", "live", "current", "fresh", "stale"})
            ):
                return True
    return False
