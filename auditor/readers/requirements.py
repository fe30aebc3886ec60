"""Requirements and constraints files of pip, as pip joins and strips their lines.

A file with a telling name is read line by line. Any other text file counts as a requirements file only when every line
of it is a requirement or an option of pip, and then only its references with a version count: a list of words is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.model.facts import Definition, Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import Mapped, join, piece_of
from auditor.syntax.requirement_lines import requirement

NAMED = re.compile(
    r"(?:^|/)(?:[^/]*(?:requirement|constraint|requires|deps)[^/]*|(?:requirements?|constraints|reqs)/[^/]+)$"
)
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_CONTINUED = re.compile(r"\\[ \t]*$")
_EDITABLE = re.compile(r"\s*(?:-e|--editable)(?:\s+|=|(?=\S))\s*[\"']?")
_QUOTED = re.compile(r"\s*([\"'])([^\"']+)\1\s*$")
_STEP = re.compile(r"\s*(-r|--requirement|-c|--constraint)(?:\s+|=|(?=\S))\s*(?:file:)?([^\s:\"']+)\s*$")
_LOCAL = re.compile(r"\s*(?:\.{0,2}/|\.|file:|~)")
_OPTION = re.compile(r"\s*-{1,2}[A-Za-z]")
_BROKEN = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?\s*(?:=+|[<>~!]=?)")


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """One fact for each requirement. A line that begins like one and is none is an error of that line alone."""
    yield from read_lines(source, named=bool(NAMED.search(source.path.lower())))


def read_lines(source: SourceFile, *, named: bool) -> Iterator[Fact | ReadError]:
    """The same; `named` says that the text is known to be a requirements file."""
    facts: list[Fact | ReadError] = []
    for line in logical_lines(source):
        text = line.text
        editable = _EDITABLE.match(text)
        if editable:
            line = line.piece(editable.end(), len(text.rstrip().rstrip("\"'")))
            text = line.text
        quoted = _QUOTED.match(text)
        if quoted:  # pip refuses it, scripts that read the file word by word do not
            line = line.piece(quoted.start(2), quoted.end(2))
            text = line.text
        elif step := _STEP.match(text):
            kind = "pip-constraint" if step.group(1) in ("-c", "--constraint") else "pip-include"
            span = line.span(source, step.start(2), step.end(2))
            facts.append(Definition("include", step.group(2), kind, "", span))
            continue
        fact = requirement(line, source, "")
        if fact is not None:
            if named or fact.kind != "bare":
                facts.append(fact)
        elif editable or _OPTION.match(text) or _LOCAL.match(text) or "://" in text:
            continue
        elif not named:
            return
        elif _BROKEN.match(text):
            facts.append(ReadError("not a requirement that pip can read", line.offsets[0]))
    if named or any(isinstance(fact, PackageReference) for fact in facts):
        yield from facts


def logical_lines(source: SourceFile) -> Iterator[Mapped]:
    """The lines as pip sees them: continued lines joined, comments and blank lines gone."""
    parts: list[Mapped] = []
    starts = source.line_starts
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(source.text)
        text = source.text[start:end].rstrip("\r\n")
        comment = text.lstrip().startswith("#")  # it ends a continuation, as in pip
        continued = None if comment else _CONTINUED.search(text)
        if not comment:
            parts.append(piece_of(source, start, start + (continued.start() if continued else len(text))))
        if not continued and parts:
            yield from stripped(join(parts, " "))
            parts = []
    if parts:
        yield from stripped(join(parts, " "))


def stripped(line: Mapped) -> Iterator[Mapped]:
    """The line without its comment; nothing where nothing is left."""
    comment = _COMMENT.search(line.text)
    if comment:
        line = line.piece(0, comment.start())
    if line.text.strip():
        yield line
