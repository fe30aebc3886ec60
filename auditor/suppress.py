"""What does not count, and why: inline ignores and those of the configuration.

Inline: `# auditor: ignore[rule-id] reason`, on a line of the finding or alone on the line above it, behind any comment
sign of the formats that are read. An ignore at a definition does not reach the place that uses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from auditor.config import Config, IgnoreEntry
from auditor.model.findings import Finding, Suppression
from auditor.model.records import dataclass, replace
from auditor.model.spans import SourceFile, Span

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
    below: dict[int, int] = {}  # from a line with nothing but an ignore to the line that it covers
    for match in _DIRECTIVE.finditer(source.text):
        span = source.span(match.start(), match.end())
        reason = _ENDS.sub("", match["reason"]).strip()
        before = source.text[source.line_starts[span.start.line - 1] : match.start()]
        line = span.start.line
        if not before.strip():
            line += 1
            passed = []
            while line not in below and _alone(source.line_text(line)):  # several ignores above one line
                passed.append(line)
                line += 1
            line = below.get(line, line)
            below.update(dict.fromkeys(passed, line))
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


def _alone(text: str) -> bool:
    found = _DIRECTIVE.search(text)
    return found is not None and not text[: found.start()].strip()


def suppress(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], list[Ignore]]:
    """The findings, those that an ignore covers marked as suppressed, and the ignores that covered nothing."""
    by_line: dict[tuple[str, str], dict[int, int]] = {}  # of a rule in a file: line to the first ignore that covers it
    for number, ignore in enumerate(ignores):
        for rule in () if ignore.error else ignore.rules:
            lines = by_line.setdefault((ignore.span.path, rule), {})
            lines.setdefault(ignore.span.start.line, number)
            lines.setdefault(ignore.line, number)
    used: set[int] = set()
    marked = []
    for finding in findings:
        lines = by_line.get((finding.span.path, finding.rule), {})
        numbers = [lines[line] for line in _lines_of(finding, lines)] if lines else []
        if numbers:
            used.add(min(numbers))
            finding = replace(finding, suppressed=Suppression("inline", ignores[min(numbers)].reason))
        marked.append(finding)
    return marked, [ignore for number, ignore in enumerate(ignores) if number not in used]


@dataclass(frozen=True, slots=True)
class ConfigIgnores:
    """What the configuration silences, resolved for one scan: each entry with the matcher of its files. `root` is the
    configuration's folder."""

    entries: tuple[tuple[IgnoreEntry, Callable[[str], bool]], ...]
    root: str


def config_ignores(config: Config, root: str) -> ConfigIgnores:
    """The entries of `ignores` and of `path` in the order of the file; patterns are relative to the configuration."""
    from pathspec import GitIgnoreSpec

    prefix = "" if config.root is None else os.path.relpath(root, config.root).replace(os.sep, "/") + "/"
    prefix = "" if prefix == "./" else prefix
    found = []
    for entry in (*config.ignores, *_of_paths(config)):
        spec = GitIgnoreSpec.from_lines([entry.path]) if entry.path else None

        def matches(path: str, spec: GitIgnoreSpec | None = spec) -> bool:
            return spec is None or bool(spec.match_file(os.path.normpath(prefix + path).replace(os.sep, "/")))

        found.append((entry, matches))
    return ConfigIgnores(tuple(found), config.root or root)


def _of_paths(config: Config) -> Iterator[IgnoreEntry]:
    for settings in config.paths:
        for rule in settings.ignore:
            yield IgnoreEntry(settings.match, rule, f"ignored for `{settings.match}`", None, "")


def suppress_by_config(
    findings: Sequence[Finding], ignores: ConfigIgnores, today: date
) -> tuple[list[Finding], list[IgnoreEntry], list[IgnoreEntry]]:
    """The findings with those that the configuration silences marked, the entries that silenced nothing, and the
    expired ones that would have."""
    used: set[int] = set()
    expired: dict[int, IgnoreEntry] = {}
    marked = []
    for finding in findings:
        for number, (entry, matches) in enumerate(ignores.entries):
            if (entry.rule and entry.rule != finding.rule) or not matches(finding.span.path):
                continue
            if entry.until is not None and entry.until < today:
                expired[number] = entry
                used.add(number)
                continue
            used.add(number)
            if finding.suppressed is None:
                stands = f" ({_shown(entry.place, ignores.root)})" if entry.place else ""
                finding = replace(finding, suppressed=Suppression("config", entry.reason + stands))
        marked.append(finding)
    unused = [entry for number, (entry, _) in enumerate(ignores.entries) if number not in used and entry.place]
    return marked, unused, list(expired.values())


def _shown(place: str, root: str) -> str:
    """`path:line` with the path as seen from the configuration's folder: the same on every machine."""
    path, _, line = place.rpartition(":")
    if not os.path.isabs(path):
        return place
    return f"{os.path.relpath(path, root).replace(os.sep, '/')}:{line}"


def _lines_of(finding: Finding, lines: Mapping[int, int]) -> list[int]:
    """The lines of the finding that some ignore covers."""
    first, last = finding.span.start.line, finding.span.end.line
    if last - first < len(lines):
        return [line for line in range(first, last + 1) if line in lines]
    return [line for line in lines if first <= line <= last]
