"""What a pool of slots looks like: methods that give a handle back, and the free list that it goes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.code_params import SlotParams
from auditor.checks.pool_structure import (
    PLACE,
    STORES_FIRST,
    base_of,
    container_path,
    gives_name,
    gives_surely,
    handed_out,
    looked_up,
    pushed_on,
)
from auditor.model.records import dataclass
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, positional
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

STORES = frozenset(
    {"append", "appendleft", "extend", "extendleft", "add", "put", "put_nowait", "push", "insert", "update", "heappush"}
    | {
        "enqueue",
        "try_write",
        "write_async",
        "try_add",
        "add_range",
        "write",
        "add_last",
        "add_first",
        "push_range",
        "offer",
    }
    | {"return", "try_enqueue", "try_push"}
)
AMOUNTS = frozenset({"len", "numel", "size", "nbytes", "sum", "count", "Count", "Length", "length", "qsize"})
JOINS = frozenset({"cat", "concatenate", "concat", "hstack", "chain", "union", "merge"})


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A handle going into a free list: the node to point at, the list, the names that carry the handle, whether it is a
    free list by its name, and `PLACE` where it is a field that holds the first one alone."""

    node: ast.AST
    container: str
    handles: frozenset[str]
    named: bool
    place: str = ""

    @property
    def key(self) -> str:
        """The container as a method that hands out from it is said to know it."""
        return self.place + base_of(self.container)


def begins(name: str, starts: tuple[str, ...]) -> bool:
    """Whether a method's name begins with one of the words."""
    parts = words(name)
    return bool(parts) and parts[0] in starts


def gives_back(method: FunctionNode, params: SlotParams, owner: ast.ClassDef) -> list[GiveBack]:
    """Where a releasing method of a class puts its parameters (or what it made of them) into a free list: one that is
    named so, or one that another method of the class hands out from."""
    places = given_back(method, params)
    if all(place.named for place in places):
        return places
    paired = handed_out(owner, params) if gives_surely(method, owner, params) else frozenset()
    return [place for place in places if place.named or place.key in paired]


def given_back(method: FunctionNode, params: SlotParams) -> list[GiveBack]:
    """Where a releasing method puts its parameters into any container of `self`, whatever that is called."""
    if not gives_name(method, params):
        return []
    carried = {argument.arg for argument in positional(method)}
    if not carried:
        return []
    amounts = _amounts(method)
    alias = dict(looked_up(method))
    made: set[str] = set()  # lists of this call's own: `freed = []`
    found = []

    def put(node: ast.AST, container: ast.AST | None) -> None:
        path = container_path(container)
        root = (path or "").partition("[")[0]
        if root in made:
            return
        own = alias.get(root, path) if path is not None else None
        if own is not None and is_free_list(own, params):
            found.append(GiveBack(node, own, frozenset(carried), True))
        elif path is not None and is_free_list(path, params):
            found.append(GiveBack(node, path, frozenset(carried), True))
        elif base_of(own) and word_set(base_of(own)).isdisjoint(set(params.aside) - set(params.pooled)):
            found.append(GiveBack(node, own or "", frozenset(carried), False))

    for node in in_order(method):
        if isinstance(node, (ast.For, ast.AsyncFor)) and mentions(node.iter, carried):
            carried |= {part.id for part in walk(node.target) if isinstance(part, ast.Name)}
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            value = node.value
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if value is not None and isinstance(target, (ast.Name, ast.Tuple)) and mentions(value, carried):
                    carried |= {part.id for part in walk(target) if isinstance(part, ast.Name)}
                if isinstance(target, ast.Name) and value is not None and _is_new(value):
                    made.add(target.id)
                if isinstance(target, ast.Name) and base_of(container_path(value)):
                    alias[target.id] = container_path(value) or ""
                # An array used as a stack: `free[top++] = slot`.
                row = isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)
                container = target.value if isinstance(target, ast.Subscript) and row else target
                path = path_of(container)
                if path is None or value is None:
                    continue
                grows = (
                    isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.BitOr)) and _is_items(value)
                ) and not (isinstance(value, ast.Name) and value.id in amounts)
                joined = not isinstance(node, ast.AugAssign) and _joins(value, path)
                pushed = row and isinstance(value, ast.Name) and not mentions(target, carried)
                if (grows or joined or pushed) and mentions(value, carried):
                    put(node, container)
        elif isinstance(node, ast.Call):
            name = "_".join(words(last_name(node.func)))
            receiver: ast.AST | None = node.func.value if isinstance(node.func, ast.Attribute) else None
            arguments = list(node.args)
            if name in STORES_FIRST and len(arguments) >= 2:
                receiver, arguments = arguments[0], arguments[1:]
            elif name == "return":
                # `ArrayPool<byte>.Shared.Return(buffer)` clears nothing; any other pool has its own policy.
                path = path_of(receiver) if receiver is not None else None
                if path is None or not path.endswith("Pool.Shared"):
                    continue
                receiver = receiver.value if isinstance(receiver, ast.Attribute) else None
            elif name not in STORES:
                continue
            if any(mentions(argument, carried) for argument in arguments):
                put(node, receiver)
    for place, path, linked in pushed_on(method, carried):
        named = linked and is_free_list(path, params)
        found.append(GiveBack(place, path, frozenset(carried), named, PLACE))
    return found


