"""A handle goes back to the free list while what it stood for stays readable under it."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import SlotParams
from auditor.checks.slot_pools import gives_back, in_order, methods, pool_tree
from auditor.checks.slot_wipes import compares_mark, prepared, raises_mark, wiped
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes
from auditor.syntax.names import word_set


def run(tree: CodeTree, index: CodeIndex, params: SlotParams) -> Iterator[Match]:
    """The releases of one file that leave the old content behind."""
    whole = pool_tree(tree, params)
    if whole is None:
        return
    for owner in classes(whole):
        for method in methods(owner):
            places = gives_back(method, params, owner)
            if (
                not places
                or wiped(method, places[-1], params)
                or _wiped_on_taking(list(methods(owner)), params)
                or any(prepared(other, places[0].container, params) for other in methods(owner) if other is not method)
            ):
                continue
            place = places[0]
            yield Match(
                "stale",
                tree.span(place.node),
                subject=f"{owner.name}.{method.name}",
                scope=f"{owner.name}.{method.name}",
                values={"method": f"{owner.name}.{method.name}", "container": place.container.removeprefix("self.")},
                properties={"method": f"{owner.name}.{method.name}", "container": place.container},
            )


def _wiped_on_taking(found: list[FunctionNode], params: SlotParams) -> bool:
    """Zeroing when a handle is given out again serves as well, and so does a new generation for each tenant that the
    class then compares."""
    compared = any(compares_mark(method) for method in found)
    for method in found:
        if word_set(method.name).isdisjoint(params.taking):
            continue
        for node in in_order(method):
            if compared and raises_mark(node):
                return True
            name = getattr(node, "attr", "") or getattr(node, "id", "")
            if name and not word_set(name).isdisjoint({"zero", "zeros", "reset", "wipe", "scrub", "clear"}):
                return True
    return False
