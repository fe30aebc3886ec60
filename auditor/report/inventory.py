"""Facts as JSON and as terminal lines: what `auditor inventory` shows."""

from __future__ import annotations

from auditor.model.facts import EngineLaunch, Fact, ImageReference, PackageReference, Unresolved, Value
from auditor.model.findings import JsonValue
from auditor.report.json_document import place, related_json


def value_json(value: Value | None) -> JsonValue:
    """A value as it is, or `{"unresolved": text}`."""
    return {"unresolved": value.text} if isinstance(value, Unresolved) else value


def fact_json(fact: Fact) -> dict[str, JsonValue] | None:
    """One fact with its verdict, or `None` for facts that only serve other facts (definitions, modules)."""
    if isinstance(fact, PackageReference):
        return _package(fact)
    if isinstance(fact, ImageReference):
        return _image(fact)
    if isinstance(fact, EngineLaunch):
        return _launch(fact)
    return None


def _package(fact: PackageReference) -> dict[str, JsonValue]:
    from auditor.launch.versions import package_verdict

    verdict = package_verdict(fact)
    return {
        "kind": "package",
        "name": fact.name,
        "form": fact.kind,
        "specifier": value_json(fact.specifier),
        "version": value_json(fact.version),
        "vcs_ref": value_json(fact.vcs_ref),
        "extras": list(fact.extras),
        "marker": fact.marker,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "scope": fact.scope,
        **place(fact.span),
        "related": [related_json(related) for related in fact.related],
    }


def _image(fact: ImageReference) -> dict[str, JsonValue]:
    from auditor.launch.images import image_verdict, parse_reference

    verdict = image_verdict(fact.reference)
    parts = parse_reference(fact.reference)
    return {
        "kind": "image",
        "image": parts.repository,
        "tag": value_json(parts.tag),
        "digest": parts.digest,
        "version": verdict.version,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "scope": fact.scope,
        **place(fact.span),
        "related": [related_json(related) for related in fact.related],
    }


def _launch(fact: EngineLaunch) -> dict[str, JsonValue]:
    gpu: JsonValue = {"type": fact.gpu.type, "count": fact.gpu.count} if fact.gpu else None
    return {
        "kind": "launch",
        "entrypoint": fact.entrypoint,
        "model": value_json(fact.model),
        "role": fact.role,
        "flags": _flags(fact),
        "env": {name: value_json(flag.value) for name, flag in sorted(fact.env.items())},
        "gpu": gpu,
        **({"precision": value_json(fact.precision.value)} if fact.precision is not None else {}),
        "nodes": fact.nodes,
        "scope": fact.scope,
        "problems": [{"spelling": problem.spelling, "reason": problem.reason} for problem in fact.problems],
        **place(fact.span),
        "related": [related_json(related) for related in fact.related],
    }


def _flags(fact: EngineLaunch) -> dict[str, JsonValue]:
    """Options by canonical name; one that the file spells otherwise (`--tp`) stands under that spelling too, so that a
    look-up by either finds it."""
    named: dict[str, JsonValue] = {}
    for name, flag in fact.flags.items():
        written = flag.spelling.lstrip("-").replace("_", "-")
        if written and written not in fact.flags:
            named[written] = value_json(flag.value)
        named[name] = value_json(flag.value)
    return dict(sorted(named.items()))
