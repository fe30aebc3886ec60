"""The parameters of the code checks: every word that a check compares names with, so that a rule file can set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from auditor.checks.code_words import AdmissionWords, StateWords, Words


@dataclass(frozen=True, slots=True)
class AdmitParams:
    """`known_enums` gives the members of enumerations that live in packages outside of the scanned tree, by the dotted
    name that they are imported under; `far_predicates` are predicates that cover every end (futures, tasks)."""

    states: StateWords = field(default_factory=StateWords)
    admits: AdmissionWords = field(default_factory=AdmissionWords)
    known_enums: Mapping[str, Words] = field(default_factory=dict)
    far_predicates: Words = ("done",)


@dataclass(frozen=True, slots=True)
class SplitParams:
    """`holders` are words of a class name that make its doors the entrance of a queue: there confidence is high."""

    states: StateWords = field(default_factory=StateWords)
    admits: AdmissionWords = field(default_factory=AdmissionWords)
    holders: Words = (
        "queue", "pool", "room", "waiting", "lobby", "backlog", "inbox", "mailbox", "buffer", "line", "waitlist",
        "intake", "hopper", "lane", "channel", "store", "stack", "heap", "reservoir", "gate", "desk", "dock",
    )  # fmt: skip
