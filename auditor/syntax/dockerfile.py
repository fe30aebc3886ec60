"""A Dockerfile as instructions: continuations joined, comments between them dropped, here-documents kept apart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.records import dataclass
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import Mapped

_DIRECTIVE = re.compile(r"#[ \t]*([a-z]+)[ \t]*=[ \t]*(\S+)[ \t]*\Z", re.IGNORECASE)
_NAME = re.compile(r"[ \t]*([A-Za-z]+)(?=[ \t\\`]|\Z)[ \t]*")
_HEREDOC = re.compile(r"<<(-?)[ \t]*([\"']?)([A-Za-z_][\w.-]*)\2")
_WITH_HEREDOC = frozenset({"RUN", "COPY", "ADD"})


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A here-document: its delimiter, its body, and whether variables in it are left to the program that reads it."""

    name: str
    body: Mapped
    literal: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `text` is what follows its name, lines joined with a backslash and a line end as a shell writes
    them; comment lines in between are gone. `start` and `end` are file offsets of the whole."""

    name: str
    text: Mapped
    start: int
    end: int
    heredocs: tuple[Heredoc, ...] = ()


def instructions(source: SourceFile) -> Iterator[Instruction]:
    """The instructions of a file in order. Lines that are none are left out, as the builder would refuse them."""
    text = source.text
    lines = _lines(text)
    escape = _escape_of(text, lines)
    index = 0
    while index < len(lines):
        start, stop, _ = lines[index]
        line = text[start:stop]
        if not line.strip() or line.lstrip().startswith("#"):
            index += 1
            continue
        named = _NAME.match(line)
        if named is None:
            index += 1
            continue
        name = named.group(1).upper()
        chars, offsets, index = _joined(text, lines, index, start + named.end(), escape)
        offsets.append(offsets[-1] + 1 if offsets else stop)
        body = Mapped("".join(chars), offsets)
        heredocs: list[Heredoc] = []
        if name in _WITH_HEREDOC or name == "ONBUILD":
            for match in _HEREDOC.finditer(body.text):
                heredoc, index = _heredoc(source, lines, index, match)
                if heredoc is None:
                    break
                heredocs.append(heredoc)
        end = lines[index - 1][1] if index else stop
        if name == "ONBUILD":
            inner = _NAME.match(body.text)
            if inner is None:
                continue
            name = inner.group(1).upper()
            body = body.piece(inner.end(), len(body.text))
        yield Instruction(name, body, start, end, tuple(heredocs))


def _lines(text: str) -> list[tuple[int, int, int]]:
    """Start, end without the line end, and start of the next, of each line."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for line in (
        text.splitlines(keepends=True) if not re.search("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text) else _plain(text)
    ):
        body = line.rstrip("\r\n")
        found.append((at, at + len(body), at + len(line)))
        at += len(line)
    return found


def _plain(text: str) -> list[str]:
    """Lines by line feed and carriage return alone: `splitlines` knows more ends than a builder does."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text)


def _escape_of(text: str, lines: list[tuple[int, int, int]]) -> str:
    for start, stop, _ in lines:
        match = _DIRECTIVE.match(text[start:stop])
        if match is None:
            break
        if match.group(1).lower() == "escape" and match.group(2) in ("`", "\\"):
            return match.group(2)
    return "\\"


def _joined(
    text: str, lines: list[tuple[int, int, int]], index: int, begin: int, escape: str
) -> tuple[list[str], list[int], int]:
    """The characters of one instruction with their offsets, and the index of the line after it."""
    chars: list[str] = []
    offsets: list[int] = []
    first = True
    while index < len(lines):
        start, stop, _ = lines[index]
        start = begin if first else start
        line = text[start:stop]
        index += 1
        if not first and (not line.strip() or line.lstrip().startswith("#")):
            continue
        first = False
        bare = line.rstrip()
        if bare.endswith(escape):
            cut = len(bare) - 1
            chars.extend((*line[:cut], "\\", "\n"))
            offsets.extend((*range(start, start + cut), start + cut, start + cut))
            continue
        chars.extend(line)
        offsets.extend(range(start, stop))
        break
    return chars, offsets, index


def _heredoc(
    source: SourceFile, lines: list[tuple[int, int, int]], index: int, match: re.Match[str]
) -> tuple[Heredoc | None, int]:
    text = source.text
    chars: list[str] = []
    offsets: list[int] = []
    at = index
    while at < len(lines):
        start, stop, following = lines[at]
        line = text[start:stop]
        bare = line.lstrip("\t") if match.group(1) else line
        at += 1
        if bare == match.group(3):
            offsets.append(offsets[-1] + 1 if offsets else start)
            return Heredoc(match.group(3), Mapped("".join(chars), offsets), bool(match.group(2))), at
        skipped = len(line) - len(bare)
        chars.extend((*bare, "\n"))
        offsets.extend((*range(start + skipped, stop), stop if following > stop else max(start, stop - 1)))
    return None, index  # no end: `<<` was something else
