"""What makes an old handle unusable: its content is cleared, its owner forgotten, its generation counted up."""

from __future__ import annotations

import ast

from auditor.checks.code_params import SlotParams
from auditor.checks.pool_structure import assigned, is_link
from auditor.checks.slot_pools import GiveBack, in_order, is_free_list, mentions
from auditor.syntax.code_tree import FunctionNode, last_name, path_of
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk


def wiped(method: FunctionNode, place: GiveBack, params: SlotParams) -> bool:
    """The method makes what the handle stood for unusable: clears it, blanks its row, forgets its owner, counts up."""
    handles, sources = place.handles, _sources(method, place.node)
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
                if isinstance(node, ast.Assign) and _is_overwritten(target, handles):
                    return True
                if isinstance(node, ast.AugAssign) or not _is_blank(node.value):
                    continue
                if isinstance(target, ast.Subscript) and mentions(target.slice, handles) and not is_link(target):
                    return True
                if path_of(target) in sources:
                    continue  # `slot = req.slot; req.slot = None`: who holds a copy of the number reads on
                if isinstance(target, ast.Attribute) and _root_in(target, handles) and not is_link(target):
                    return True
    return False


def _sources(method: FunctionNode, place: ast.AST) -> set[str]:
    """Where the number that goes back was kept: `req.slot` of `slot = req.slot`, `seq.pages` of a loop over them."""
    parts = place.args if isinstance(place, ast.Call) else [getattr(place, "value", place)]
    found = {path for part in parts for path in _fields(part)}
    names = {part.id for value in parts for part in walk(value) if isinstance(part, ast.Name)}
    for node in walk(method):
        if isinstance(node, ast.Assign):
            pairs = list(assigned(node))
        else:
            pairs = [(node.target, node.iter)] if isinstance(node, ast.For) else []
        for target, value in pairs:
            if isinstance(target, ast.Name) and target.id in names:
                found |= _fields(value)
    return found


def _fields(value: ast.AST) -> set[str]:
    """The fields of others in a value: `req.slot`."""
    paths = {path_of(part) or "" for part in walk(value) if isinstance(part, ast.Attribute)}
    return {path for path in paths if path and not path.startswith("self.")}


def _is_overwritten(target: ast.expr, handles: frozenset[str]) -> bool:
    """`row[:] = bytes(256)`, `self.rows[slot][:] = ...`."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Slice):
        return False
    row = target.value
    return _root_in(target, handles) or (isinstance(row, ast.Subscript) and mentions(row.slice, handles))


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
    # `policy.Return(item)`, `self.on_release(item)`: whoever made the pool says there what is wiped.
    if "policy" in words(last_name(receiver) if receiver is not None else "") or words(name)[:1] == ("on",):
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
        | {"stamp", "stamps", "serials", "revisions", "nonces", "sequences", "nonce", "era", "incarnation", "sequence"}
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
            if any(path_of(part) == container for part in walk(node.value)):
                taken.add(node.targets[0].id)
        elif isinstance(node, ast.Assign) and any(_is_overwritten(part, frozenset(taken)) for part in node.targets):
            return True
        elif isinstance(node, ast.Assign) and _is_blank(node.value):
            fields = [target for target in node.targets if isinstance(target, ast.Attribute) and not is_link(target)]
            if any(_root_in(target, frozenset(taken)) for target in fields):
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