def pool_tree(tree: CodeTree, params: SlotParams) -> CodeTree | None:
    """The whole tree of a file that gives something back to a pool; `None` for all others."""
    for owner in classes(tree):
        places = [place for method in methods(owner) for place in given_back(method, params)]
        if any(place.named for place in places):
            return tree.whole()
        if places:
            # Whether it hands out from the same container is said elsewhere in the class.
            grown = tree.with_classes([owner.name])
            for found in classes(grown):
                if found.name == owner.name and any(gives_back(method, params, found) for method in methods(found)):
                    return tree.whole()
    return None


def is_free_list(path: str, params: SlotParams) -> bool:
    """A container of `self` (or a local alias of one) whose name says that what is in it may be used again."""
    last = path.rpartition(".")[2].partition("[")[0]
    if last == "Empty":  # `ImmutableList.Empty.Add(x)` makes a new list
        return False
    parts = word_set(last)
    return not parts.isdisjoint(params.free) and parts.isdisjoint(params.aside)


def _amounts(method: FunctionNode) -> set[str]:
    """The parameters of a method that are numbers of things and no things: `def release(self, n=1)`."""
    arguments = [*method.args.posonlyargs, *method.args.args]
    defaults = [None] * (len(arguments) - len(method.args.defaults)) + method.args.defaults
    pairs = [
        *zip(arguments, defaults, strict=True),
        *zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True),
    ]
    return {
        argument.arg
        for argument, default in pairs
        if (isinstance(default, ast.Constant) and type(default.value) in (int, float))
        or (argument.annotation is not None and last_name(argument.annotation) in ("int", "float"))
        or argument.arg in ("n", "k")
        or not word_set(argument.arg).isdisjoint({"num", "count", "amount", "how", "number"})
    }


def _is_items(value: ast.expr) -> bool:
    amount = last_name(value.func) if isinstance(value, ast.Call) else last_name(value)
    return not (isinstance(value, ast.Constant) or amount in AMOUNTS)


def _is_new(value: ast.expr) -> bool:
    """`[]`, `set()`, `[x for x in ...]`: a list that nobody else has."""
    if isinstance(value, (ast.ListComp, ast.SetComp)):
        return True
    if isinstance(value, (ast.List, ast.Set, ast.Tuple)):
        return not value.elts
    return isinstance(value, ast.Call) and last_name(value.func) in ("list", "set", "deque") and not value.args


def _joins(value: ast.expr, path: str) -> bool:
    """`self.free = self.free + [x]`, `torch.cat((self.free, x))`: the old list and something more."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.BitOr)):
        return any(path_of(part) == path for part in walk(value))
    if (
        isinstance(value, ast.Call)
        and last_name(value.func) in ("sorted", "list", "tuple", "set", "deque")
        and value.args
    ):
        return _joins(value.args[0], path)
    if isinstance(value, ast.Call) and last_name(value.func) in JOINS:
        return any(path_of(part) == path for part in walk(value))
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(isinstance(part, ast.Starred) and path_of(part.value) == path for part in value.elts)
    return False


def mentions(node: ast.AST, names: set[str] | frozenset[str]) -> bool:
    """Whether an expression holds one of the names."""
    return any(isinstance(part, ast.Name) and part.id in names for part in walk(node))


def in_order(node: ast.AST) -> list[ast.AST]:
    """All nodes with a place, in the order of the text."""
    nodes = [part for part in walk(node) if hasattr(part, "lineno")]
    return sorted(nodes, key=lambda part: (part.lineno, part.col_offset))  # type: ignore[attr-defined]


def methods(owner: ast.ClassDef) -> Iterator[FunctionNode]:
    """The methods of a class, in order."""
    for node in owner.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
