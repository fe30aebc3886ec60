"""What an audit says: findings, problems, and the result that reporters turn into a document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

from auditor.model.facts import FactSet, Related
from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span

Level = Literal["error", "warning", "note"]
Confidence = Literal["high", "medium", "low"]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

CONFIDENCE_RANK: dict[str, int] = {"low": 0, "medium": 1, "high": 2}
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
FINGERPRINT_SCHEME = "auditor/1"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding does not count: by an inline comment, by the configuration, or by the baseline."""

    kind: Literal["inline", "config", "baseline"]
    reason: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement that repairs a finding: `text` in place of `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect at one place. `identity` is what it is (kind, subject, scope, ordinal): no line and no version, so
    that a finding that moves, or a bump inside the affected range, stays the same finding. `flow` is the ordered
    story of a finding that joins several places."""

    rule: str
    outcome: str
    level: Level
    confidence: Confidence
    message: str
    span: Span
    identity: tuple[str, ...]
    remedy: str = ""
    related: tuple[Related, ...] = ()
    flow: tuple[Related, ...] = ()
    properties: Mapping[str, JsonValue] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    suppressed: Suppression | None = None
    prefix: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over scheme, rule, path and identity, in hex. The path is that from the repository's root (`prefix`
        leads from there to the root of the scan): an audit of a folder gives what the audit of the whole gives."""
        parts = [FINGERPRINT_SCHEME, self.rule, self.prefix + self.span.path, *self.identity]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()

    @property
    def sort_key(self) -> tuple[str, int, int, str, tuple[str, ...]]:
        """Path, line, column, rule, identity: the order of every report."""
        return (self.span.path, self.span.start.line, self.span.start.column, self.rule, self.identity)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the audit could not read (`unread`), refused to go on with (`limit`), or got wrong itself
    (`internal`); `span` where there is a place to point at. `evidence`: the file holds a needle, so an exposure may
    hide in it."""

    path: str
    reason: str
    kind: Literal["unread", "limit", "internal"]
    span: Span | None = None
    evidence: bool = False


@dataclass(frozen=True, slots=True)
class Stats:
    """What was looked at: `files` seen by the walk, `read` decoded and given to a reader, `notes` in words for the
    summary (a submodule left out, a rule that needs the whole tree)."""

    files: int = 0
    read: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanResult:
    """All that one audit found. `sources` holds the files that findings and problems point into. `prefix` leads from
    the repository root to the root of the scan (`""` or `deploy/`). `whole_tree`: a folder was scanned, not a list of
    single files."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    facts: FactSet
    stats: Stats
    sources: Mapping[str, SourceFile]
    prefix: str = ""
    whole_tree: bool = True

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that count: those that nothing suppresses."""
        return tuple(finding for finding in self.findings if finding.suppressed is None)
