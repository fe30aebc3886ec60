"""Requirement texts inside YAML, and conda environments by their shape: `channels` beside `dependencies`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.conda import conda_environment
from auditor.readers.requirement_lists import may_hold, requirements_in
from auditor.syntax.spanned import Spanned
from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode, documents


def read(source: SourceFile) -> Iterator[Fact]:
    """The requirements of every document that can be read; what cannot is for the readers of its format to say."""
    if not may_hold(source.text):
        return
    for root in documents(source).roots:
        tree = spanned(root)
        if "channels" in tree.pairs and tree.list("dependencies"):
            yield from conda_environment(tree, source)
        else:
            yield from requirements_in(tree, source)


def _places(node: ScalarNode) -> Callable[[], Sequence[int]]:
    return lambda: node.mapped.offsets


def spanned(root: Node) -> Spanned:
    """A YAML tree as values with places: scalars as texts, shared nodes shared, merges applied."""
    done: dict[int, Spanned] = {}

    def convert(node: Node) -> Spanned:
        known = done.get(id(node))
        if known is not None:
            return known
        if isinstance(node, MapNode):
            result = done[id(node)] = Spanned({}, node.start, node.end)
            for entry in node.entries:
                if entry.key.value not in result.pairs or entry in node.own:
                    value = convert(entry.value)
                    result.pairs[entry.key.value] = value
                    value.key = entry.key.start
        elif isinstance(node, ListNode):
            result = done[id(node)] = Spanned([], node.start, node.end)
            result.items.extend(convert(item) for item in node.items)
        elif node.is_null:
            result = done[id(node)] = Spanned(None, node.start, node.end)
        else:
            result = done[id(node)] = Spanned(node.value, node.start, node.end, _places(node))
        return result

    return convert(root)
