"""A pool without a telling name, known by what its class does: a releasing method fills a container of `self`, and a
taking method hands out what it takes from the same one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.code_params import SlotParams
from auditor.syntax.code_tree import FunctionNode, last_name, path_of
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

# Calls that take something out of the container that they are called on, or of their first argument.
REMOVES = frozenset(
    {"pop", "popleft", "popitem", "dequeue", "get", "get_nowait", "take", "try_take", "try_pop", "try_dequeue"}
    | {"remove_first", "remove_last", "remove_at", "try_read", "read_async", "pop_first"}
)
REMOVES_FIRST = frozenset({"heappop", "exchange", "compare_exchange"})
# Calls that store into their first argument: `heappush(free, x)`, `bisect.insort(free, x)`.
STORES_FIRST = frozenset({"heappush", "insort", "insort_left", "insort_right", "compare_exchange"})
PLACE = "="  # before a field that holds one thing, or the first one of a linked list
LINKS = frozenset({"next", "nxt", "link", "links", "succ", "successor", "prev", "previous", "below", "chain"})


def base_of(path: str | None) -> str:
    """The container without its keys: `self.idle[size]` -> `self.idle`; empty for what is no field of `self`."""
    base = (path or "").partition("[")[0]
    return base if base.startswith("self.") else ""


def container_path(node: ast.AST | None) -> str | None:
    """The path of a container; `self.idle.setdefault(size, [])` stands for `self.idle`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if "_".join(words(node.func.attr)) in ("setdefault", "get", "get_or_add", "get_value_or_default"):
            return path_of(node.func.value) if node.args else None
        return None
    return path_of(node) if node is not None else None


def gives_name(method: FunctionNode, params: SlotParams) -> bool:
    """Whether a method gives something back by its name: `release`, `give_back`, `bring_back`, `check_in`."""
    parts = words(method.name)
    if not parts or parts[0] in params.releasing:
        return bool(parts)
    return (len(parts) > 1 and parts[-1] == "back" and parts[0] not in params.turning) or parts[:2] == ("check", "in")


def gives_surely(method: FunctionNode, owner: ast.ClassDef, params: SlotParams) -> bool:
    """Whether a name gives back even where nothing else speaks of a pool: `put(x)` alone is any queue's."""
    parts = words(method.name)
    if not gives_name(method, params):
        return False
    return parts[0] not in params.vague or parts[-1] == "back" or not word_set(owner.name).isdisjoint(params.pools)


def handed_out(owner: ast.ClassDef, params: SlotParams) -> frozenset[str]:
    """The containers that a method named like taking takes from, to give it to its caller: `self.store`, or for a
    field that holds the first one alone `=self.head`."""
    found: set[str] = set()
    for method in owner.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and _takes(method, params) and _answers(method):
            found.update(_taken_from(method))
    return frozenset(found)


def _takes(method: FunctionNode, params: SlotParams) -> bool:
    parts = words(method.name)
    parts = parts[1:] if parts[:1] == ("try",) else parts
    return parts[:1] != () and (
        parts[0] in params.taking or parts[0] in params.getting or parts[:2] == ("check", "out")
    )


def _answers(method: FunctionNode) -> bool:
    """The method gives something to its caller: a value, or through a parameter `out T item`."""
    for node in walk(method):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            if not isinstance(node.value, ast.Constant):
                return True
        elif isinstance(node, ast.arg) and is_out(node):
            return True
    return False


def is_out(argument: ast.arg) -> bool:
    """A parameter that the caller gets back: `out T item`."""
    kind = argument.annotation
    return isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name) and kind.value.id == "Out"


def _taken_from(method: FunctionNode) -> Iterator[str]:
    given = {argument.arg for argument in method.args.args if not is_out(argument)}
    stores = [pair for node in walk(method) if isinstance(node, ast.Assign) for pair in assigned(node)]
    alias = {
        target.id: base_of(container_path(value))
        for target, value in stores
        if isinstance(target, ast.Name) and base_of(container_path(value))
    }
    alias |= dict(looked_up(method))
    for target, value in stores:
        # The head of a linked list moves on to the next one; a single place is emptied.
        if isinstance(target, ast.Attribute) and (is_link(value) or _is_nothing(value)):
            yield PLACE + base_of(path_of(target))
    for node in walk(method):
        if isinstance(node, ast.Call):
            name = "_".join(words(last_name(node.func)))
            if name in REMOVES and isinstance(node.func, ast.Attribute):
                # `pop(key)` of a parameter is a look-up, and so is `get` of anything.
                keyed = any(isinstance(part, ast.Name) and part.id in given for part in node.args)
                if not keyed and (name != "get" or not node.args):
                    yield _real(container_path(node.func.value), alias)
            if name in REMOVES_FIRST and node.args:
                yield _real(container_path(node.args[0]), alias)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Load, ast.Del)):
            # `self.store[self.top]` is the top of a stack, `self.store[:n]` the first of a list.
            cursor = any(base_of(path_of(part)) for part in walk(node.slice))
            first = isinstance(node.slice, ast.Slice) and (node.slice.lower is None or node.slice.upper is None)
            gone = isinstance(node.ctx, ast.Del) and isinstance(node.slice, (ast.Constant, ast.UnaryOp))
            if cursor or first or gone:
                yield _real(path_of(node.value), alias)


def looked_up(method: FunctionNode) -> Iterator[tuple[str, str]]:
    """The names that an entry of a container is put into: `_bySize.TryGetValue(size, out var stack)`."""
    for node in walk(method):
        if isinstance(node, ast.Call) and last_name(node.func) == "TryGetValue" and len(node.args) == 2:
            name, path = node.args[1], path_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
            if isinstance(name, ast.Name) and path is not None and base_of(path) == path:
                yield name.id, path


def _real(path: str | None, alias: dict[str, str]) -> str:
    root, dot, rest = (path or "").partition("[")[0].partition(".")
    return base_of(alias[root] + dot + rest if root in alias else path)


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment stores where; `a, b = c, d` part by part."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def is_link(node: ast.AST) -> bool:
    """`slot.next`, `self.next[slot]`: what comes after it in a list that its own elements make up."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and not word_set(node.attr).isdisjoint(LINKS)


def pushed_on(method: FunctionNode, carried: set[str]) -> Iterator[tuple[ast.AST, str, bool]]:
    """Where a method makes one of its parameters the head of a linked list, or puts it into a single place: the node,
    the field, and whether it is a list."""
    stores = [(node, *pair) for node in walk(method) if isinstance(node, ast.Assign) for pair in assigned(node)]
    linked = {path_of(value) for _, target, value in stores if is_link(target)}
    for node, target, value in stores:
        path = path_of(target)
        given = isinstance(value, ast.Name) and value.id in carried
        if given and isinstance(target, ast.Attribute) and path is not None and base_of(path) == path:
            yield node, path, path in linked
