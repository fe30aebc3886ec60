"""Takes from a free list without a look at how much is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import SlotParams
from auditor.checks.pool_structure import assigned, base_of, gives_surely
from auditor.checks.slot_pools import given_back, in_order, is_free_list, methods
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, scopes
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
        alias = _aliases(scope.node)
        found = _takes(scope.node, alias)
        asked = {path for _, path in found}
        if not found or _checked(scope.node, asked | {name for name in alias if alias[name] in asked}, params):
            continue
        # Of what is no free list by its name, the class has to prove that it is one.
        known = {path for path in asked if _is_surely_free(path, params)}
        open_paths = asked - known
        if open_paths:
            known |= _pools_of(scope.owner.name, open_paths, tree, params)
        for node, path in found:
            if path in known:
                yield Match(
                    "unbounded",
                    tree.span(node),
                    subject=f"{scope.owner.name}.{scope.node.name}",
                    scope=scope.name,
                    values={"method": scope.name, "take": tree.source.slice(tree.span(node))},
                    properties={"method": scope.name},
                )


def _aliases(method: FunctionNode) -> dict[str, str]:
    """Local names of containers of `self`: `bucket = self.idle[size]`."""
    return {
        target.id: base_of(path_of(value))
        for node in walk(method)
        if isinstance(node, ast.Assign)
        for target, value in assigned(node)
        if isinstance(target, ast.Name) and base_of(path_of(value))
    }


def _takes(method: FunctionNode, alias: dict[str, str]) -> list[tuple[ast.expr, str]]:
    """Where a method takes from a container of `self`, and which: one for each line."""
    found: dict[int, tuple[ast.expr, str]] = {}

    def take(node: ast.expr, container: ast.AST | None) -> None:
        path = path_of(container) if container is not None else None
        root, _, rest = (path or "").partition(".")
        base = base_of(path) if root == "self" else alias.get(root.partition("[")[0], "") if not rest else ""
        if base:
            found.setdefault(node.lineno, (node, base))

    for node in in_order(method):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("heappop", "islice") and node.args:
                take(node, node.args[0])
            elif name in TAKES and isinstance(node.func, ast.Attribute):
                # A lookup by key (`self.pool.pop(rid, None)`) is no take from a list.
                keyed = bool(node.args) and name in ("pop", "Pop")
                if not keyed or isinstance(node.args[0], ast.Constant):
                    take(node, node.func.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            cut = node.slice
            if isinstance(cut, ast.Slice) and cut.lower is None and cut.upper:
                take(node, node.value)
    return list(found.values())


def _is_surely_free(path: str, params: SlotParams) -> bool:
    """A name that says it alone: `free_pages` does, `open_tags` does not."""
    parts = word_set(path.rpartition(".")[2])
    return is_free_list(path, params) and not parts.isdisjoint(set(params.free) - set(params.loose))


def _pools_of(name: str, paths: set[str], tree: CodeTree, params: SlotParams) -> set[str]:
    """Those of the containers that the class gives back to, or fills with what it then hands out."""
    for owner in classes(tree.with_classes([name])):
        if owner.name != name:
            continue
        returned: set[str] = set()
        for method in methods(owner):
            if gives_surely(method, owner, params):
                returned.update(place.key for place in given_back(method, params))
        filled = {
            path_of(target)
            for method in methods(owner)
            for node in walk(method)
            if isinstance(node, ast.Assign)
            for target, value in assigned(node)
            if _is_stock(value)
        }
        return {path for path in paths if path in returned or (path in filled and is_free_list(path, params))}
    return set()


def _is_stock(value: ast.expr) -> bool:
    """A list with things in it from the start: `list(range(n))`, `[make() for _ in range(n)]`, `torch.arange(n)`."""
    if isinstance(value, ast.Call):
        return last_name(value.func) in ("arange", "range") or any(map(_is_stock, value.args))
    return isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp))


def _checked(method: FunctionNode, paths: set[str], params: SlotParams) -> bool:
    for node in walk(method):
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(_is_ticket(item.context_expr) for item in node.items):
            return True
        if isinstance(node, (ast.Try, ast.Assert, ast.While)) or type(node).__name__ == "TryStar":
            return True
        if isinstance(node, (ast.If, ast.IfExp)) and _asks(node.test, paths, params):
            return True
        if isinstance(node, ast.BoolOp) and _asks(node, paths, params):
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


def _is_ticket(node: ast.expr) -> bool:
    """`async with self.semaphore:` lets in as many as there are."""
    return not word_set(path_of(node) or "").isdisjoint({"semaphore", "sem", "limiter", "tickets"})


def _asks(test: ast.expr, paths: set[str], params: SlotParams) -> bool:
    """A comparison of an amount, an emptiness test, or a question about capacity."""
    for part in walk(test):
        if isinstance(part, ast.Compare) and any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in part.ops):
            return True
        if base_of(path_of(part)) in paths or (isinstance(part, ast.Name) and part.id in paths):
            return True
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if name and (not word_set(name).isdisjoint(params.free) or not word_set(name).isdisjoint(params.capacity)):
            return True
    return False
