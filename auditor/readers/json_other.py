"""JSON of every schema by shape: manifests, compose and bake files, task definitions, dev containers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers import compose, kubernetes
from auditor.readers.hcl import bake_arguments
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import kind_of
from auditor.syntax import json_spans
from auditor.syntax.mapped import Mapped
from auditor.syntax.spanned import Spanned
from auditor.syntax.yaml_nodes import Entry, ListNode, MapNode, Node, ScalarNode

MAX_CHARS = 8_000_000  # configuration is far smaller; a data set is not searched value by value


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file. Raises `ReadError` where it is no JSON."""
    if len(source.text) > MAX_CHARS:
        return  # the reader of requirement lists says so already
    root = nodes_of(json_spans.parse(source), source)
    kind = kind_of(source.path, root)
    if kind == "compose" and isinstance(root, MapNode):
        yield from compose.project(root, source)
    elif kind == "kubernetes":
        reading = Reading(source)
        for resource in kubernetes.resources(root):
            yield from kubernetes.config_map(resource)
            yield from reading.document(resource, "kubernetes")
    else:
        folder = posixpath.dirname(source.path)
        if "bake" in posixpath.basename(source.path).lower() and isinstance(root, MapNode):
            yield from bake_arguments(root, folder, {})
        yield from Reading(source).document(root, "other", LaunchContext(deployment=source.path))


def nodes_of(value: Spanned, source: SourceFile) -> Node:
    """A JSON value as nodes."""
    if isinstance(value.value, dict):
        table = MapNode(source, value.start, "")
        table.end = value.end
        for name, inner in value.value.items():
            start = inner.key if inner.key >= 0 else inner.start
            key = ScalarNode.placed(source, name, '"', start, start + len(name) + 2, value_place(name, start))
            table.own.append(Entry(key, nodes_of(inner, source)))
        return table
    if isinstance(value.value, list):
        listing = ListNode(source, value.start, "")
        listing.end = value.end
        listing.items = [nodes_of(item, source) for item in value.value]
        return listing
    if isinstance(value.value, str):
        return ScalarNode.placed(source, value.value, '"', value.start, value.end, value.mapped)
    text = source.text[value.start : value.end]
    return ScalarNode.placed(source, text, "", value.start, value.end, value_place(text, value.start))


def value_place(text: str, start: int) -> Mapped:
    """A text that stands as it is written."""
    return Mapped(text, range(start, start + len(text) + 1))
