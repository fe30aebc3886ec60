"""The report for a reader at a terminal or in a CI log: grouped by file, the source line with the span marked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from auditor.checklist import Point, checklist
from auditor.model.findings import LEVELS, Finding, ScanResult
from auditor.model.spans import SourceFile, Span
from auditor.report import ReportOptions
from auditor.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

Piece = tuple[str, str]  # text and its style

STATES = {"met": "green", "exposed": "bold red", "not shown by this tree": "dim"}
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
MAX_LINES = 3  # of a span that covers many
MAX_MARKED = 200  # characters of one line that are shown at most when the span is longer than the line's room
MANY = 20  # findings of one rule from which the counts of all are shown
LOG_WIDTH = 160  # a CI log has no width of its own: wide enough to keep a message whole, short enough to read


def write(result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
    """Findings by file, then what was not read, then one line that sums up."""
    points = () if options.quiet else checklist(result)
    if not result.findings and not result.problems and not points:
        stream.write(summary(result) + "\n")
        return
    console = console_for(stream, options)
    shown = result.findings if options.show_suppressed else result.active
    told: set[str] = set()  # what to do is said once: a fleet has the same finding in twenty manifests
    for path, group in groupby(shown, key=lambda finding: finding.span.path):
        console.line((visible(_not_a_command(path)), "bold underline"))
        source = result.sources.get(path)
        for finding in group:
            _finding(console, finding, source, told)
        console.line()
    if result.problems and not options.quiet:
        console.line(("Not read, or not wholly:", "bold"))
        for problem in result.problems:
            place = problem.path if problem.span is None else f"{problem.path}:{problem.span.start.line}"
            console.line((visible(f"  {place}: {problem.reason}"), ""), whole=True)
        console.line()
    _checklist(console, points)
    worst = next((level for level in LEVELS if any(finding.level == level for finding in result.active)), None)
    stops = () if options.fail_on == "never" else LEVELS[: LEVELS.index(options.fail_on) + 1]
    first = next((finding for finding in result.active if finding.level in stops), None)
    if first is not None and not options.quiet:
        console.line((visible(f"To keep a place that you have judged: {keeping(first)}"), "dim"), whole=True)
    console.line((summary(result), STYLES[worst] if worst else "green"), whole=True)


def keeping(finding: Finding) -> str:
    """How somebody keeps what a finding is about: the comment that covers it, without its sign, so that a log of the
    audit holds no ignore; where the file has none (JSON) or a tool writes it (a lock), an entry in the settings."""
    name = finding.span.path.lower()
    if name.endswith((".json", ".ipynb", ".lock")):
        return f'`[[tool.auditor.ignores]]` with path, rule = "{finding.rule}" and reason'
    return f"the comment `auditor: ignore[{finding.rule}] the reason` on its line, or alone on the line above"


def _not_a_command(path: str) -> str:
    """The path so that a CI runner which reads the log cannot take it for a command of its own."""
    return f"./{path}" if path.startswith(("::", "##[")) else path


class Plain:
    """Where nobody sees colours and no line has to fit: `rich` is not even imported, and ten thousand findings take a
    moment. `width` is the room for the lines of a file."""

    def __init__(self, stream: TextIO, width: int) -> None:
        self.stream, self.width = stream, width

    def line(self, *pieces: Piece, whole: bool = False) -> None:
        """One line."""
        self.stream.write("".join(text for text, _ in pieces) + "\n")

    def source(self, piece: Piece) -> None:
        """A line of a file, or the marks below it, cut at the width."""
        text = piece[0]
        if _cells(text) > self.width:
            from rich.cells import set_cell_size

            text = set_cell_size(text, self.width)
        self.stream.write(text + "\n")


class Styled:
    """A terminal: lines are wrapped to its width, unless they are to stay `whole`."""

    def __init__(self, console: Console) -> None:
        self.console, self.width = console, console.width

    def line(self, *pieces: Piece, whole: bool = False) -> None:
        """One line, or as many as it takes."""
        from rich.text import Text

        self.console.print(Text.assemble(*pieces), soft_wrap=whole or not self.console.is_terminal)

    def source(self, piece: Piece) -> None:
        """A line of a file, or the marks below it, cut at the width."""
        from rich.text import Text

        self.console.print(Text(*piece), no_wrap=True, overflow="crop", crop=False)


def _checklist(console: Plain | Styled, points: Sequence[Point]) -> None:
    if points:
        console.line(("Isolation checklist:", "bold"))
    for point in points:
        why = visible(f"({point.reason}{places(point)})")
        state = (point.state, STATES[point.state])
        console.line((f"  {point.number} ", ""), state, (f": {point.title} ", ""), (why, "dim"))


def places(point: Point) -> str:
    """The first place of the evidence, and how many more there are."""
    if not point.evidence:
        return ""
    first = point.evidence[0]
    more = f" and {len(point.evidence) - 1} more" if len(point.evidence) > 1 else ""
    return f": {first.path}:{first.start.line}{more}"


def console_for(stream: TextIO, options: ReportOptions) -> Plain | Styled:
    """A console as wide and as colourful as the stream allows; `NO_COLOR` and `CI` are honoured; characters that the
    stream cannot encode are replaced, never an error."""
    interactive = stream.isatty()
    width = options.width
    if width is None and not interactive:
        width = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else LOG_WIDTH
    colour = options.colour if options.colour is not None else (None if interactive else False)
    if not interactive and not colour:
        return Plain(stream, width or LOG_WIDTH)
    from rich.console import Console

    return Styled(
        Console(
            file=stream,
            width=width,
            force_terminal=True if colour else None,
            no_color=colour is False or None,
            color_system="auto" if colour is not False else None,
            emoji=False,
            soft_wrap=False,
        )
    )


def summary(result: ScanResult) -> str:
    """One line: how many findings of each level, in how many files, out of what was looked at."""
    active = result.active
    files = f"{result.stats.files} file{'s' if result.stats.files != 1 else ''}"
    parts = [_count(sum(finding.level == level for finding in active), level) for level in LEVELS]
    parts = [part for part in parts if part]
    if parts:
        where = len({finding.span.path for finding in active})
        line = f"{', '.join(parts)} in {where} file{'s' if where > 1 else ''}"
    else:
        line = "no findings"
    line += f"; {files} looked at, {result.stats.read} read"
    suppressed = len(result.findings) - len(active)
    if suppressed:
        line += f"; {suppressed} suppressed"
    unread = len({problem.path for problem in result.problems})
    if unread:
        line += f"; {unread} not read, or not wholly"
    return line + _by_rule(active) + "".join(f"\n{visible(note)}" for note in result.stats.notes)


def _by_rule(active: Sequence[Finding]) -> str:
    """How many findings of each rule, the gravest first, where one rule has so many that they hide the others."""
    levels: dict[str, int] = {}
    counts = Counter(finding.rule for finding in active)
    for finding in active:
        levels[finding.rule] = min(levels.get(finding.rule, len(LEVELS)), LEVELS.index(finding.level))
    if len(counts) < 2 or max(counts.values()) < MANY:
        return ""
    order = sorted(counts, key=lambda rule: (levels[rule], -counts[rule], rule))
    return "\nby rule: " + ", ".join(f"{counts[rule]} {rule}" for rule in order)


def _count(number: int, level: str) -> str:
    return f"{number} {level}{'s' if number > 1 else ''}" if number else ""


def _finding(console: Plain | Styled, finding: Finding, source: SourceFile | None, told: set[str]) -> None:
    start = finding.span.start
    word = finding.level if finding.suppressed is None else f"{finding.level}, suppressed"
    place, level = (f"  {start.line}:{start.column} ", ""), (word, STYLES[finding.level])
    console.line(place, level, (f" [{finding.rule}] ", "dim"), (visible(finding.message), ""))
    if source is not None:
        for piece in _marked(source, finding.span, console.width):
            console.source(piece)
    for related in finding.related:
        where = f"{related.span.path}:{related.span.start.line}:{related.span.start.column}"
        console.line((visible(f"       see {where}: {related.message}"), "dim"))
    if finding.suppressed is not None:
        why = visible(f"       suppressed ({finding.suppressed.kind}): {finding.suppressed.reason}")
        console.line((why, "dim"))
    elif finding.remedy and finding.remedy not in told:
        told.add(finding.remedy)
        console.line((visible("       fix: " + " ".join(finding.remedy.split())), ""))


def _marked(source: SourceFile, span: Span, width: int) -> Iterator[Piece]:
    """The lines of a span, three at most, each with the part that belongs to it marked below."""
    last_line = min(span.end.line, span.start.line + MAX_LINES - 1)
    for line in range(span.start.line, last_line + 1):
        text = source.line_text(line)
        first = span.start.column - 1 if line == span.start.line else len(text) - len(text.lstrip())
        last = span.end.column - 1 if line == span.end.line else len(text.rstrip())
        if line > span.start.line and last <= first:
            continue
        yield from _line(line, text, first, last, width)
    if last_line < span.end.line:
        yield f"      | … to line {span.end.line}", "dim"


def _line(line: int, text: str, first: int, last: int, width: int) -> Iterator[Piece]:
    gutter = f"{line:>5} | "
    room = max(20, width - len(gutter) - 2)
    cut = 0
    if last > room:  # a long line is shown around its span, never cut through it where it fits
        cut = max(0, min(first - 10, last - room))
    shown = visible(text[cut : cut + max(room, min(last - first, MAX_MARKED))].replace("\t", " "))
    lead = "…" if cut else ""
    yield gutter + lead + shown, ""
    before, marked = shown[: first - cut], shown[first - cut : last - cut]
    marks = " " * (_cells(before) + len(lead)) + "^" * max(1, _cells(marked))
    yield " " * (len(gutter) - 2) + "| " + marks, "bold"


def _cells(text: str) -> int:
    """The room that a text takes: wide characters fill two cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
