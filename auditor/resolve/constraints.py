"""Joins requirements with the constraints files that pip applies to them: `sglang` beside `-c constraints.txt`.

A requirement in a file that names a constraints file, or that is included by one that does, can only mean what both
admit. Cycles of includes end.
"""

from __future__ import annotations

import posixpath

from auditor.model.facts import Definition, FactSet, PackageReference, Related, Unresolved
from auditor.model.records import replace

INCLUDE, CONSTRAINT = "pip-include", "pip-constraint"


def apply_constraints(facts: FactSet) -> FactSet:
    """The same facts; a bare or ranged requirement under constraints has what both admit as its specifier."""
    steps = [definition for definition in facts.definitions if definition.domain in (INCLUDE, CONSTRAINT)]
    if not any(step.domain == CONSTRAINT for step in steps):
        return facts
    applied = _applied(steps)
    limits: dict[tuple[str, str], list[PackageReference]] = {}
    for fact in facts.packages:
        if fact.marker is None and isinstance(fact.specifier, str):
            limits.setdefault((fact.span.path, fact.name), []).append(fact)
    packages = []
    for fact in facts.packages:
        if fact.kind in ("bare", "range") and not isinstance(fact.specifier, Unresolved):
            bounds = [
                limit for path in sorted(applied.get(fact.span.path, ())) for limit in limits.get((path, fact.name), ())
            ]
            fact = _joined(fact, bounds) if bounds else fact
        packages.append(fact)
    return replace(facts, packages=tuple(packages))


def _applied(steps: list[Definition]) -> dict[str, set[str]]:
    """The constraints files that hold for each file: its own, and those of the files that include it."""
    applied: dict[str, set[str]] = {}
    for step in steps:
        if step.domain == CONSTRAINT:
            applied.setdefault(step.span.path, set()).add(_target(step))
    changed = True
    while changed:  # sets only grow, so a cycle ends
        changed = False
        for step in steps:
            here = applied.get(step.span.path, set())
            there = applied.setdefault(_target(step), set())
            if step.domain == INCLUDE and not here <= there:
                there |= here
                changed = True
    return applied


def _target(step: Definition) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(step.span.path), str(step.value)))


def _joined(fact: PackageReference, bounds: list[PackageReference]) -> PackageReference:
    clauses = [str(part.specifier) for part in (fact, *bounds) if part.specifier]
    pinned = next((bound.version for bound in bounds if bound.kind == "pinned"), None)
    related = tuple(Related(bound.span, "pip is constrained to this") for bound in bounds)
    return replace(
        fact,
        kind="pinned" if pinned else "range",
        specifier=",".join(clauses),
        version=pinned,
        related=(*fact.related, *related),
    )
