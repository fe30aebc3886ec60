"""Kubernetes manifests and every custom resource that holds containers, by shape."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import is_template, kind_of
from auditor.syntax.yaml_nodes import MapNode, Node, ScalarNode, documents


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The facts of all documents that are Kubernetes resources; a document that is no YAML is an error among them."""
    if is_template(source.path, source.text):
        return  # the Helm reader masks the template first
    answer = documents(source)
    reading = Reading(source)
    for root in answer.roots:
        if kind_of(source.path, root) == "kubernetes":
            for resource in resources(root):
                yield from config_map(resource)
                yield from reading.document(resource, "kubernetes")
    yield from answer.errors


def resources(root: Node) -> Iterator[MapNode]:
    """The resource of a document, or those of a `List`."""
    if not isinstance(root, MapNode):
        return
    items = [item for item in root.list("items") if isinstance(item, MapNode)]
    if items and (root.text("kind") or "").endswith("List"):
        yield from items
    else:
        yield root


def config_map(root: MapNode) -> Iterator[Fact]:
    """The settings of a ConfigMap, which containers and overlays refer to by name."""
    if root.text("kind") != "ConfigMap":
        return
    data = root.map("data")
    for entry in data.entries if data is not None else ():
        if isinstance(entry.value, ScalarNode) and "\n" not in entry.value.value:
            name = root.text("metadata", "name") or ""
            yield Definition(entry.key.value, entry.value.value, "config-map", name, entry.value.span)
