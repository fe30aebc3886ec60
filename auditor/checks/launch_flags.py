"""Settings of one launch that move its limits or its checks: a lifted context limit, a checksum that is off."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.launches import at_least, number, span_of, switched_on, version_of
from auditor.model.facts import EngineLaunch, FactSet, Related
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class OverrideParams:
    """`variables` are the environment variables that let a context above the model's own through."""

    variables: tuple[str, ...] = ("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",)


def overrides(facts: FactSet, params: OverrideParams) -> Iterator[Match]:
    """One match for each launch that lifts the limit of the model's own context by environment."""
    for launch in facts.launches:
        for name in params.variables:
            variable = launch.env.get(name)
            if variable is None or not switched_on(variable):
                continue
            flag = launch.flags.get("context-length")
            context, own = number(flag), _own(launch)
            if own is not None and flag is not None and context is not None and context <= own:
                continue  # what the variable lets through is within the model's own window
            place = (Related(flag.span, "the context that is asked for"),) if flag is not None else ()
            asked = f"of {context} tokens" if context else "of any length"
            yield Match(
                outcome="override",
                span=variable.span,
                subject=name,
                scope=launch.scope,
                values={
                    "variable": name,
                    "context": asked,
                    "own": f"of {own} tokens" if own else "which is not known here",
                },
                properties={"variable": name, "context": context, "model_context": own},
                related=place,
                # without a known window on either side the variable may lift a limit that nothing reaches
                level=None if context is not None and own is not None else "note",
            )


def _own(launch: EngineLaunch) -> int | None:
    from auditor.capacity.launch import shape_named

    shape = shape_named(launch)
    return shape.context if shape is not None else None


OVERRIDE = Check(
    name="context-override",
    params=OverrideParams,
    outcomes=("override",),
    fields=("variable", "context", "own"),
    run=overrides,
)


@dataclass(frozen=True, slots=True)
class ChecksumParams:
    """`since` is the first engine version that has the flag."""

    flag: str = "disaggregation-enable-kv-checksum"
    since: str = "0.5.21"


def unchecked(facts: FactSet, params: ChecksumParams) -> Iterator[Match]:
    """One match for each prefill or decode launch that transfers KV pages without the engine's own checksum."""
    for launch in facts.launches:
        if launch.role not in ("prefill", "decode") or params.flag in launch.flags:
            continue
        if at_least(version_of(launch, facts), params.since) is False:
            continue
        yield Match(
            outcome="unchecked",
            span=span_of(launch),
            subject=params.flag,
            scope=launch.scope,
            values={"role": launch.role, "flag": params.flag, "since": params.since},
            properties={"role": launch.role},
        )


CHECKSUM = Check(
    name="transfer-checksum",
    params=ChecksumParams,
    outcomes=("unchecked",),
    fields=("role", "flag", "since"),
    run=unchecked,
)
