"""Image references of the engine against the version that is fixed."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.model.facts import BUILT, FactSet, Unresolved
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """`fixed` is the first safe version; `needles` are words of image names that a file must hold to be looked at."""

    fixed: str = "0.5.22"
    needles: tuple[str, ...] = ("sglang", "sgl-dev")


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each image that is not known to be safe."""
    from auditor.launch.images import family_of, image_verdict, parse_reference, repository_of
    from auditor.launch.versions import guard_story

    built = {(one.span.path, one.name) for one in facts.definitions if one.domain == BUILT}
    for image in facts.images:
        verdict = image_verdict(image.reference, params.fixed)
        if verdict.verdict == "safe":
            continue
        made = (image.span.path, repository_of(image.reference)) in built
        if made and verdict.verdict == "unverifiable" and family_of(image.reference) != "upstream":
            continue  # the file makes it: what goes into it is judged where it is built from
        reference = image.reference
        text = reference.text if isinstance(reference, Unresolved) else str(reference)
        parts = parse_reference(reference)
        tag = parts.tag.text if isinstance(parts.tag, Unresolved) else parts.tag
        properties: dict[str, JsonValue] = {
            "image": parts.repository,
            "tag": None if tag is None else str(tag),
            "digest": parts.digest,
            "version": verdict.version,
            "verdict": verdict.verdict,
            "reason": verdict.reason,
        }
        if verdict.basis:
            properties["basis"] = verdict.basis
        if verdict.date:
            properties["date"] = verdict.date
        yield Match(
            outcome=verdict.verdict,
            span=image.span,
            subject=parts.repository,
            scope=image.scope,
            values={
                "image": text,
                "version": verdict.version or "an older version",
                "fixed": params.fixed,
                "note": guard_story(verdict.version or "0.1"),
                "reason": verdict.reason or "",
                "decide": verdict.decide or "",
            },
            properties=properties,
            related=image.related,
            confidence=verdict.confidence,
        )


CHECK = Check(
    name="image-version",
    params=Params,
    outcomes=("vulnerable", "admits-vulnerable", "unverifiable"),
    fields=("image", "version", "fixed", "note", "reason", "decide"),
    run=run,
)
