"""Nix expressions: the `pname` and `version` of a derivation, where both are literals beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.syntax.requirement_lines import normalise

_ATTRIBUTE = re.compile(r"(?<![\w.-])(pname|version)\s*=\s*\"([^\"\\\n]*)\"\s*;")
_COMMENT = re.compile(r"#[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|''(?:[^']|'(?!'))*''", re.DOTALL)
NEAR = 400  # characters between the two attributes of one derivation


def read(source: SourceFile) -> Iterator[Fact]:
    """One fact for each derivation; its span runs from the name to the version."""
    text = _without_comments(source.text)
    found = list(_ATTRIBUTE.finditer(text))
    used: set[int] = set()
    for index, name in enumerate(found):
        if name.group(1) != "pname":
            continue
        for other in (index + 1, index - 1):
            if 0 <= other < len(found) and found[other].group(1) == "version" and other not in used:
                version = found[other]
                first, last = sorted((name, version), key=lambda item: item.start())
                between = text[first.end() : last.start()]
                if len(between) < NEAR and "}" not in between and re.match(r"v?\d", version.group(2)):
                    used.add(other)
                    yield PackageReference(
                        normalise(name.group(2)),
                        "pinned",
                        "derivation",
                        source.span(first.start(2), last.end(2)),
                        version=version.group(2),
                    )
                    break


def _without_comments(text: str) -> str:
    """The text with comments blanked, every offset kept; a `#` inside a string starts none."""
    pieces: list[str] = []
    at = 0
    for found in re.finditer(f"{_STRING.pattern}|{_COMMENT.pattern}", text, re.DOTALL):
        if found.group().startswith(("#", "/*")):
            pieces.append(text[at : found.start()])
            pieces.append(re.sub(r"[^\n]", " ", found.group()))
            at = found.end()
    return "".join(pieces) + text[at:]
