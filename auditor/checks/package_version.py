"""Package references of the engine against the version that is fixed."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.vendored_source import holds, trees_of
from auditor.model.facts import FactSet, PackageReference, Unresolved, Value
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """`packages` are the distributions that are judged, `fixed` the first safe version, `releases` the catalogue that
    says which versions a range admits."""

    packages: tuple[str, ...]
    fixed: str
    releases: str = ""


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each reference that is not known to be safe.

    A range all of whose releases are affected is as certain as a pin: its outcome is `vulnerable`, although its
    verdict in the properties stays what a range has, `admits-vulnerable`.
    """
    from auditor.launch.bundles import is_bundle
    from auditor.launch.versions import guard_story, package_verdict

    trees = trees_of(facts)
    for fact in facts.packages:
        if fact.name not in params.packages:
            continue
        if fact.kind == "source" and any(holds(fact.span.path, folder) for folder in trees):
            continue  # its code is there and is judged by the guards that it has, see `vendored-source`
        verdict = package_verdict(fact, params.fixed, params.releases or fact.name)
        if verdict.verdict == "safe":
            continue
        worst = verdict.version or verdict.worst
        version = verdict.version or written(fact)
        if is_bundle(fact) and verdict.version:
            version = f"{written(fact)} brings sglang {verdict.version}, which"
        if verdict.whole:
            version = f"{written(fact)} (only affected releases, such as {worst})"
        properties: dict[str, JsonValue] = {
            "package": fact.name,
            "specifier": text_of(fact.specifier),
            "version": verdict.version or text_of(fact.version),
            "vcs_ref": text_of(fact.vcs_ref),
            "verdict": verdict.verdict,
            "reason": verdict.reason,
        }
        if fact.marker:
            properties["marker"] = fact.marker
        yield Match(
            outcome="vulnerable" if verdict.whole else verdict.verdict,
            span=fact.version_span or fact.span,
            subject=fact.name,
            scope=fact.scope,
            values={
                "package": fact.name,
                "version": version,
                "specifier": written(fact),
                "worst": worst or "an affected release",
                "story": guard_story(worst or "0", params.releases or fact.name),
                "fixed": params.fixed,
                "reason": verdict.reason or "",
                "decide": verdict.decide or "",
            },
            properties=properties,
            related=fact.related,
        )


def text_of(value: Value | None) -> str | None:
    """The value as text; of an unresolved one the text as written."""
    return value.text if isinstance(value, Unresolved) else None if value is None else str(value)


def written(fact: PackageReference) -> str:
    """What stands behind the name, in words where nothing does."""
    return text_of(fact.specifier) or text_of(fact.version) or text_of(fact.vcs_ref) or "without a version"


CHECK = Check(
    name="package-version",
    params=Params,
    outcomes=("vulnerable", "admits-vulnerable", "unverifiable"),
    fields=("package", "version", "specifier", "worst", "story", "fixed", "reason", "decide"),
    run=run,
)
