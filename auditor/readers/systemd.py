"""systemd units: what `ExecStart=` runs, with the unit's environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Definition, Fact, Flag
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import piece_of

_SETTING = re.compile(
    r"^[ \t]*([A-Za-z]+)[ \t]*=[ \t]*((?:[^\n\\]|\\[^\n]|\\\r?\n(?:[ \t]*[#;][^\n]*\n)*)*)", re.MULTILINE
)
_ASSIGNMENT = re.compile(r"(\"?)([A-Za-z_]\w*)=((?:[^\"\s]|(?<=\\)\s)*|[^\"]*(?=\"))")
_RUNS = {"ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload", "Exec"}
_IMAGE = {"Image"}  # Quadlet container units


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one unit. Raises `ReadError` at a limit of size or depth."""
    settings = [match for match in _SETTING.finditer(source.text) if not match[0].lstrip().startswith(("#", ";"))]
    env: dict[str, Flag] = {}
    variables: dict[str, Definition] = {}
    for match in settings:
        if match[1] == "Environment":
            for pair in _ASSIGNMENT.finditer(source.text, match.start(2), match.end(2)):
                span = source.span(pair.start(3), pair.end(3))
                env[pair[2]] = Flag(pair[2], pair[3], span, pair[2])
                variables[pair[2]] = Definition(pair[2], pair[3], "systemd", "", span)
    context = LaunchContext(env=env, variables=variables)
    for match in settings:
        start, end = match.start(2), match.end(2)
        if match[1] in _RUNS:
            while start < end and source.text[start] in "@-:+!|":
                start += 1
            yield from script_facts(piece_of(source, start, end), source, context)
        elif match[1] in _IMAGE:
            from auditor.model.facts import ImageReference

            value = match[2].strip()
            if value and not value.endswith((".image", ".build")):
                yield ImageReference(value, "", source.span(start, start + len(value)))
