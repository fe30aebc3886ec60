"""What a pool of slots looks like: methods that give a handle back, the free list that it goes to, what was wiped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.code_params import SlotParams
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
JOINS = frozenset({"cat", "concatenate", "concat", "hstack", "chain", "union", "merge"})


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A handle going into a free list: the node to point at, the list, and the names that carry the handle."""

    node: ast.AST
    container: str
    handles: frozenset[str]


def begins(name: str, starts: tuple[str, ...]) -> bool:
    """Whether a method's name begins with one of the words."""
    parts = words(name)
    return bool(parts) and parts[0] in starts


def gives_back(method: FunctionNode, params: SlotParams) -> list[GiveBack]:
    """Where a releasing method puts its parameters (or what it made of them) into a free list."""
    if not begins(method.name, params.releasing):
        return []
    carried = {argument.arg for argument in positional(method)}
    if not carried:
        return []
    found = []
    for node in in_order(method):
        if isinstance(node, (ast.For, ast.AsyncFor)) and mentions(node.iter, carried):
            carried |= {part.id for part in walk(node.target) if isinstance(part, ast.Name)}
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            value = node.value
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and value is not None and mentions(value, carried):
                    carried.add(target.id)
                # An array used as a stack: `free[top++] = slot`.
                row = isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)
                path = path_of(target.value) if isinstance(target, ast.Subscript) and row else path_of(target)
                if path is None or value is None or not is_free_list(path, params):
                    continue
                grows = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_items(value)
                joined = not isinstance(node, ast.AugAssign) and _joins(value, path)
                pushed = row and isinstance(value, ast.Name) and not mentions(target, carried)
                if (grows or joined or pushed) and mentions(value, carried):
                    found.append(GiveBack(node, path, frozenset(carried)))
        elif isinstance(node, ast.Call):
            name = "_".join(words(last_name(node.func)))
            container: ast.AST | None = node.func.value if isinstance(node.func, ast.Attribute) else None
            arguments = list(node.args)
            if name == "heappush" and len(arguments) == 2:
                container, arguments = arguments[0], arguments[1:]
            path = path_of(container) if container is not None else None
            if name == "return":
                # `ArrayPool<byte>.Shared.Return(buffer)` clears nothing; any other pool has its own policy.
                path = path.removesuffix(".Shared") if path is not None and path.endswith("Pool.Shared") else None
            if name not in STORES or path is None or not is_free_list(path, params):
                continue
            if any(mentions(argument, carried) for argument in arguments):
                found.append(GiveBack(node, path, frozenset(carried)))
    return found


def pool_tree(tree: CodeTree, params: SlotParams) -> CodeTree | None:
    """The whole tree of a file that gives something back to a pool; `None` for all others."""
    for owner in classes(tree):
        if any(gives_back(method, params) for method in methods(owner)):
            return tree.whole()
    return None


def is_free_list(path: str, params: SlotParams) -> bool:
    """A container of `self` (or a local alias of one) whose name says that what is in it may be used again."""
    last = path.rpartition(".")[2].partition("[")[0]
    if last == "Empty":  # `ImmutableList.Empty.Add(x)` makes a new list
        return False
    parts = word_set(last)
    return not parts.isdisjoint(params.free) and parts.isdisjoint(params.aside)


def _is_items(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and last_name(value.func) == "len"))


