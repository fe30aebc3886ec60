"""Launches and references of the engine against further advisories.

A launch that meets an advisory's condition is judged by the engine version that belongs to it: its image, else the
references of its file, else those of its folder. References alone say nothing about a condition: what may apply to
them is one finding each, for the strict profile.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.model.facts import EngineLaunch, FactSet, ImageReference, PackageReference, Related, Value
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """`packages` are the distributions whose references are looked at."""

    packages: tuple[str, ...] = ("sglang",)


@dataclass(frozen=True, slots=True)
class _Engine:
    """What is known of an engine: its one version, or the specifier that it comes from; and where that stands."""

    version: str | None
    specifier: str | None
    where: PackageReference | ImageReference | None


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """A match for each advisory that a launch arms, then one for each reference that others may apply to."""
    from auditor.launch.advisories import advisories

    known = [(fact, _of_package(fact)) for fact in facts.packages if fact.name in params.packages]
    engines = [engine for _, engine in known if engine is not None]
    engines += [engine for image in facts.images if (engine := _of_image(image.reference, image)) is not None]
    for launch in facts.launches:
        mine = _of_launch(launch, engines)
        for advisory in advisories() if mine else ():
            flag = advisory.armed_by(launch) if advisory.visible else None
            if flag is None:
                continue
            pinned = [engine for engine in mine if engine.version and advisory.affects(engine.version)]
            ranged = [engine for engine in mine if engine.specifier and advisory.admitted(engine.specifier)]
            found = (pinned or ranged)[:1]
            if not found:
                continue
            certain = bool(pinned) and len(pinned) == len(mine)
            place = found[0].where
            yield Match(
                outcome="affected" if certain else "admits-affected",
                span=flag.span,
                subject=advisory.id,
                scope=launch.scope,
                values=_values(advisory.id, advisory.summary, found[0], advisory.outside, advisory.condition),
                properties={"advisory": advisory.id, "aliases": list(advisory.aliases), "version": found[0].version},
                related=(Related(place.span, "the engine's version stands here"),) if place is not None else (),
            )
    for engine in engines:
        if engine.where is None or not engine.version:
            continue
        open_ids = [entry.id for entry in advisories() if entry.affects(engine.version)]
        if open_ids:
            listed: list[JsonValue] = list(open_ids)
            yield Match(
                outcome="condition-unseen",
                span=engine.where.span,
                subject="references",
                scope=engine.where.scope,
                values=_values(", ".join(open_ids), "", engine, "", ""),
                properties={"advisories": listed, "version": engine.version},
            )


def _values(ids: str, summary: str, engine: _Engine, outside: str, condition: str) -> dict[str, JsonValue]:
    version = engine.version or engine.specifier or ""
    return {"ids": ids, "summary": summary, "version": version, "outside": outside, "condition": condition}


def _of_package(fact: PackageReference) -> _Engine | None:
    from auditor.launch.versions import package_verdict

    verdict = package_verdict(fact)
    if verdict.verdict == "unverifiable":
        return None
    return _Engine(verdict.version, str(fact.specifier or "") if verdict.version is None else None, fact)


def _of_image(reference: Value, where: ImageReference | None) -> _Engine | None:
    from auditor.launch.images import image_verdict, is_watched

    if not is_watched(reference):
        return None
    version = image_verdict(reference).version
    return _Engine(version, None, where) if version else None


def _of_launch(launch: EngineLaunch, engines: list[_Engine]) -> list[_Engine]:
    own = _of_image(launch.image, None) if launch.image is not None else None
    if own is not None:
        same = [engine for engine in engines if engine.version == own.version and _file(engine) == launch.span.path]
        nearest = min(same, key=lambda engine: _distance(engine, launch), default=own)
        return [nearest]
    if launch.image is not None:
        return []
    path = launch.span.path
    in_file = [engine for engine in engines if _file(engine) == path]
    folder = path.rpartition("/")[0]
    return in_file or [engine for engine in engines if _file(engine).rpartition("/")[0] == folder]


def _distance(engine: _Engine, launch: EngineLaunch) -> tuple[bool, bool, int]:
    """How far the place of an engine is from a launch: the image that the launch runs in before another that says the
    same, what stands above it before what stands below, the nearest first."""
    place = engine.where
    if place is None:
        return True, True, 0
    own = isinstance(place, ImageReference) and place.reference == launch.image
    lines = launch.span.start.line - place.span.start.line
    return not own, lines < 0, abs(lines)


def _file(engine: _Engine) -> str:
    return engine.where.span.path if engine.where is not None else ""


CHECK = Check(
    name="known-advisory",
    params=Params,
    outcomes=("affected", "admits-affected", "condition-unseen"),
    fields=("ids", "summary", "version", "outside", "condition"),
    run=run,
)
