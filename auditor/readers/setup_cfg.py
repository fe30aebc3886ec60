"""setup.cfg and tox.ini: requirement lists under the options that setuptools and tox install from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.readers.requirements import stripped
from auditor.syntax.mapped import Mapped, piece_of
from auditor.syntax.requirement_lines import normalise, requirement

_SECTION = re.compile(r"\[([^\]]+)\]\s*(?:[#;].*)?$")
_OPTION = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:](?![=:])\s*(.*)$")
_LISTS = {"install_requires", "setup_requires", "tests_require", "deps", "requires", "requires-dist", "extras"}


def read(source: SourceFile) -> Iterator[Fact]:
    """The project itself, then the requirements of each list, scope by section and option."""
    name: tuple[str, int, int] | None = None
    version: tuple[str, int, int] | None = None
    facts: list[PackageReference] = []
    for section, option, value in _values(source):
        text = value.text.strip()
        if section == "metadata" and option in ("name", "version") and text:
            start = value.offsets[len(value.text) - len(value.text.lstrip())]
            found = (text, start, start + len(text))
            name, version = (found, version) if option == "name" else (name, found)
        elif section == "options.extras_require" or (section.startswith("options") and option in _LISTS):
            scope = f"extra {option}" if section == "options.extras_require" else option
            facts.extend(_requirements(value, source, scope))
        elif section.startswith("testenv") and option == "deps":
            facts.extend(_requirements(value, source, section))
    own = normalise(name[0]) if name else None
    if name and own:
        stated = version[0] if version and re.match(r"v?\d", version[0]) else None
        end = version[2] if stated and version and version[1] > name[1] else name[2]
        yield PackageReference(own, "source", "project", source.span(name[1], end), version=stated)
    yield from (fact for fact in facts if fact.name != own)


def _requirements(value: Mapped, source: SourceFile, scope: str) -> Iterator[PackageReference]:
    for line in stripped(value):
        text = re.sub(r"^\s*[A-Za-z0-9_,{}!.-]+:\s+", lambda found: " " * len(found.group()), line.text)
        fact = requirement(Mapped(text, line.offsets), source, scope)
        if fact is not None:
            yield fact


def _values(source: SourceFile) -> Iterator[tuple[str, str, Mapped]]:
    """Section, option and each line of its value."""
    section, option = "", ""
    for number, start in enumerate(source.line_starts):
        text = source.line_text(number + 1)
        if not text.strip() or text.lstrip().startswith(("#", ";")):
            continue
        if text[0].isspace():
            yield section, option, piece_of(source, start, start + len(text))
            continue
        header = _SECTION.match(text)
        if header:
            section, option = header.group(1).strip().lower(), ""
            continue
        pair = _OPTION.match(text)
        if pair:
            option = pair.group(1).strip().lower()
            yield section, option, piece_of(source, start + pair.start(2), start + len(text))
