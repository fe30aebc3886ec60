"""Workflow commands: annotations on the lines of a pull request, where no SARIF may be uploaded (a fork's token).

GitHub shows ten annotations of each level for one step and drops the others; those come as plain lines of the log.
"""

from __future__ import annotations

from typing import TextIO

from auditor.checklist import checklist
from auditor.model.findings import LEVELS, Finding, ScanResult
from auditor.report import ReportOptions
from auditor.report.sarif import narrowed
from auditor.report.terminal import summary
from auditor.visible import visible

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
SHOWN = 10  # annotations of one level that GitHub keeps for one step


def write(result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
    """One command for each finding that GitHub shows, the gravest first; the rest, what was not read and the summary
    as text."""
    titles = {rule.id: rule.title for rule in options.rules}
    shown = result.findings if options.show_suppressed else result.active
    rest: list[Finding] = []
    for level in LEVELS:
        found = [finding for finding in shown if finding.level == level and finding.suppressed is None]
        for finding in found[:SHOWN]:
            stream.write(_command(finding, result, titles.get(finding.rule, finding.rule)) + "\n")
        rest += found[SHOWN:]
    rest += [finding for finding in shown if finding.suppressed is not None]
    if rest:
        stream.write(f"{len(rest)} more, which GitHub does not show as annotations:\n")
    for finding in rest:
        start = finding.span.start
        word = finding.level if finding.suppressed is None else f"{finding.level}, suppressed"
        where = f"{result.prefix}{finding.span.path}:{start.line}:{start.column}"
        stream.write(plain(f"- {where}: {word} [{finding.rule}] {finding.message}") + "\n")
    if not options.quiet:
        for problem in result.problems:
            place = f":{problem.span.start.line}" if problem.span is not None else ""
            stream.write(plain(f"- not read: {result.prefix}{problem.path}{place}: {problem.reason}") + "\n")
        for point in checklist(result):
            stream.write(plain(f"- checklist {point.number}, {point.title}: {point.state} ({point.reason})") + "\n")
    for line in summary(result).splitlines():
        stream.write(plain(line) + "\n")


def _command(finding: Finding, result: ScanResult, title: str) -> str:
    source = result.sources[finding.span.path]
    span = narrowed(finding.span, source)
    values = {"file": result.prefix + span.path, "line": str(span.start.line)}
    if span.end.line == span.start.line:  # columns of several lines are refused
        first = source.utf16_column(span.start)
        values |= {"col": str(first), "endColumn": str(max(source.utf16_column(span.end), first + 1))}
    else:
        values["endLine"] = str(span.end.line)
    values["title"] = f"{title} ({finding.rule})"
    text = finding.message
    if finding.remedy:
        text += "\n" + " ".join(finding.remedy.split())
    for related in finding.related:
        place = f"{result.prefix}{related.span.path}:{related.span.start.line}"
        text += f"\n{place}: {related.message}"
    properties = ",".join(f"{name}={escape_property(value)}" for name, value in values.items())
    return f"::{COMMANDS[finding.level]} {properties}::{escape_data(text)}"


def escape_data(text: str) -> str:
    """The message of a command: percent first, then the line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """The value of a property: what ends it is escaped too."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def plain(line: str) -> str:
    """A line of the log that the runner cannot take for a command, whatever stands in the tree."""
    line = visible(" ".join(line.splitlines())).replace("##[", "# #[")
    return f"- {line}" if line.lstrip().startswith("::") else line
