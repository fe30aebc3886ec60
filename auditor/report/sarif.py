"""SARIF 2.1.0 as GitHub code scanning reads it: one run, whole regions, relative URIs, stable fingerprints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TextIO
from urllib.parse import quote

from auditor import HOMEPAGE, __version__
from auditor.model.facts import Related
from auditor.model.findings import Finding, ScanResult
from auditor.model.rules import Example, Rule
from auditor.model.spans import SourceFile, Span
from auditor.report import ReportOptions
from auditor.visible import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
INFORMATION = HOMEPAGE
IDENTITY = "auditorFinding/v1"
MAX_RESULTS = 25_000  # above it GitHub rejects the file
SHOWN_RESULTS = 5_000  # above it GitHub keeps the most severe ones only
_PRECISION = {"high": "high", "medium": "medium", "low": "low"}
_ORDER = {"error": 0, "warning": 1, "note": 2}


def write(result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
    """Write the log and a final line end."""
    json.dump(log(result, options), stream, indent=2, ensure_ascii=True)
    stream.write("\n")


def log(result: ScanResult, options: ReportOptions) -> dict[str, Any]:
    """The whole log as plain values."""
    rules = sorted(options.rules, key=lambda rule: rule.id)
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    findings = list(result.findings if options.show_suppressed else result.active)
    findings.sort(key=lambda finding: (_ORDER[finding.level], finding.sort_key))
    hashes: dict[str, dict[int, str]] = {}
    notifications = [_notification(problem.path, problem.span, problem.reason, result) for problem in result.problems]
    if len(findings) > MAX_RESULTS:
        text = f"{len(findings)} findings: only the first {MAX_RESULTS} by severity are in this log"
        notifications.append({"level": "warning", "message": {"text": text}})
        findings = findings[:MAX_RESULTS]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "auditor",
                        "semanticVersion": __version__,
                        "version": __version__,
                        "informationUri": INFORMATION,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "automationDetails": {"id": f"auditor/{options.category}/" if options.category else "auditor/"},
                "columnKind": "utf16CodeUnits",
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
                "results": [_result(finding, numbers, result, hashes) for finding in findings],
            }
        ],
    }


def uri_of(path: str, prefix: str) -> str:
    """A relative URI reference from the repository root: percent-encoded, forward slashes."""
    return quote(prefix + path, safe="/-._~", errors="surrogateescape")  # a name need not be UTF-8


def _rule(rule: Rule) -> dict[str, Any]:
    level = next(
        (word for word in ("error", "warning", "note") if word in {*rule.levels.values(), *rule.strict.values()}),
        "note",
    )
    tags = ["security", f"auditor-{rule.family}", "llm-serving", "kv-cache"]
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.id.split("-")),
        "shortDescription": {"text": _sentence(rule.title)},
        "fullDescription": {"text": _limit(_sentence(" ".join(rule.why.split())), 1000)},
        "help": {"text": f"{rule.title}\n\n{rule.why}\n\nWhat to do: {rule.remedy}", "markdown": help_markdown(rule)},
        "helpUri": next((reference.url for reference in rule.references), INFORMATION),
        "defaultConfiguration": {"level": level},
        "properties": {
            "precision": _PRECISION[rule.confidence],
            "security-severity": f"{rule.severity:.1f}",
            "tags": tags,
        },
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _limit(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1].rsplit(" ", 1)[0] + "…"


def help_markdown(rule: Rule) -> str:
    """What the alert page shows beside the finding: the story, two examples, the fix, where to read on."""
    parts = [f"# {rule.title}", rule.why]
    for heading, examples in (("Exposed", rule.bad), ("Safe", rule.good)):
        if examples:
            parts.append(f"## {heading}: {examples[0].name}")
            parts.extend(_example(examples[0]))
    parts += ["## What to do", rule.remedy]
    if rule.measured:
        parts += ["## Measured", rule.measured]
    if rule.references:
        parts.append("## Read more")
        parts.append("\n".join(f"- [{reference.title}]({reference.url})" for reference in rule.references))
    return "\n\n".join(parts)


def _example(example: Example) -> list[str]:
    blocks = []
    for path, content in example.files.items():
        fence = "```"
        while fence in content:
            fence += "`"
        blocks.append(f"`{path}`\n\n{fence}\n{content.rstrip()}\n{fence}")
    return blocks


def _result(
    finding: Finding, numbers: dict[str, int], result: ScanResult, hashes: dict[str, dict[int, str]]
) -> dict[str, Any]:
    source = result.sources[finding.span.path]
    if finding.span.path not in hashes:
        hashes[finding.span.path] = line_hashes(source)
    place = narrowed(finding.span, source)
    entry: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.level,
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": _physical(place, result)}],
        "partialFingerprints": {
            "primaryLocationLineHash": hashes[finding.span.path].get(place.start.line, "0:1"),
            IDENTITY: finding.fingerprint,
        },
        "properties": {"confidence": finding.confidence, **finding.properties},
    }
    if finding.related:
        entry["relatedLocations"] = [
            _related(number, related, result) for number, related in enumerate(finding.related, 1)
        ]
    if finding.flow:
        steps = [{"location": _related(None, step, result)} for step in finding.flow]
        entry["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if finding.suppressed is not None:
        kind = "inSource" if finding.suppressed.kind == "inline" else "external"
        entry["suppressions"] = [{"kind": kind, "justification": finding.suppressed.reason}]
    if finding.edits:
        entry["fixes"] = [_fix(finding, result)]
    return entry


def _message(finding: Finding) -> str:
    text = _sentence(finding.message)
    links = [f"[{_plain(related.message)}]({number})" for number, related in enumerate(finding.related, 1)]
    if links:
        text += " See: " + "; ".join(links) + "."
    if finding.remedy:
        text += " " + _sentence(" ".join(finding.remedy.split()))
    return text


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _physical(span: Span, result: ScanResult) -> dict[str, Any]:
    return {
        "artifactLocation": {"uri": uri_of(span.path, result.prefix)},
        "region": region(span, result.sources[span.path]),
    }


def narrowed(span: Span, source: SourceFile) -> Span:
    """One line of a span that covers several: a pull request shows an alert only where every line of its region was
    changed. Of an option and its value on the next line that is the value's line, of anything longer the first."""
    if span.end.line == span.start.line:
        return span
    line = span.end.line if span.end.line == span.start.line + 1 else span.start.line
    first = source.line_starts[line - 1]
    last = first + len(source.line_text(line).rstrip())
    first += len(source.line_text(line)) - len(source.line_text(line).lstrip())
    start, end = max(first, span.start.offset), min(last, span.end.offset)
    return source.span(start, end) if start < end else span


