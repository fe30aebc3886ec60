"""What a revision keeps from being seen: findings that its configuration or a new comment in the tree takes away.

Both trees are judged by their own configuration and by the other one's. A finding that goes away with the judgement and
not with the tree is no repair, and one that appears with it is no damage: both are told apart here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from auditor.config import Config
from auditor.model.findings import LEVELS, Finding, ScanResult
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """Two revisions, each as its own configuration judges it (`old`, `new`) and as the other one's would (`old_anew`,
    `new_as_before`; the same objects where both judge alike). `config` is that of the new one, its `root` relative to
    the top of the tree."""

    old: ScanResult
    new: ScanResult
    old_anew: ScanResult
    new_as_before: ScanResult
    config: Config


@dataclass(frozen=True, slots=True)
class Hidden:
    """A finding of the new tree that nobody sees any more, or sees one level lower: what hides it in words, and whether
    somebody gave a reason for it."""

    finding: Finding
    by: str
    excused: bool


def hidden_findings(compared: Compared) -> tuple[Hidden, ...]:
    """The findings of the new tree that counted by the judgement before, or would have, and do not count now."""
    now = {finding.fingerprint: finding for finding in compared.new.findings}
    silenced = {finding.fingerprint for finding in compared.old.findings if finding.suppressed is not None}
    paths = {finding.span.path for finding in compared.new.findings}
    moved = {
        (finding.rule, finding.identity)
        for finding in compared.old.findings
        if finding.suppressed is not None and finding.span.path not in paths
    }
    found = []
    for finding in compared.new_as_before.findings:
        if finding.suppressed is not None and (
            finding.suppressed.kind != "inline"
            or finding.fingerprint in silenced
            or (finding.rule, finding.identity) in moved
        ):
            continue  # silenced before already
        same = now.get(finding.fingerprint)
        if same is not None and same.suppressed is None and LEVELS.index(same.level) <= LEVELS.index(finding.level):
            continue
        by, excused = _what_hides(finding, same, compared.config)
        found.append(Hidden(finding, by, excused))
    return tuple(found)


def _what_hides(finding: Finding, now: Finding | None, config: Config) -> tuple[str, bool]:
    if now is not None and now.suppressed is None:
        return f"the configuration makes it a {now.level}", False
    if now is not None and now.suppressed is not None:
        if now.suppressed.kind == "inline":
            return f"ignored in place: {now.suppressed.reason}", True
        reasons = [entry.reason for entry in config.ignores]
        excused = any(now.suppressed.reason.startswith(reason) for reason in reasons)
        return f"the configuration ignores it: {now.suppressed.reason}", excused
    if finding.rule in config.ignore:
        return "the configuration leaves the rule out", False
    if config.exclude:
        from pathspec import GitIgnoreSpec

        path = posixpath.relpath(finding.span.path, config.root or ".")
        if GitIgnoreSpec.from_lines(config.exclude).match_file(path):
            return "the configuration excludes the file", False
    return "the configuration judges by another profile or by other parameters", False


def uncovered(compared: Compared, opened: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """New findings of the tree, and those that stood there before and show by the new judgement only."""
    before = {finding.fingerprint: finding for finding in compared.old_anew.active}
    fresh: list[Finding] = []
    shown: list[Finding] = []
    for finding in opened:
        known = before.get(finding.fingerprint) if compared.old_anew is not compared.old else None
        told = known is not None and LEVELS.index(known.level) <= LEVELS.index(finding.level)
        (shown if told else fresh).append(finding)
    return tuple(fresh), tuple(shown)
