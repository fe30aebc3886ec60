"""The only stage that looks across files: fills variables, joins values and templates, links launches and models."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.facts import FactSet
from auditor.model.spans import SourceFile


def resolve(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The same facts with fewer unresolved values and more related places."""
    return facts