def region(span: Span, source: SourceFile) -> dict[str, int]:
    """All four numbers, from 1, columns in UTF-16 units; an empty span covers one character."""
    start, end = source.utf16_column(span.start), source.utf16_column(span.end)
    if span.end.line == span.start.line and end <= start:
        end = start + 1
    return {"startLine": span.start.line, "startColumn": start, "endLine": span.end.line, "endColumn": end}


def _related(number: int | None, related: Related, result: ScanResult) -> dict[str, Any]:
    location: dict[str, Any] = {} if number is None else {"id": number}
    location["physicalLocation"] = _physical(related.span, result)
    location["message"] = {"text": _sentence(related.message)}
    return location


def _fix(finding: Finding, result: ScanResult) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in finding.edits:
        deleted = region(edit.span, result.sources[edit.span.path])
        changes.setdefault(edit.span.path, []).append(
            {"deletedRegion": deleted, "insertedContent": {"text": edit.text}}
        )
    return {
        "description": {"text": _sentence(" ".join(finding.remedy.split()) or "Replace the marked text")},
        "artifactChanges": [
            {"artifactLocation": {"uri": uri_of(path, result.prefix)}, "replacements": replacements}
            for path, replacements in sorted(changes.items())
        ],
    }


def _notification(path: str, span: Span | None, reason: str, result: ScanResult) -> dict[str, Any]:
    entry: dict[str, Any] = {"level": "warning", "message": {"text": visible(_sentence(f"{path}: {reason}"))}}
    if path in result.sources:
        physical: dict[str, Any] = {"artifactLocation": {"uri": uri_of(path, result.prefix)}}
        if span is not None:
            physical["region"] = region(span, result.sources[path])
        entry["locations"] = [{"physicalLocation": physical}]
    return entry


# The hash by which GitHub matches alerts: a polynomial over the 100 units that follow a line's start.
_BLOCK = 100
_BASE = 37
_MASK = (1 << 64) - 1
_FIRST = pow(_BASE, _BLOCK, 1 << 64)


def line_hashes(source: SourceFile) -> dict[int, str]:
    """`primaryLocationLineHash` of every line, from 1: 100 UTF-16 units from the line's first kept one, blanks and tabs
    dropped, line ends as LF, base 37 modulo 2^64 in hex, then `:` and how often that hash has come up so far."""
    text = source.data.decode("utf-8", "replace")
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return dict(_line_hashes(units))


def _line_hashes(units: Sequence[int]) -> Iterable[tuple[int, str]]:
    kept: list[int] = []
    starts: list[int] = []  # index into `kept` of the first unit of each line
    fresh = True
    previous = 0
    for unit in units:
        if unit in (0x20, 0x09) or (unit == 0x0A and previous == 0x0D):
            previous = unit
            continue
        previous = unit
        if fresh:
            starts.append(len(kept))
            fresh = False
        if unit in (0x0A, 0x0D):
            kept.append(0x0A)
            fresh = True
        else:
            kept.append(unit)
    if fresh:
        starts.append(len(kept))
    kept.append(65535)
    kept.extend([0] * _BLOCK)
    seen: Counter[int] = Counter()
    value = 0
    for unit in kept[:_BLOCK]:
        value = (value * _BASE + unit) & _MASK
    wanted = dict.fromkeys(starts)
    hashes: dict[int, int] = {}
    for index in range(len(kept) - _BLOCK):
        if index in wanted:
            hashes[index] = value
        value = (value * _BASE + kept[index + _BLOCK] - _FIRST * kept[index]) & _MASK
    for number, start in enumerate(starts, 1):
        seen[hashes[start]] += 1
        yield number, f"{hashes[start]:x}:{seen[hashes[start]]}"
