"""Every other YAML file, by shape: Ansible, SkyPilot, dstack, Truss, Slurm recipes, GitLab, private schemas."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.parse import LaunchContext
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import is_template, is_values_name, kind_of
from auditor.syntax.yaml_nodes import documents


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
        if kind in ("other", "gitlab", "workflow"):
            yield from reading.document(root, kind, LaunchContext(deployment=source.path))
    yield from answer.errors
