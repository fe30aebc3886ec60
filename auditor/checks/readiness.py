"""Whether a worker takes requests before it can answer one, and whether anything compares pool and context first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.launches import SERVING, at_least, span_of, version_of
from auditor.model.facts import EngineLaunch, FactSet, Related
from auditor.model.records import dataclass

_GENERATES = re.compile(r"/health_generate\b|/health\b(?!_)|\bauditor\W+gate\b|/v1/(?:chat/)?completions|/generate\b")
_WITHOUT = re.compile(
    r"tcpSocket|\bnc\s+-\w*z|/dev/tcp/|\bpgrep\b|\bpidof\b|/get_model_info|/model_info|/v1/models|/metrics|"
    r"/get_server_info|/server_info|\bexec (?:/bin/)?true\b|: GET /\Z"
)


@dataclass(frozen=True, slots=True)
class Params:
    """`generating` is the first engine version in which `/health` makes the engine generate a token (as far as wheels
    were read: it does not in 0.4.6.post5, it does in 0.5.3)."""

    generating: str = "0.5.0"


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each launch whose readiness is asked in a way that says nothing of generation, or not at all."""
    for launch in facts.launches:
        if launch.entrypoint not in SERVING:
            continue
        asked = [probe for probe in launch.probes if _kind(probe) != "liveness"]
        ready = [probe for probe in asked if _kind(probe) in ("readiness", "healthcheck")] or asked
        if not launch.probes:
            if launch.image is not None:
                yield _match("absent", launch, None, "no probe")
            continue
        if any(_strong(probe, launch, facts, params) for probe in asked):
            continue
        weak = next((probe for probe in ready if _WITHOUT.search(probe.message) or _plain_health(probe)), None)
        if weak is not None:
            yield _match("weak", launch, weak, weak.message.partition(": ")[2])
        elif not asked and launch.image is not None:
            yield _match("absent", launch, None, "only a liveness probe")


def _kind(probe: Related) -> str:
    return probe.message.partition(":")[0]


def _plain_health(probe: Related) -> bool:
    return re.search(r"/health\b(?!_)", probe.message) is not None


def _strong(probe: Related, launch: EngineLaunch, facts: FactSet, params: Params) -> bool:
    if not _GENERATES.search(probe.message):
        return False
    if not _plain_health(probe):
        return True
    switch = launch.env.get("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION")
    if switch is not None and str(switch.value).strip().lower() in ("0", "false", "no", "n"):
        return False
    return at_least(version_of(launch, facts), params.generating) is not False


def _match(outcome: str, launch: EngineLaunch, probe: Related | None, what: str) -> Match:
    return Match(
        outcome=outcome,
        span=probe.span if probe is not None else span_of(launch),
        subject="readiness",
        scope=launch.scope,
        values={"what": what, "role": launch.role},
        properties={"role": launch.role, "probe": what},
    )


CHECK = Check(
    name="readiness",
    params=Params,
    outcomes=("weak", "absent"),
    fields=("what", "role"),
    run=run,
)


@dataclass(frozen=True, slots=True)
class GateParams:
    """No parameters."""


def ungated(facts: FactSet, params: GateParams) -> Iterator[Match]:
    """One match for each serving launch of a tree in which nothing compares the pool with the context."""
    if any(definition.domain == "gate" and definition.name == "gate" for definition in facts.definitions):
        return
    for launch in facts.launches:
        if launch.entrypoint in SERVING:
            yield Match(
                outcome="absent",
                span=span_of(launch, "context-length"),
                subject="gate",
                scope=launch.scope,
                values={"role": launch.role},
                properties={"role": launch.role},
            )


GATE = Check(
    name="capacity-gate",
    params=GateParams,
    outcomes=("absent",),
    fields=("role",),
    run=ungated,
    whole_tree=True,
)
