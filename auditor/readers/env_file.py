"""`.env` files: definitions that compose files, scripts and services take their variables from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile

_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)


def read(source: SourceFile) -> Iterator[Fact]:
    """One definition for each `KEY=value` line; quotes are taken off, a comment behind an unquoted value too."""
    for match in _LINE.finditer(source.text):
        start, text = match.start(2), match[2]
        if text[:1] in "\"'" and text[:1]:
            end = text.find(text[0], 1)
            value = text[1:end] if end > 0 else text[1:]
            start += 1
        else:
            value = re.split(r"[ \t]+#", text, maxsplit=1)[0] if not text.startswith("#") else ""
        span = source.span(start, start + len(value))
        yield Definition(match[1], value, "env-file", source.path.rpartition("/")[0], span)
