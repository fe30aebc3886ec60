"""TOML of every schema by shape: engine images, commands, launches."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.json_other import nodes_of
from auditor.readers.workloads import Reading
from auditor.syntax import toml_spans


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file. Raises `ReadError` where it is no TOML."""
    root = nodes_of(toml_spans.parse(source), source)
    yield from Reading(source).document(root, "other", LaunchContext(deployment=source.path))
