"""Shell scripts: installs, source checkouts, images run or pulled, launches, variables."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import piece_of


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one script. Raises `ReadError` at a limit of size or depth."""
    if "." not in source.path.rpartition("/")[2] and not source.text.startswith("#!"):
        return
    yield from script_facts(piece_of(source), source, LaunchContext())
