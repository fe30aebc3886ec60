"""The context length of a launch against its KV pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from auditor.checks.base import Check, Match
from auditor.model.facts import EngineLaunch, FactSet, Flag, Related


@dataclass(frozen=True, slots=True)
class Params:
    """`headroom` is how many context windows the pool has to hold."""

    headroom: float = 1.25


def tokens(flag: Flag | None) -> int | None:
    """The number of tokens of a flag, `None` where it is absent or not known."""
    if flag is None or isinstance(flag.value, bool) or not isinstance(flag.value, int):
        return None
    return flag.value if flag.value > 0 else None


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each launch whose pool does not, or may not, hold the window that it offers."""
    for launch in facts.launches:
        match = certain(launch)
        if match is not None:
            yield match


def certain(launch: EngineLaunch) -> Match | None:
    """`--max-total-tokens` under `--context-length`: no estimate is needed to know that the pool is too small."""
    context, cap = launch.flags.get("context-length"), launch.flags.get("max-total-tokens")
    window, limit = tokens(context), tokens(cap)
    if context is None or cap is None or window is None or limit is None or limit >= window:
        return None
    return Match(
        outcome="cap-below-context",
        span=context.span,
        subject="context-length",
        scope=launch.scope,
        values={"cap": limit, "context": window, "longest": limit - 7, "band": window - limit + 6},
        properties={"context": window, "pool": limit, "longest_accepted": limit - 7, "role": launch.role},
        related=(Related(cap.span, f"the KV pool is capped at {limit} tokens here"),),
        flow=(
            Related(context.span, f"the front accepts prompts up to the context of {window} tokens"),
            Related(cap.span, f"the KV pool is capped at {limit} tokens"),
        ),
    )


CHECK = Check(
    name="context-against-pool",
    params=Params,
    outcomes=("cap-below-context",),
    fields=("cap", "context", "longest", "band"),
    run=run,
)
