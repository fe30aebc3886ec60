"""Apptainer and Singularity definition files: the image they start from, and what their sections run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Fact, ImageReference, Value
from auditor.model.spans import SourceFile
from auditor.syntax.expansion import word_of_text
from auditor.syntax.mapped import Mapped

_HEADER = re.compile(r"[ \t]*(bootstrap|from|stage)[ \t]*:?[ \t]+(\S+)", re.IGNORECASE)
_SECTION = re.compile(r"%(\w+)")
_RUN = frozenset({"post", "runscript", "startscript", "environment", "test", "setup", "pre", "apprun", "appinstall"})


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file. Raises `ReadError` at a limit of size or depth."""
    image: Value | None = None
    section, begin = "", 0
    starts = source.line_starts
    for number, start in enumerate([*starts, len(source.text)], 1):
        line = source.line_text(number) if number <= len(starts) else "%end"
        opened = _SECTION.match(line)
        if opened:
            if section in _RUN:
                text = source.text[begin:start]
                mapped = Mapped(text, range(begin, begin + len(text) + 1))
                yield from script_facts(mapped, source, LaunchContext(scope=section, image=image))
            section = opened.group(1).lower()
            begin = start + len(line) + 1
            continue
        header = _HEADER.match(line) if not section and not line.lstrip().startswith("#") else None
        if header and header.group(1).lower() == "from":
            at = start + header.start(2)
            text = header.group(2)
            value = word_of_text(Mapped(text, range(at, at + len(text) + 1)), source).value
            if not text.startswith(("/", "./")):
                image = value
                yield ImageReference(value, "from", source.span(at, at + len(text)))
