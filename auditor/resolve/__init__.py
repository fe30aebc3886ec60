"""The only stage that looks across files: fills variables, joins values and templates, links launches and models."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.facts import FactSet
from auditor.model.spans import SourceFile

MAX_ROUNDS = 8


def resolve(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The same facts with fewer unresolved values and more related places. Ends after `MAX_ROUNDS` rounds."""
    from auditor.resolve.helm_values import join_charts
    from auditor.resolve.kustomize_images import apply_overlays
    from auditor.resolve.variables import fill_variables

    facts = join_charts(facts, sources)
    for _ in range(MAX_ROUNDS):
        before = facts
        facts = fill_variables(facts, sources)
        if facts == before:
            break
    return apply_overlays(facts, sources)
