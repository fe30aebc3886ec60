"""Terraform, Nomad and docker-bake files: images, commands, build arguments and variables by their shape."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.syntax.expansion import word_of
from auditor.syntax.hcl import parse
from auditor.syntax.yaml_nodes import MapNode, ScalarNode


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file. Raises `ReadError` where it is no HCL."""
    root = parse(source)
    folder = posixpath.dirname(source.path)
    variables = dict(definitions(root, folder))
    yield from variables.values()
    if "bake" in posixpath.basename(source.path).lower():
        yield from bake_arguments(root, folder, variables)
    context = LaunchContext(deployment=folder or source.path, variables=variables)
    yield from Reading(source).document(root, "other", context)


def definitions(root: MapNode, folder: str) -> Iterator[tuple[str, Definition]]:
    """Variables with a default, locals and settings of a `.tfvars` file, under the names that references use."""
    path = root.source.path.lower()
    for entry in root.own:
        value = entry.value
        kind = entry.key.value
        if kind == "variable" and isinstance(value, MapNode):
            default = value.get("default")
            name = value.text("name")
            if name and isinstance(default, ScalarNode):
                for known in (f"var.{name}", name):
                    yield known, Definition(known, word_of(default).value, "terraform", folder, default.span)
        elif kind == "locals" and isinstance(value, MapNode):
            for local in value.own:
                if isinstance(local.value, ScalarNode):
                    known = f"local.{local.key.value}"
                    yield known, Definition(known, word_of(local.value).value, "terraform", folder, local.value.span)
        elif isinstance(value, ScalarNode) and (path.endswith(".tfvars") or "bake" in path):
            for known in (f"var.{kind}", kind):
                yield known, Definition(known, word_of(value).value, "terraform-value", folder, value.span)


def bake_arguments(root: MapNode, folder: str, variables: dict[str, Definition]) -> Iterator[Definition]:
    """`args` of bake targets as definitions that reach the Dockerfile of the target."""
    for entry in targets(root):
        arguments = entry.map("args")
        context = entry.text("context") or "."
        file = entry.text("dockerfile") or "Dockerfile"
        target = posixpath.normpath(posixpath.join(folder, context if "://" not in context else ".", file))
        for setting in arguments.own if arguments is not None else ():
            if isinstance(setting.value, ScalarNode) and not setting.value.is_null:
                value = word_of(setting.value, variables=variables).value
                yield Definition(setting.key.value, value, "build-arg", target, setting.value.span)


def targets(root: MapNode) -> Iterator[MapNode]:
    """The targets of a bake file, in HCL or JSON."""
    for entry in root.own:
        if entry.key.value != "target" or not isinstance(entry.value, MapNode):
            continue
        nested = [inner.value for inner in entry.value.own if isinstance(inner.value, MapNode)]
        whole = entry.value.get("args") or entry.value.get("dockerfile") or entry.value.get("context")
        if whole is None and nested and not re.search("args|contexts|labels", entry.value.own[0].key.value):
            yield from nested
        else:
            yield entry.value
