"""Compose files: services with their images, commands, builds and devices; `extends`, anchors and merges followed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.images import repository_of
from auditor.launch.parse import LaunchContext
from auditor.model.facts import BUILT, Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Around, Reading
from auditor.readers.yaml_kinds import is_template, kind_of
from auditor.syntax.expansion import word_of
from auditor.syntax.yaml_nodes import Entry, ListNode, MapNode, ScalarNode, documents

MAX_EXTENDS = 20  # services that extend each other in a row


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The facts of one file; a document that is no YAML is an error among them."""
    if is_template(source.path, source.text):
        return  # the Helm reader masks the template first
    answer = documents(source)
    for root in answer.roots:
        if kind_of(source.path, root) == "compose" and isinstance(root, MapNode):
            yield from project(root, source)
    yield from answer.errors


def project(root: MapNode, source: SourceFile) -> Iterator[Fact]:
    """The services first, with what they inherit; then whatever else names an image."""
    reading = Reading(source)
    services = root.map("services")
    folder = posixpath.dirname(source.path)
    name = root.text("name") or source.path
    for entry in services.entries if services is not None else ():
        if not isinstance(entry.value, MapNode):
            continue
        service = extended(entry.value, services)
        yield from build_arguments(service, source, folder)
        context = LaunchContext(deployment=name)
        yield from reading.node(service, entry.key.value, Around(context, "compose"), 0)
        if service is not entry.value:
            reading.seen.add(id(entry.value))
    yield from reading.node(root, "", Around(LaunchContext(deployment=name), "compose"), 0)


def extended(service: MapNode, services: MapNode | None) -> MapNode:
    """The service with the services of the same file that it extends below it."""
    chain = [service]
    while services is not None and len(chain) < MAX_EXTENDS:
        base = chain[-1].get("extends")
        if isinstance(base, MapNode) and base.get("file") is not None:
            break
        name = (
            base.value if isinstance(base, ScalarNode) else base.text("service") if isinstance(base, MapNode) else None
        )
        parent = services.map(name) if name else None
        if parent is None or any(parent is known for known in chain):
            break
        chain.append(parent)
    if len(chain) == 1:
        return service
    whole = MapNode(service.source, service.start, service.tag)
    whole.end = service.end
    known: set[str] = set()
    for part in chain:
        entries: list[Entry] = [entry for entry in part.entries if entry.key.value not in known]
        known.update(entry.key.value for entry in entries)
        whole.own.extend(entries)
    return whole


def build_arguments(service: MapNode, source: SourceFile, folder: str) -> Iterator[Definition]:
    """`build.args` as definitions that reach the Dockerfile of the build, and the image that the build makes."""
    build, image = service.map("build"), service.get("image")
    stated = service.get("build")
    if isinstance(image, ScalarNode) and stated is not None and not (isinstance(stated, ScalarNode) and stated.is_null):
        value = word_of(image).value
        yield Definition(repository_of(value), value, BUILT, source.path, image.span)
    if build is None:
        return
    context = build.text("context") or "."
    target = posixpath.normpath(posixpath.join(folder, context, build.text("dockerfile") or "Dockerfile"))
    arguments = build.get("args")
    if isinstance(arguments, MapNode):
        for entry in arguments.entries:
            if isinstance(entry.value, ScalarNode) and not entry.value.is_null:
                word = word_of(entry.value)
                yield Definition(entry.key.value, word.value, "build-arg", target, entry.value.span)
    elif isinstance(arguments, ListNode):
        for item in arguments.items:
            if isinstance(item, ScalarNode) and "=" in item.value:
                yield from listed(item, target)


def listed(item: ScalarNode, target: str) -> Iterator[Definition]:
    """`NAME=value` of a list."""
    from auditor.syntax.expansion import word_of_text

    name, _, text = item.value.partition("=")
    if text:
        piece = item.mapped.piece(len(name) + 1, len(item.value))
        yield Definition(
            name.strip(),
            word_of_text(piece, item.source).value,
            "build-arg",
            target,
            piece.span(item.source, 0, len(text)),
        )
