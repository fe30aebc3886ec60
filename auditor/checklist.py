"""The isolation checklist of the incident's runbook: five points, each met, exposed, or not shown by this tree.

A point is met or exposed only by evidence with a place in the tree. What a tree cannot show (a process that runs, a
test that was done elsewhere) stays "not shown": it is no accusation and no acquittal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from auditor.model.facts import Definition, EngineLaunch
from auditor.model.findings import Finding, JsonValue, ScanResult
from auditor.model.records import dataclass
from auditor.model.spans import Span

State = Literal["met", "exposed", "not shown by this tree"]
NOT_SHOWN: State = "not shown by this tree"
TITLES = (
    "the pool is held against the context at start-up, in the running process",
    "rejected is a final state of its own and ends before allocation",
    "transferred is compared with reserved on both sides",
    "the failure path is tested on content",
    "the gate runs again at each capacity change",
)
CHECKSUM = "disaggregation-enable-kv-checksum"
LENGTHS_UNCOMPARED = "0.5.23"  # the last release read: none up to it compares transferred and reserved lengths
_ADMISSION = ("split-verdict", "admit-on-negative-state")
_VERSIONS = ("sglang-vulnerable-version", "sglang-vulnerable-image", "sglang-vulnerable-source")
_TRANSFER = ("transfer-done-without-count",)
_POOL = ("missing-capacity-gate", "kv-pool-below-context")
# Where a step runs when a change is proposed or merged.
_CI = re.compile(
    r"(?:^|/)(?:\.github/workflows/|\.forgejo/workflows/|\.gitea/workflows/|\.circleci/|\.buildkite/|\.tekton/|"
    r"\.woodpecker|\.gitlab-ci|azure-pipelines|bitbucket-pipelines|jenkinsfile|\.drone\.)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point: its number from 1, what it asks for, its state, why, and where that stands."""

    number: int
    title: str
    state: State
    reason: str
    evidence: tuple[Span, ...] = ()


def checklist(result: ScanResult) -> tuple[Point, ...]:
    """The five points; none for a tree that says nothing of an engine, and none for a list of single files."""
    facts = result.facts
    if not result.whole_tree or not (facts.packages or facts.images or facts.launches or result.findings):
        return ()
    judges: tuple[Callable[[ScanResult], tuple[State, str, tuple[Span, ...]]], ...] = (
        _start_up,
        _rejected,
        _transferred,
        _content,
        _again,
    )
    return tuple(
        Point(number, title, *judge(result))
        for number, (title, judge) in enumerate(zip(TITLES, judges, strict=True), 1)
    )


def checklist_json(points: Sequence[Point]) -> list[JsonValue]:
    """The points as plain values."""
    return [
        {
            "point": point.number,
            "title": point.title,
            "state": point.state,
            "reason": point.reason,
            "evidence": [
                {"path": span.path, "line": span.start.line, "column": span.start.column} for span in point.evidence
            ],
        }
        for point in points
    ]


def _steps(result: ScanResult, name: str) -> list[Definition]:
    """The steps of the tree that run `auditor gate`, `auditor canary` or `auditor diff`, or do the same themselves."""
    return [fact for fact in result.facts.definitions if fact.domain == "gate" and fact.name == name]


def _findings(result: ScanResult, rules: Sequence[str]) -> list[Finding]:
    """The findings of these rules that count, notes left out: a note is what the tree does not decide."""
    return [finding for finding in result.active if finding.rule in rules and finding.level != "note"]


def _roles(result: ScanResult) -> list[EngineLaunch]:
    return [launch for launch in result.facts.launches if launch.role in ("prefill", "decode")]


def _start_up(result: ScanResult) -> tuple[State, str, tuple[Span, ...]]:
    gates = [gate for gate in _steps(result, "gate") if not _CI.search(gate.span.path)]
    below = [finding for finding in _findings(result, ("kv-pool-below-context",)) if finding.level == "error"]
    if gates and below:
        return "exposed", "a launch has a pool under its context, whatever the step that compares them", _places(below)
    if gates:
        return "met", "a step compares the pool that the engine reports with its context", _places(gates)
    exposed = _findings(result, _POOL)
    if exposed:
        words = "nothing compares them, and a launch has a pool under its context"
        if all(finding.rule == "missing-capacity-gate" for finding in exposed):
            words = "nothing in the tree compares them before a launch takes requests"
        return "exposed", words, _places(exposed)
    return NOT_SHOWN, "no step that asks the running engine", ()


def _rejected(result: ScanResult) -> tuple[State, str, tuple[Span, ...]]:
    code, versions = _findings(result, _ADMISSION), _findings(result, _VERSIONS)
    if code or versions:
        words = []
        if versions:
            words.append("an engine release that admits, or may admit, what was refused")
        if code:
            words.append("code of this tree that does")
        return "exposed", " and ".join(words), _places([*versions, *code])
    if any(finding.rule in (*_ADMISSION, *_VERSIONS) for finding in result.findings):
        return NOT_SHOWN, "a reference that the tree does not decide, or a finding that is suppressed", ()
    from auditor.launch.images import image_verdict
    from auditor.launch.versions import package_verdict

    safe = [fact for fact in result.facts.images if image_verdict(fact.reference).verdict == "safe"]
    pinned = [fact for fact in result.facts.packages if package_verdict(fact).verdict == "safe"]
    if safe or pinned:
        return "met", "every engine reference is a release that refuses at both doors", _places([*safe, *pinned])
    return NOT_SHOWN, "no engine reference", ()


def _transferred(result: ScanResult) -> tuple[State, str, tuple[Span, ...]]:
    code = _findings(result, _TRANSFER)
    if code:
        return "exposed", "code of this tree ends a transfer without counting it", _places(code)
    roles = _roles(result)
    bare = [launch for launch in roles if CHECKSUM not in launch.flags]
    if bare:
        words = f"no release up to {LENGTHS_UNCOMPARED} compares the lengths, and --{CHECKSUM} is off"
        return "exposed", words, _places(bare)
    if {launch.role for launch in roles} == {"prefill", "decode"}:
        words = f"--{CHECKSUM} is on at both roles; it is what sees a short transfer"
        return "met", words, tuple(launch.flags[CHECKSUM].span for launch in roles)
    return NOT_SHOWN, "no pair of prefill and decode launches", ()


def _content(result: ScanResult) -> tuple[State, str, tuple[Span, ...]]:
    canaries = _steps(result, "canary")
    if canaries:
        return "met", "a step sends sentinels across the limit and reads what comes back", _places(canaries)
    return NOT_SHOWN, "no step that runs `auditor canary`", ()


def _again(result: ScanResult) -> tuple[State, str, tuple[Span, ...]]:
    gates = _steps(result, "gate")
    launches = {launch.span.path for launch in result.facts.launches}
    again = [gate for gate in (*gates, *_steps(result, "diff")) if _CI.search(gate.span.path)]
    if again:
        return "met", "a pipeline runs it", _places(again)
    beside = [gate for gate in gates if gate.span.path in launches]
    if beside:
        return "met", "it starts with the worker, so each change of its launch runs it", _places(beside)
    return NOT_SHOWN, "no pipeline and no worker that runs the gate", ()


class _Placed(Protocol):
    @property
    def span(self) -> Span: ...


def _places(items: Iterable[_Placed]) -> tuple[Span, ...]:
    return tuple(sorted({item.span for item in items}))
