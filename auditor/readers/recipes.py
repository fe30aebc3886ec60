"""Makefiles and justfiles: the recipes as shell text, with the variables that the same file defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import Mapped, join, piece_of
from auditor.syntax.shell_lexer import MAKEFILE, SHELL

_VARIABLE = re.compile(r"^(?:export[ \t]+|override[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:[:?+]{0,3}=)[ \t]*(.*?)[ \t]*\r?$")
_TARGET = re.compile(r"^@?([A-Za-z0-9_.%/$(){}-]+)[^:=\n]*:(?![=])")
_RECIPE = re.compile(r"^@?([A-Za-z_][\w-]*)(?:[ \t][^\n]*?)?:(?!=)")
_QUOTED = re.compile(r"(['\"])(.*)\1")


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file, recipe by recipe. Raises `ReadError` at a limit of size or depth."""
    name = source.path.rpartition("/")[2].lower()
    dialect = SHELL if "just" in name else MAKEFILE
    variables: dict[str, Definition] = {}
    blocks: list[tuple[str, int, int]] = []
    target = ""
    starts = [*source.line_starts, len(source.text)]
    for first, last in pairwise(starts):
        line = source.text[first:last]
        if not line.strip():
            if blocks and blocks[-1][0] == target and blocks[-1][2] == first:
                blocks[-1] = (target, blocks[-1][1], last)
            continue
        if line[0] in "\t " and target:
            if blocks and blocks[-1][0] == target and blocks[-1][2] == first:
                blocks[-1] = (target, blocks[-1][1], last)
            else:
                blocks.append((target, first, last))
            continue
        if line.startswith("#"):
            continue
        variable = _VARIABLE.match(line.rstrip("\n"))
        if variable:
            start, text = first + variable.start(2), variable[2]
            quoted = _QUOTED.fullmatch(text)
            if quoted:
                start, text = start + 1, quoted[2]
            variables.setdefault(
                variable[1], Definition(variable[1], text, "recipe", "", source.span(start, start + len(text)))
            )
            continue
        found = (_RECIPE if dialect is SHELL else _TARGET).match(line)
        target = found[1] if found else ""
    yield from variables.values()
    for scope, first, last in blocks:
        context = LaunchContext(scope=scope, variables=variables)
        yield from script_facts(_recipe(source, first, last), source, context, dialect)


def _recipe(source: SourceFile, first: int, last: int) -> Mapped:
    """The lines of a recipe without their indentation and the signs `@`, `-` and `+` that make reads first."""
    parts = []
    while first < last:
        end = source.text.find("\n", first, last)
        end = last if end < 0 else end + 1
        start = first
        while start < end and source.text[start] in " \t@-+":
            start += 1
        parts.append(piece_of(source, start, end))
        first = end
    return join(parts)
