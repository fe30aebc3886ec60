"""A rule as data: which check it runs, with which parameters, levels, words and examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from auditor.model.findings import Confidence, Level
from auditor.model.records import dataclass, field

Family = Literal["version", "capacity", "code", "engine"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a bad example must give: the outcome, on the text `at` in the file `path`."""

    path: str
    at: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Example:
    """A small tree that the rule is shown on. `assume` is the configuration that the example supposes
    (`gpu: H200`); `expect` is empty for a good example."""

    name: str
    files: Mapping[str, str]
    assume: Mapping[str, str] = field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """Where to read more."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule file, validated. `levels` maps every outcome of the check to a level or to `off`; `strict` does the
    same under the strict profile where the file says more than the general raise by one step. `floor` is the least
    confidence of a match that a profile shows; `measured` the precision found on public code, in words; `severity` the
    number that code-scanning pages sort by, above 0 and up to 10."""

    id: str
    family: Family
    title: str
    check: str
    params: object
    levels: Mapping[str, Level | Literal["off"]]
    strict: Mapping[str, Level | Literal["off"]]
    floor: Mapping[str, Confidence]
    confidence: Confidence
    severity: float
    messages: Mapping[str, str]
    why: str
    remedy: str
    references: tuple[Reference, ...]
    since: str
    measured: str
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    path: str = ""