def _joins(value: ast.expr, path: str) -> bool:
    """`self.free = self.free + [x]`, `torch.cat((self.free, x))`: the old list and something more."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.BitOr)):
        return any(path_of(part) == path for part in walk(value))
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


def wiped(method: FunctionNode, handles: frozenset[str], params: SlotParams) -> bool:
    """The method makes what the handle stood for unusable: clears it, blanks its row, forgets its owner, counts up."""
    for node in walk(method):
        if isinstance(node, ast.Call) and (_is_wipe(node, handles, params) or _is_changed(node, handles)):
            return True
        if isinstance(node, ast.Delete):
            if any(isinstance(target, ast.Subscript) and mentions(target.slice, handles) for target in node.targets):
                return True
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if _is_mark(target) and (isinstance(node, ast.AugAssign) or mentions(target, handles)):
                    return True
                if isinstance(node, ast.AugAssign) or not _is_blank(node.value):
                    continue
                if isinstance(target, ast.Subscript) and mentions(target.slice, handles):
                    return True
                if isinstance(target, ast.Attribute) and _root_in(target, handles):
                    return True
    return False


def _is_wipe(node: ast.Call, handles: frozenset[str], params: SlotParams) -> bool:
    name = last_name(node.func)
    parts = word_set(name)
    about = [*node.args, *(entry.value for entry in node.keywords)]
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    concerned = any(mentions(argument, handles) for argument in about)
    concerned |= receiver is not None and mentions(receiver, handles)
    if not concerned:
        return False
    if not parts.isdisjoint(params.wiping) and not _own_list(receiver, params):
        return True
    for entry in node.keywords:  # `Return(buffer, clearArray: true)`
        asked = entry.arg is not None and not word_set(entry.arg).isdisjoint(params.wiping)
        if asked and isinstance(entry.value, ast.Constant) and entry.value.value is True:
            return True
    if receiver is not None and any(_says_wipe(argument, params) for argument in about):
        return True
    return name in ("pop", "popitem", "discard", "remove", "try_remove", "TryRemove", "Remove") and not _own_list(
        receiver, params
    )


def _is_changed(node: ast.Call, handles: frozenset[str]) -> bool:
    """`slot with { Owner = null }`, `slot with { Generation = slot.Generation + 1 }`."""
    changed = any(_is_blank(entry.value) or _is_mark(ast.Name(entry.arg or "")) for entry in node.keywords)
    return last_name(node.func) == "With" and changed and mentions(node, handles)


def _says_wipe(argument: ast.AST, params: SlotParams) -> bool:
    """A command that wipes, as text: `connection.execute("DISCARD ALL")`."""
    text = argument.value if isinstance(argument, ast.Constant) else None
    return isinstance(text, str) and len(text) < 80 and not word_set(text.partition(" ")[0]).isdisjoint(params.wiping)


def _own_list(receiver: ast.AST | None, params: SlotParams) -> bool:
    path = path_of(receiver) if receiver is not None else None
    return path is not None and is_free_list(path, params)


def raises_mark(node: ast.AST) -> bool:
    """`self.generation[i] += 1`, `new_generation = old + 1`."""
    if isinstance(node, ast.AugAssign):
        return _is_mark(node.target)
    counts = isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add)
    return counts and any(_is_mark(target) for target in node.targets)  # type: ignore[attr-defined]


def compares_mark(method: FunctionNode) -> bool:
    """Whether something of a method compares a generation."""
    return any(
        isinstance(node, ast.Compare) and any(_is_mark(side) for side in (node.left, *node.comparators))
        for node in walk(method)
    )


def _is_mark(target: ast.AST) -> bool:
    """`self.generation[i]`, `slot.Epoch`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    name = last_name(target)
    return not word_set(name).isdisjoint(
        {"generation", "gen", "gens", "generations", "epoch", "epochs", "version", "versions", "serial", "revision"}
        | {"stamp", "nonce", "era", "incarnation", "sequence"}
    )


def _is_blank(value: ast.expr | None) -> bool:
    if value is None:
        return False
    if isinstance(value, ast.Constant):
        return value.value is None or value.value is False or value.value in (0, "", -1)
    if isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant):
        return True
    if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.Tuple)):
        return not getattr(value, "elts", None) and not getattr(value, "keys", None)
    if isinstance(value, ast.Call):
        # A row made anew: `new byte[64]`, `Slot()`, `torch.zeros(...)`.
        name = last_name(value.func)
        return name[:1].isupper() or not word_set(name).isdisjoint({"zeros", "empty", "full", "bytearray", "new"})
    return isinstance(value, ast.Name) and value.id == "default"


def _root_in(node: ast.AST, handles: frozenset[str]) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in handles


def prepared(method: FunctionNode, container: str, params: SlotParams) -> bool:
    """The method takes a thing from the container and sets it up before it goes out: `slot = pool.Get(); slot.Reset()`,
    `slot.Position = 0`."""
    taken: set[str] = set()
    for node in in_order(method):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            call = node.value
            function = call.func if isinstance(call, ast.Call) else None
            if isinstance(function, ast.Attribute) and path_of(function.value) == container:
                taken.add(node.targets[0].id)
        elif isinstance(node, ast.Assign) and _is_blank(node.value):
            if any(isinstance(target, ast.Attribute) and _root_in(target, frozenset(taken)) for target in node.targets):
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base, parts = node.func.value, words(node.func.attr)
            setting = parts[:1] in (("set",), ("init",), ("initialize",), ("initialise",), ("reinit",), ("prepare",))
            if (
                isinstance(base, ast.Name)
                and base.id in taken
                and (setting or not set(parts).isdisjoint(params.wiping))
            ):
                return True
    return False


def methods(owner: ast.ClassDef) -> Iterator[FunctionNode]:
    """The methods of a class, in order."""
    for node in owner.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
