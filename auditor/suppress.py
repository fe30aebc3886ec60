"""Inline ignores: `# auditor: ignore[rule-id] reason`, on the line of the finding or alone on the line above it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from auditor.model.findings import Finding, Suppression
from auditor.model.spans import SourceFile, Span

MARKER = b"auditor:"  # in lower case: a file without it has no ignores

# A comment sign, then the directive. The signs are those of the formats that readers know; prose has none before it.
_DIRECTIVE = re.compile(
    r"(?P<sign>\#|//|/\*|<!--|\{\{-?\s*/\*|--|;)\s*auditor:\s*(?P<word>[A-Za-z-]+)(?:\[(?P<rules>[^\]\n]*)\])?(?P<reason>[^\n]*)"
)
_ENDS = re.compile(r"\s*(?:-->|\*/\s*-?\}\}|\*/)\s*$")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One ignore comment: the rules that it names, its reason, its span, and the line that it covers besides its own
    (the next one, when it stands alone). `error` says what is wrong with it; such a comment hides nothing."""

    rules: tuple[str, ...]
    reason: str
    span: Span
    line: int
    error: str = ""


def ignores_of(source: SourceFile) -> list[Ignore]:
    """All ignore comments of a file, the malformed ones with their error."""
    found = []
    for match in _DIRECTIVE.finditer(source.text):
        span = source.span(match.start(), match.end())
        reason = _ENDS.sub("", match["reason"]).strip()
        before = source.text[source.line_starts[span.start.line - 1] : match.start()]
        line = span.start.line + 1 if not before.strip() else span.start.line
        rules = tuple(part.strip() for part in (match["rules"] or "").split(",") if part.strip())
        error = ""
        if match["word"] != "ignore":
            error = f"`auditor: {match['word']}` is not a directive; there is `auditor: ignore[rule-id] reason`"
        elif not rules:
            error = "the ignore names no rule: `auditor: ignore[rule-id] reason`"
        elif not reason:
            error = "the ignore gives no reason: `auditor: ignore[rule-id] reason`"
        found.append(Ignore(rules, reason, span, line, error))
    return found


def suppress(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], list[Ignore]]:
    """The findings, those that an ignore covers marked as suppressed, and the ignores that covered nothing."""
    by_path: dict[str, list[Ignore]] = {}
    for ignore in ignores:
        by_path.setdefault(ignore.span.path, []).append(ignore)
    used: set[int] = set()
    marked = []
    for finding in findings:
        for ignore in by_path.get(finding.span.path, ()):
            if not ignore.error and finding.rule in ignore.rules and _covers(ignore, finding):
                used.add(id(ignore))
                finding = replace(finding, suppressed=Suppression("inline", ignore.reason))
                break
        marked.append(finding)
    return marked, [ignore for ignore in ignores if id(ignore) not in used]


def _covers(ignore: Ignore, finding: Finding) -> bool:
    first, last = finding.span.start.line, finding.span.end.line
    return first <= ignore.span.start.line <= last or first <= ignore.line <= last
