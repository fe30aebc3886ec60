"""Prompts that the engine cuts without a word, and roles that would cut the same prompt at different places."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.launches import number, pairs, related, switched_on
from auditor.model.facts import EngineLaunch, FactSet
from auditor.model.records import dataclass

FLAG = "allow-auto-truncate"


@dataclass(frozen=True, slots=True)
class Params:
    """No parameters."""


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each launch that cuts; `differs` where its partner cuts elsewhere or not at all."""
    told = set()
    for pair in pairs(facts):
        others = [prefill for prefill in pair.prefills if _difference(pair.decode, prefill)]
        if len(others) != len(pair.prefills):
            continue
        for launch in (pair.decode, *others):
            if not cuts(launch) or launch.span in told:
                continue
            told.add(launch.span)
            partners = others if launch is pair.decode else [pair.decode]
            why = _difference(pair.decode, others[0])
            yield _match("differs", launch, why, partners)
    for launch in facts.launches:
        if cuts(launch) and launch.span not in told:
            yield _match("truncates", launch, "", ())


def cuts(launch: EngineLaunch) -> bool:
    """Whether the launch cuts prompts that are too long."""
    return switched_on(launch.flags.get(FLAG))


def _difference(decode: EngineLaunch, prefill: EngineLaunch) -> str:
    """Why the two would end up with prompts of different length; empty when nothing says so."""
    if not cuts(decode) and not cuts(prefill):
        return ""
    if cuts(decode) != cuts(prefill):
        return "only one of the roles cuts"
    for name in ("context-length", "max-total-tokens"):
        mine, other = number(decode.flags.get(name)), number(prefill.flags.get(name))
        if mine != other and (mine is not None or other is not None):
            return f"--{name} is {_said(other)} for prefill and {_said(mine)} for decode"
    return ""


def _said(value: int | None) -> str:
    return "not given" if value is None else str(value)


def _match(outcome: str, launch: EngineLaunch, why: str, partners: list[EngineLaunch] | tuple[()]) -> Match:
    return Match(
        outcome=outcome,
        span=launch.flags[FLAG].span,
        subject=FLAG,
        scope=launch.scope,
        values={"role": launch.role, "why": why},
        properties={"role": launch.role},
        related=related(partners, "the other role", FLAG, "context-length", "max-total-tokens"),
    )


CHECK = Check(
    name="auto-truncation",
    params=Params,
    outcomes=("truncates", "differs"),
    fields=("role", "why"),
    run=run,
    whole_tree=False,
)
