"""Files of `KEY=value` lines: `.env` of compose, env files of services and systemd units."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.yaml_shapes import image_of_text
from auditor.syntax.expansion import word_of_text
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import SHELL

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*(.*?)[ \t]*\Z")


def read(source: SourceFile) -> Iterator[Fact]:
    """The definitions of a file, and the engine images among their values."""
    from auditor.launch.images import family_of

    for definition, text in _lines(source):
        yield definition
        image = image_of_text(text, source, definition.name, source.path, SHELL, {})
        if image is not None and family_of(image.reference) is not None:
            yield image


def definitions_in(source: SourceFile) -> Iterator[Definition]:
    """The definitions of a file in order; a later one of a name wins where they are looked up."""
    for definition, _ in _lines(source):
        yield definition


def _lines(source: SourceFile) -> Iterator[tuple[Definition, Mapped]]:
    text = source.text
    for number, start in enumerate(source.line_starts, 1):
        line = source.line_text(number)
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        value, first = match.group(2), match.start(2)
        literal = value[:1] == "'"
        if value[:1] in "\"'" and value:
            end = value.find(value[0], 1)
            value, first = value[1 : end if end > 0 else len(value)], first + 1
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        begin = start + first
        mapped = Mapped(text[begin : begin + len(value)], range(begin, begin + len(value) + 1))
        word = word_of_text(mapped, source).value if "$" in value and not literal else value
        yield (
            Definition(
                match.group(1), word, "env-file", source.path.rpartition("/")[0], source.span(begin, begin + len(value))
            ),
            mapped,
        )
