"""Kustomizations: `images:` entries, the bases below them, and patches."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.parse import LaunchContext
from auditor.model.facts import Definition, Fact, ImageReference
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import kind_of
from auditor.readers.yaml_shapes import joined_value
from auditor.syntax.yaml_nodes import MapNode, ScalarNode, documents

BASE_KEYS = ("resources", "bases", "components", "patchesStrategicMerge")


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The facts of one file; a document that is no YAML is an error among them."""
    answer = documents(source)
    for root in answer.roots:
        if kind_of(source.path, root) == "kustomization" and isinstance(root, MapNode):
            yield from bases(root, source)
            yield from overrides(root, source)
            reading = Reading(source)
            reading.seen.update(id(node) for node in (root.get("images"),) if node is not None)
            yield from reading.document(root, "other", LaunchContext(deployment=posixpath.dirname(source.path)))
    yield from answer.errors


def bases(root: MapNode, source: SourceFile) -> Iterator[Definition]:
    """What a kustomization builds on: one definition for each entry, named by its path."""
    folder = posixpath.dirname(source.path)
    for key in BASE_KEYS:
        for item in root.list(key):
            if isinstance(item, ScalarNode) and "://" not in item.value and "\n" not in item.value:
                path = posixpath.normpath(posixpath.join(folder, item.value.strip()))
                yield Definition(path, key, "kustomize-base", source.path, item.span)


def overrides(root: MapNode, source: SourceFile) -> Iterator[Fact]:
    """`images:` entries: what the image of a name becomes. The span is the text to change, the tag before all."""
    for item in root.list("images"):
        if not isinstance(item, MapNode):
            continue
        name, new_name = item.get("name"), item.get("newName")
        tag, digest = item.get("newTag"), item.get("digest")
        given = [node for node in (tag, digest, new_name) if isinstance(node, ScalarNode) and not node.is_null]
        if not isinstance(name, ScalarNode) or not given:
            continue
        repository = new_name.value if isinstance(new_name, ScalarNode) and not new_name.is_null else name.value
        parts: list[str] = [repository]
        if isinstance(tag, ScalarNode) and not tag.is_null:
            parts.extend((":", tag.value))
        if isinstance(digest, ScalarNode) and not digest.is_null:
            parts.extend(("@", digest.value))
        value = joined_value(list(parts))
        yield Definition(name.value, value, "kustomize-image", source.path, given[0].span)
        yield ImageReference(value, source.path, given[0].span)
