"""Makefiles and justfiles: the recipes as shell text, with the variables that the same file defines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Definition, Fact, Hole, Unresolved, Value
from auditor.model.spans import SourceFile
from auditor.syntax.expansion import word_of_text
from auditor.syntax.mapped import Mapped, join, piece_of
from auditor.syntax.shell_lexer import MAKEFILE, SHELL, Dialect

_VARIABLE = re.compile(r"^(?:export[ \t]+|override[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:[:?+]{0,3}=)[ \t]*(.*?)[ \t]*\r?$")
_TARGET = re.compile(r"^@?([A-Za-z0-9_.%/$(){}-]+)[^:=\n]*:(?![=])")
_RECIPE = re.compile(r"^@?([A-Za-z_][\w-]*)(?:[ \t][^\n]*?)?:(?!=)")
_ENVIRONMENT = re.compile(r"env(?:_var_or_default)?\(\s*['\"](\w+)['\"]\s*,\s*(['\"])(.*?)\2\s*\)")
_PARAMETER = re.compile(r"\b([A-Za-z_][\w-]*)=(['\"])(.*?)\2")
_QUOTED = re.compile(r"(['\"])(.*)\1")


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file, recipe by recipe. Raises `ReadError` at a limit of size or depth."""
    name = source.path.rpartition("/")[2].lower()
    dialect = SHELL if "just" in name else MAKEFILE
    variables: dict[str, Definition] = {}
    blocks: list[tuple[str, int, int]] = []
    parameters: dict[str, dict[str, Definition]] = {}
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
            made = _definition(variable[1], text, start, source, dialect, variables)
            if made is not None:
                variables.setdefault(variable[1], made)
            continue
        found = (_RECIPE if dialect is SHELL else _TARGET).match(line)
        target = found[1] if found else ""
        if target and dialect is SHELL:
            parameters[target] = dict(_parameters(line, first, source))
    yield from variables.values()
    for scope, first, last in blocks:
        context = LaunchContext(scope=scope, variables={**variables, **parameters.get(scope, {})})
        yield from script_facts(_recipe(source, first, last), source, context, dialect)


def _definition(
    name: str, text: str, start: int, source: SourceFile, dialect: Dialect, known: Mapping[str, Definition]
) -> Definition | None:
    """What a variable is set to; of an expression of just only a text, or an environment variable with its default."""
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        start, text = start + 1, quoted[2]
    elif dialect is SHELL:
        given = _ENVIRONMENT.fullmatch(text)
        if given is None:
            return None
        span = source.span(start + given.start(3), start + given.end(3))
        return Definition(name, Unresolved(text, (Hole(given[1], given[3]),)), "recipe", "", span)
    span = source.span(start, start + len(text))
    value: Value = text
    if dialect is not SHELL and "$" in text:
        word = word_of_text(Mapped(text, range(start, start + len(text) + 1)), source, dialect)
        value = word.value
        if isinstance(value, Unresolved):
            parts = [
                Hole(part.name, known[part.name].value, known[part.name].span)
                if isinstance(part, Hole) and part.name in known and part.name != name
                else part
                for part in value.parts
            ]
            value = Unresolved(value.text, tuple(parts))
    return Definition(name, value, "recipe", "", span)


def _parameters(line: str, first: int, source: SourceFile) -> Iterator[tuple[str, Definition]]:
    """The parameters of a just recipe that have a default."""
    for match in _PARAMETER.finditer(line):
        span = source.span(first + match.start(3), first + match.end(3))
        yield match[1], Definition(match[1], match[3], "recipe", "", span)


def _recipe(source: SourceFile, first: int, last: int) -> Mapped:
    """The lines of a recipe without their indentation and the signs `@`, `-` and `+` that make reads first."""
    parts = []
    continued = False
    while first < last:
        end = source.text.find("\n", first, last)
        end = last if end < 0 else end + 1
        start = first
        while start < end and source.text[start] in (" \t" if continued else " \t@-+"):
            start += 1
        continued = source.text[start:end].rstrip().endswith("\\")
        parts.append(piece_of(source, start, end))
        first = end
    return join(parts)
