"""Prompts between the longest one that the scheduler serves and the longest one that the front lets through."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.launches import at_least, number, version_of
from auditor.model.facts import FactSet, Related
from auditor.model.records import dataclass

MARGIN = 7
"""`managers/tp_worker.py` and `managers/utils.py`, 0.4.6 to 0.5.23: max_req_input_len = min(context, pool) - 6, and a
prompt of that length is rejected, so the longest one that is served has min(context, pool) - 7 tokens. The tokenizer
lets context - 1 through (`managers/tokenizer_manager.py`)."""


@dataclass(frozen=True, slots=True)
class Params:
    """`fixed` is the first engine version in which a rejected prompt is retired at the door."""

    fixed: str = "0.5.22"


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each deployment of prefill and decode with a known context and no limit in front of it, on the
    launch that serves the shortest prompts."""
    found: dict[tuple[str, str], Match] = {}
    for match in _bands(facts, params):
        key = (match.span.path, match.subject)
        if key not in found or match.values["longest"] < found[key].values["longest"]:  # type: ignore[operator]
            found[key] = match
    yield from found.values()


def _bands(facts: FactSet, params: Params) -> Iterator[Match]:
    limits = [
        definition.value
        for definition in facts.definitions
        if definition.domain == "gate" and definition.name == "edge-limit" and isinstance(definition.value, int)
    ]
    for launch in facts.launches:
        flag, cap = launch.flags.get("context-length"), launch.flags.get("max-total-tokens")
        context, pool = number(flag), number(cap)
        if launch.role not in ("prefill", "decode") or flag is None or context is None:
            continue
        if pool is not None and pool < context:
            continue  # the finding on the cap names this band already
        longest = (context if pool is None else min(context, pool)) - MARGIN
        if longest < 1 or at_least(version_of(launch, facts), params.fixed):
            continue
        if any(limit <= longest for limit in limits):
            continue
        yield Match(
            outcome="open-band",
            span=flag.span,
            subject=f"context-length {launch.deployment}".strip(),
            scope=launch.scope,
            values={"context": context, "longest": longest, "front": context - 1, "band": context - 1 - longest},
            properties={
                "context": context,
                "pool": pool,
                "longest_accepted": longest,
                "front_limit": context - 1,
                "band": context - 1 - longest,
                "role": launch.role,
            },
            related=(Related(cap.span, f"the KV pool is capped at {pool} tokens here"),) if cap is not None else (),
        )


CHECK = Check(
    name="edge-limit",
    params=Params,
    outcomes=("open-band",),
    fields=("context", "longest", "front", "band"),
    run=run,
)
