"""Every other YAML file, by shape: Ansible, SkyPilot, dstack, Truss, Slurm recipes, GitLab, private schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.parse import LaunchContext
from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.workflow_values import workflow
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import is_template, is_values_name, kind_of
from auditor.syntax.expansion import word_of
from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode, documents


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The facts of the documents that no other reader knows; a document that is no YAML is an error among them."""
    if is_template(source.path, source.text):
        return
    if is_values_name(source.path.lower().rsplit("/", 1)[-1]):
        return
    answer = documents(source)
    reading = Reading(source)
    for root in answer.roots:
        kind = kind_of(source.path, root)
        if kind == "workflow":
            yield from workflow(root, source, reading)
        elif kind in ("other", "gitlab"):
            yield from ansible_variables(root, source)
            yield from reading.document(root, kind, LaunchContext(deployment=source.path))
    yield from answer.errors


_VARIABLE_FILES = re.compile(r"(?:^|/)(?:defaults|vars|group_vars|host_vars)/", re.IGNORECASE)


def ansible_variables(root: Node, source: SourceFile) -> Iterator[Definition]:
    """The variables of a role's defaults and vars, of inventories, and of plays."""
    tables: list[MapNode] = []
    if isinstance(root, MapNode) and _VARIABLE_FILES.search(source.path):
        tables.append(root)
    elif isinstance(root, ListNode):
        plays = (item.map("vars") for item in root.items if isinstance(item, MapNode))
        tables.extend(table for table in plays if table is not None)
    for table in tables:
        for entry in table.own:
            if isinstance(entry.value, ScalarNode) and "\n" not in entry.value.value:
                value = word_of(entry.value).value if "{{" in entry.value.value else entry.value.value
                yield Definition(entry.key.value, value, "ansible", source.path, entry.value.span)
