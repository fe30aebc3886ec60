"""The report for a job's summary or the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TextIO

from auditor.checklist import checklist
from auditor.model.findings import LEVELS, Finding, ScanResult
from auditor.model.spans import Span
from auditor.report import ReportOptions
from auditor.report.terminal import summary
from auditor.visible import visible

MAX_FINDINGS = 300  # a job's summary holds 1 MiB; with details a finding takes about 1 KiB
MAX_POOLS = 50
BAR = 24  # characters of a capacity bar
MARKS = {"error": "🔴", "warning": "🟡", "note": "🔵"}
STATES = {"met": "✅", "exposed": "❌", "not shown by this tree": "➖"}


def write(result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
    """Counts, findings by file with details, capacity bars, what was not read, the checklist."""
    stream.write("\n".join(_lines(result, options)) + "\n")


def _lines(result: ScanResult, options: ReportOptions) -> Iterator[str]:
    yield "## auditor"
    yield ""
    yield escaped(summary(result).splitlines()[0])
    titles = {rule.id: rule.title for rule in options.rules}
    shown = list(result.findings if options.show_suppressed else result.active)
    if shown:
        yield ""
        yield from _counts(shown, titles)
        kept = sorted(sorted(shown, key=lambda finding: LEVELS.index(finding.level))[:MAX_FINDINGS], key=_key)
        yield ""
        yield "### Findings"
        for path, group in groupby(kept, key=lambda finding: finding.span.path):
            yield ""
            yield f"#### {code(result.prefix + path)}"
            yield ""
            told: set[str] = set()
            for finding in group:
                yield from _finding(finding, result, told)
        if len(shown) > len(kept):
            yield ""
            yield f"{len(shown) - len(kept)} more of lower level are left out here; `--format json` has all."
    yield from _pools(result)
    if result.problems and not options.quiet:
        yield ""
        yield f"<details><summary>Not read, or not wholly: {len(result.problems)}</summary>"
        yield ""
        for problem in result.problems:
            place = f":{problem.span.start.line}" if problem.span is not None else ""
            yield f"- {code(result.prefix + problem.path + place)}: {escaped(problem.reason)}"
        yield ""
        yield "</details>"
    if not options.quiet:
        for note in result.stats.notes:
            yield ""
            yield escaped(note)
    yield from _checklist(result)


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.sort_key


def _counts(shown: list[Finding], titles: dict[str, str]) -> Iterator[str]:
    rules = sorted({finding.rule for finding in shown})
    yield "| rule | | error | warning | note |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for rule in rules:
        numbers = [sum(finding.rule == rule and finding.level == level for finding in shown) for level in LEVELS]
        cells = " | ".join(str(number) if number else "" for number in numbers)
        yield f"| {code(rule)} | {escaped(titles.get(rule, ''))} | {cells} |"


def _finding(finding: Finding, result: ScanResult, told: set[str]) -> Iterator[str]:
    place = f"line {finding.span.start.line}"
    word = finding.level if finding.suppressed is None else f"{finding.level}, suppressed"
    yield f"- {MARKS[finding.level]} **{place}** {word} {code(finding.rule)}: {escaped(finding.message)}"
    details = list(_details(finding, result, told))
    if details:
        yield "  <details><summary>more</summary>"
        yield ""
        yield from (f"  {line}".rstrip() for line in details)
        yield ""
        yield "  </details>"


def _details(finding: Finding, result: ScanResult, told: set[str]) -> Iterator[str]:
    source = result.sources.get(finding.span.path)
    if source is not None:
        text = source.line_text(finding.span.start.line).strip()
        yield code(text if len(text) <= 200 else text[:199] + "…")
        yield ""
    for related in finding.related:
        yield f"- {_where(related.span, result)}: {escaped(related.message)}"
    if finding.suppressed is not None:
        yield f"- suppressed ({finding.suppressed.kind}): {escaped(finding.suppressed.reason)}"
    if finding.remedy and finding.remedy not in told:
        told.add(finding.remedy)
        yield "- Fix: " + " ".join(finding.remedy.split())


def _where(span: Span, result: ScanResult, cell: bool = False) -> str:
    return code(f"{result.prefix}{span.path}:{span.start.line}", cell)


def _pools(result: ScanResult) -> Iterator[str]:
    """A bar for each launch whose pool can be estimated: how much of the context window the pool holds."""
    if not result.facts.launches:
        return
    from auditor.capacity.of_launch import engine_version, pool_of

    rows = []
    for launch in result.facts.launches:
        pool = pool_of(launch, engine_version(launch, result.facts), result.facts.models)
        if pool.estimate is None or not pool.context:
            continue
        tokens = pool.estimate.tokens
        size = f"{int(tokens.low):,}" if tokens.is_exact else f"{int(tokens.low):,} to {int(tokens.high):,}"
        role = f" ({launch.role})" if launch.role in ("prefill", "decode") else ""
        bar = code(bar_of(tokens.low / pool.context, tokens.high / pool.context))
        rows.append(f"| {_where(launch.span, result, True)}{role} | {bar} | {size} | {pool.context:,} | {pool.word} |")
    if not rows:
        return
    yield ""
    yield "### KV pool against context window"
    yield ""
    yield "| launch | pool of the window | pool, tokens | context | |"
    yield "| --- | --- | ---: | ---: | --- |"
    yield from rows[:MAX_POOLS]
    if len(rows) > MAX_POOLS:
        yield ""
        yield f"{len(rows) - MAX_POOLS} more launches are left out here."


def bar_of(low: float, high: float, size: int = BAR) -> str:
    """How much of the window the pool holds: `█` for certain, `▒` for perhaps, `░` for what is missing."""
    sure = min(size, int(max(0.0, low) * size))
    perhaps = min(size, max(sure, int(max(0.0, high) * size)))
    return "█" * sure + "▒" * (perhaps - sure) + "░" * (size - perhaps)


def _checklist(result: ScanResult) -> Iterator[str]:
    points = checklist(result)
    if not points:
        return
    yield ""
    yield "### Isolation checklist"
    yield ""
    yield "| | point | state | evidence |"
    yield "| ---: | --- | --- | --- |"
    for point in points:
        places = " ".join(_where(span, result, True) for span in point.evidence[:3])
        more = f" and {len(point.evidence) - 3} more" if len(point.evidence) > 3 else ""
        words = f"{escaped(point.reason)}{': ' if places else ''}{places}{more}"
        yield f"| {point.number} | {escaped(point.title)} | {STATES[point.state]} {point.state} | {words} |"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, inside of a table too; what stands in backquotes stays code."""
    parts = visible(" ".join(text.split())).split("`")
    if len(parts) % 2 == 0:  # an odd number of backquotes: none is a pair
        parts = ["\\`".join(_marks(part) for part in parts)]
        return parts[0]
    return "".join(code(part) if number % 2 else _marks(part) for number, part in enumerate(parts))


def _marks(text: str) -> str:
    for char in "\\*_[]|#~":
        text = text.replace(char, "\\" + char)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def code(text: str, cell: bool = False) -> str:
    """An inline code span that holds any text: the fence is longer than the backquotes inside. In the cell of a table
    a bar is escaped even there."""
    text = visible(" ".join(text.split()))
    if cell:
        text = text.replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""
