"""The only stage that looks across files: fills variables, joins values and templates, links launches and models."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.facts import FactSet, ImageReference
from auditor.model.records import replace
from auditor.model.spans import SourceFile

MAX_ROUNDS = 8


def resolve(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The same facts with fewer unresolved values and more related places. Ends after `MAX_ROUNDS` rounds."""
    from auditor.resolve.constraints import apply_constraints
    from auditor.resolve.helm_values import join_charts
    from auditor.resolve.kustomize_images import apply_overlays
    from auditor.resolve.model_link import link_models
    from auditor.resolve.option_files import join_option_files
    from auditor.resolve.variables import fill_variables

    facts = join_charts(facts, sources)
    for _ in range(MAX_ROUNDS):
        before = facts
        facts = fill_variables(facts, sources)
        if facts == before:
            break
    facts = join_option_files(_without_definitions(apply_constraints(facts)))
    return link_models(apply_overlays(facts, sources))


def _without_definitions(facts: FactSet) -> FactSet:
    """The images less those that only define what another one uses: the finding stands at the use, and shows them."""
    used = {
        (related.span, _name(image))
        for image in facts.images
        for related in image.related
        if related.span != image.span and related.message.endswith("is set here")
    }
    kept = tuple(image for image in facts.images if (image.span, _name(image)) not in used)
    return replace(facts, images=kept)


def _name(image: ImageReference) -> str:
    return (
        image.reference
        if isinstance(image.reference, str)
        else image.reference.text
        if hasattr(image.reference, "text")
        else ""
    )
