"""A pool hands out what stands behind a bare index: whoever held the index last week may still read with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import SlotParams
from auditor.checks.handle_views import NUMBERS, Views
from auditor.checks.pool_structure import is_out
from auditor.checks.slot_pools import begins, gives_back, in_order, methods, pool_tree
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, positional
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk

COPYING = frozenset({"copy", "copy_", "clone", "write", "memcpy", "copyto", "send", "put", "CopyTo"})
SENDING = frozenset({"write", "send", "put"})  # what they are called on is where to, not what
COLLECTING = frozenset({"append", "extend", "add", "appendleft", "Add", "AddRange", "update"})
CHECKS = frozenset({"check", "verify", "validate", "ensure", "require", "assert"})
OWNS = frozenset({"owns", "own", "belongs", "holds", "allowed", "authorize", "authorized", "authorise", "authorised"})


def run(tree: CodeTree, index: CodeIndex, params: SlotParams) -> Iterator[Match]:
    """The unverified reads of one file."""
    whole = pool_tree(tree, params)
    if whole is None:
        return
    for owner in classes(whole):
        found = list(methods(owner))
        giving = [method for method in found if gives_back(method, params, owner)]
        if not giving:
            continue
        released = frozenset(argument.arg for method in giving for argument in positional(method))
        for method in found:
            node = _read(method, released, params)
            if node is None or _asked_before(method, found, released, params):
                continue
            yield Match(
                "unverified",
                tree.span(node),
                subject=f"{owner.name}.{method.name}",
                scope=f"{owner.name}.{method.name}",
                values={"method": f"{owner.name}.{method.name}", "read": tree.source.slice(tree.span(node))},
                properties={"method": f"{owner.name}.{method.name}"},
            )


def _asked_before(
    method: FunctionNode, found: list[FunctionNode], released: frozenset[str], params: SlotParams
) -> bool:
    """A private method that only methods which verify the handle call: `resolve` compares, `_at` reads."""
    if not method.name.startswith("_"):
        return False
    callers = [
        other
        for other in found
        if other is not method
        and any(path_of(node.func) == f"self.{method.name}" for node in walk(other) if isinstance(node, ast.Call))
    ]
    return bool(callers) and all(_asks(caller, released, params) for caller in callers)


def _asks(method: FunctionNode, released: frozenset[str], params: SlotParams) -> bool:
    given = {argument.arg for argument in positional(method)}
    views = Views({name for name in given if word_set(name).isdisjoint(params.keys)}, released, params)
    return _verifies(method, given, views, params)


def _read(method: FunctionNode, released: frozenset[str], params: SlotParams) -> ast.AST | None:
    """The read that a method gives out; `released` are the names that releasing methods know the handle by."""
    if (method.name.startswith("__") and method.name != "__getitem__") or begins(
        method.name, (*params.releasing, *params.taking)
    ):
        return None
    outward = {argument.arg for argument in positional(method) if is_out(argument)}
    given = {argument.arg for argument in positional(method)} - outward
    handles = {name for name in given if word_set(name).isdisjoint(params.keys)}
    if not handles:
        return None
    views = Views(handles, released, params)
    nodes = in_order(method)
    for node in nodes:
        views.spread(node)
    for node in nodes:
        found = views.learn(node, outward)
        if found is not None:
            return None if _verifies(method, given, views, params) else found
    for node in nodes:
        read = _given_by(node, views, method.name.startswith("_"), given)
        if read is not None:
            return None if _verifies(method, given, views, params) else read
    return None


def _given_by(node: ast.AST, views: Views, private: bool, given: set[str]) -> ast.AST | None:
    """What a statement returns, yields or copies of what stands behind a handle, into something the caller `given`."""
    if isinstance(node, ast.Assign) and not private:
        # `out[:] = self.rows[slot]`, `out.row = self.rows[slot]`
        roots = {path.partition(".")[0] for target in node.targets if (path := _holder(target)) is not None}
        read = views.held(node.value)
        used = {part.id for part in walk(read) if isinstance(part, ast.Name)} if read is not None else given
        return read if roots & given - used else None
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
        return views.given(node.value)
    if not isinstance(node, ast.Call):
        return None
    parts = list(node.args)
    if isinstance(node.func, ast.Attribute) and node.func.attr not in SENDING:
        parts.append(node.func.value)
    # A private method that copies moves pages inside of the pool; one that returns them is how they get out.
    if last_name(node.func) in COPYING and not private:
        return next((read for part in parts if (read := views.given(part)) is not None), None)
    if last_name(node.func) in COLLECTING and isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        reads = [read for part in node.args if (read := views.held(part)) is not None]
        if isinstance(receiver, ast.Name) and reads:
            views.aliases.setdefault(receiver.id, reads[0])  # `rows.append(self.rows[i])`, and the list is returned
    return None


def _holder(target: ast.expr) -> str | None:
    """What an assignment changes in place: `out` of `out[:]` and of `out.row`."""
    return path_of(target.value) if isinstance(target, (ast.Subscript, ast.Attribute)) else None


def _verifies(method: FunctionNode, given: set[str], views: Views, params: SlotParams) -> bool:
    """Something of the method compares a generation, an owner, a lease, or what stands there with what the caller
    says of it."""
    for node in walk(method):
        if isinstance(node, ast.Compare):
            for part in walk(node):
                name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
                if name and not word_set(name).isdisjoint(params.owning):
                    return True
            sides = [node.left, *node.comparators]
            # `self.holder[slot] is not holder`, `slot not in client.slots`
            member = isinstance(node.ops[0], (ast.In, ast.NotIn)) and views.is_number(node.left)
            ours = [side for side in sides if views.inside(side)] or ([node.left] if member else [])
            used = {part.id for side in ours for part in walk(side) if isinstance(part, ast.Name)}
            if ours and any(_says(side, (given | views.derived) - used, given) for side in sides if side not in ours):
                return True
        if isinstance(node, ast.Call):
            parts = word_set(last_name(node.func))
            about = not parts.isdisjoint({*params.owning, "handle", "live", "current", "fresh", "stale"})
            if about and not parts.isdisjoint(CHECKS):
                return True
            if not parts.isdisjoint(OWNS) and len(node.args) > 1:
                return True
    return False


def _says(side: ast.expr, others: set[str], given: set[str]) -> bool:
    """What the caller says of the thing, beyond the number: another parameter, another half of the handle."""
    if isinstance(side, ast.Attribute) and isinstance(side.value, ast.Name) and side.value.id in given:
        return word_set(side.attr).isdisjoint(NUMBERS)
    return any(isinstance(part, ast.Name) and part.id in others for part in walk(side))
