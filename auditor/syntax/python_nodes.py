"""The nodes of a Python syntax tree in the order of `ast.walk`, in a fifth of its time.

Of each kind of node only the fields that can hold others are looked into; operators, contexts and aliases, which nobody
asks for, are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_PLAIN = frozenset(
    {
        "ctx", "op", "ops", "id", "attr", "arg", "name", "names", "asname", "module", "level", "kind", "type_comment",
        "type_ignores", "conversion", "simple", "is_async", "rest", "kwd_attrs",
    }
)  # fmt: skip


_known: dict[type, tuple[str, ...]] = {type(None): (), ast.Constant: (), ast.MatchSingleton: ()}


def _holding(kind: type[ast.AST | None]) -> tuple[str, ...]:
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = tuple(name for name in getattr(kind, "_fields", ()) if name not in _PLAIN)
    return found


def children_of(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node."""
    found: list[ast.AST | None] = []
    for name in _holding(type(node)):
        value = getattr(node, name, None)
        found.extend(value if isinstance(value, list) else (value,))
    return [child for child in found if child is not None]


def nodes_below(roots: Iterable[ast.AST]) -> list[ast.AST]:
    """The nodes given and all that stand below them, breadth first."""
    found: list[ast.AST | None] = list(roots)
    for node in found:  # it grows while it is walked
        kind = type(node)
        names = _known.get(kind)
        for name in _holding(kind) if names is None else names:
            value = getattr(node, name, None)
            if type(value) is list:
                found += value  # with the `None` of `**spread` in it, which has no children
            elif value is not None:
                found.append(value)
    return [node for node in found if node is not None]


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all that stands below it, as `ast.walk` gives them."""
    return nodes_below((node,))
