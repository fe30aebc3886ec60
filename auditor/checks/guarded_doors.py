"""Doors that ask for the second verdict themselves: what a test beside them leaves out does not get through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.code_flow import Admission
from auditor.checks.code_index import CodeIndex, Split, method_record
from auditor.syntax.code_tree import CodeTree, FunctionNode, Scope, last_name, path_of, positional, scopes
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk


def guarded_elsewhere(admission: Admission, scope: Scope, split: Split, tree: CodeTree, index: CodeIndex) -> bool:
    """Whether the thing passes a door that reads the second verdict: the one through which it came into the queue that
    it is taken from, or one that the admission leads to."""
    guarded = index.guarded.get(split.verdict, ())
    if not guarded:
        return False
    owner = scope.owner.name if scope.owner is not None else ""
    entrances = {entry.name for entry in guarded if entry.owner == owner} - {scope.node.name}
    if entrances and admission.origin.startswith("self.") and admission.origin in _filled(entrances, owner, tree):
        return True
    doors = {(entry.owner, entry.name) for entry in guarded}
    return any(_is_door(path, name, owner, doors) for path, name in _reached(admission, owner, tree))


def _reached(admission: Admission, owner: str, tree: CodeTree) -> Iterator[tuple[str, str]]:
    """The call that admits, and the calls that a method of the same class then hands the thing to."""
    if not isinstance(admission.node, ast.Call):
        return
    function = admission.node.func
    path = path_of(function.value) if isinstance(function, ast.Attribute) else None
    if path is None:
        return
    yield path, last_name(function)
    method = _method(tree, owner, last_name(function)) if path == "self" else None
    if method is None:
        return
    given = {argument.arg for argument in positional(method)}
    for node in walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = path_of(node.func.value)
            if inner is not None and any(isinstance(part, ast.Name) and part.id in given for part in node.args):
                yield inner, node.func.attr


def _filled(entrances: set[str], owner: str, tree: CodeTree) -> set[str]:
    """The containers of `self` that methods of a class fill, themselves or through another method of it."""
    whole = tree.with_classes((owner,))
    own = {scope.node.name: scope.node for scope in scopes(whole) if scope.owner and scope.owner.name == owner}
    found: set[str] = set()
    seen: set[str] = set()
    waiting = sorted(entrances)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in own:
            continue
        seen.add(name)
        record = method_record(owner, own[name])
        found |= record.fills
        waiting += sorted(record.calls & own.keys())
    return found


def _method(tree: CodeTree, owner: str, name: str) -> FunctionNode | None:
    if not name:
        return None
    for wider in (False, True):
        for scope in scopes(tree.with_mentioning((f"def {name}(",)) if wider else tree):
            if scope.node.name == name and scope.owner is not None and scope.owner.name == owner:
                return scope.node
    return None


def _is_door(path: str, name: str, owner: str, doors: set[tuple[str, str]]) -> bool:
    """`self.prefill_queue.add` is `PrefillQueue.add`: an attribute that bears the name of its class."""
    last = word_set(path.rpartition(".")[2])
    return any(
        name == door and (owner == holder if path == "self" else word_set(holder) <= last) for holder, door in doors
    )
