"""Requirement texts inside YAML, and conda environments by their shape: `channels` beside `dependencies`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from auditor.errors import ReadError
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.conda import conda_environment
from auditor.readers.requirement_lists import may_hold, requirements_in
from auditor.readers.requirements import NAMED, read_lines
from auditor.syntax.spanned import Spanned
from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode, documents, walk

_YAML_KEYS = frozenset({"serveconfigv2", "runtimeenvyaml", "runtime_env", "runtimeenv"})


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
        yield from _embedded(root, source)


def _embedded(root: Node, source: SourceFile) -> Iterator[Fact]:
    """Files inside a file: block scalars that are a requirements file or YAML of their own, by the name of their key
    (`requirements.txt` of a config map, Ray's `serveConfigV2` and `runtimeEnvYAML`)."""
    for path, node in walk(root):
        if not isinstance(node, ScalarNode) or node.style != "|" or not path or not may_hold(node.value):
            continue
        key = path[-1].lower()
        if NAMED.search(key) and key.endswith((".txt", ".in")):
            yield from (
                fact for fact in read_lines(_inside(node, source), named=True) if not isinstance(fact, ReadError)
            )
        elif key in _YAML_KEYS or key.endswith((".yaml", ".yml")):
            inner = _inside(node, source)
            for document in documents(inner).roots:
                yield from requirements_in(spanned(document), inner)


def _inside(node: ScalarNode, source: SourceFile) -> SourceFile:
    """The content of a block scalar as a file of its own in which every offset is that of the whole file."""
    start = source.text.find("\n", node.start) + 1
    blank = re.compile(r"[^\r\n]")
    before, after = blank.sub(" ", source.text[:start]), blank.sub(" ", source.text[node.end :])
    return SourceFile(source.path, before + source.text[start : node.end] + after)


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
