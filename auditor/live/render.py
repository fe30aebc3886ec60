"""Reports of the live checks: for a terminal, and as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence

from auditor.live.outcome import SCHEMA_VERSION, Result, Status, Verdict
from auditor.model.findings import JsonValue

ORDER: tuple[Status, ...] = ("fail", "undecided", "note", "pass")
WORDS: Mapping[Status, str] = {"fail": "FAIL", "undecided": "UNDECIDED", "note": "note", "pass": "pass"}
COLOURS: Mapping[Status, str] = {"fail": "31;1", "undecided": "33;1", "note": "36", "pass": "32"}


def document(
    command: str, outcome: Verdict, code: int, results: Sequence[Result], extra: Mapping[str, JsonValue]
) -> str:
    """The JSON document of a check."""
    value: dict[str, JsonValue] = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "verdict": outcome,
        "exit_code": code,
        **extra,
        "results": [result.document() for result in results],
    }
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def terminal(
    command: str,
    outcome: Verdict,
    code: int,
    results: Sequence[Result],
    *,
    head: Sequence[str] = (),
    tail: Sequence[str] = (),
    colour: bool = False,
    width: int | None = None,
) -> str:
    """The report for people: the verdict, what was looked at, the failures first, what to do. `width` wraps messages;
    `None` (a log, a pipe) leaves each on one line."""
    word: Status = outcome
    lines = [f"auditor {command}: {paint(WORDS[word], word, colour)} (exit {code})", ""]
    if head:
        lines += [*(printable(line) for line in head), ""]
    for status in ORDER:
        for result in results:
            if result.status == status:
                lines += _lines(result, colour, width)
    if tail:
        lines += ["", *tail]
    return "\n".join(lines) + "\n"


def _lines(result: Result, colour: bool, width: int | None) -> list[str]:
    label = paint(f"{WORDS[result.status]:<9}", result.status, colour)
    message = printable(result.message)
    subject = printable(result.subject)
    if result.status == "pass" or not subject:
        return [f"  {label} {result.id:<22} {subject + ': ' if subject else ''}{message}"]
    body = textwrap.wrap(message, max(width - 12, 40)) if width is not None else [message]
    return [f"  {label} {result.id:<22} {subject}", *(f"            {line}" for line in body)]


def terminal_width(output: str | None) -> int | None:
    """Columns of the terminal that the report goes to; `None` when it goes to a file, a pipe or a CI log."""
    if output is not None or os.environ.get("CI") or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size((100, 24)).columns


def paint(text: str, status: Status, colour: bool) -> str:
    """Text in the colour of its status."""
    return f"\x1b[{COLOURS[status]}m{text}\x1b[0m" if colour else text


def wants_colour(output: str | None) -> bool:
    """Whether the report goes to a terminal that shows colour (`NO_COLOR`, `CI` and `TERM=dumb` say no)."""
    if output is not None or os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def say(text: str, quiet: bool) -> None:
    """A line about what is going on, on standard error."""
    if not quiet:
        sys.stderr.write(f"auditor: {printable(text)}\n")


def printable(text: str) -> str:
    """Text from outside without control characters: a peer must not steer the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
