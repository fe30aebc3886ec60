"""Which references of a tree are the engine's: by their name, or because a launch of the engine runs in them."""

from __future__ import annotations

from auditor.checks.launches import SERVING
from auditor.model.facts import EngineLaunch, FactSet, ImageReference, Value
from auditor.model.records import replace


def watched(facts: FactSet) -> FactSet:
    """The facts without the packages and images of anything else."""
    from auditor.launch.bundles import carries_engine
    from auditor.launch.images import is_watched

    packages = tuple(package for package in facts.packages if carries_engine(package))
    facts = replace(facts, packages=packages)
    nameless = _nameless(facts)
    images = tuple(image for image in facts.images if is_watched(image.reference) or image in nameless)
    return replace(facts, images=images)


def _nameless(facts: FactSet) -> set[ImageReference]:
    """Images whose name says nothing of the engine, that a server of it runs in; each once a file. Not where the file
    itself puts the engine in, and not the base of a build, which does so as a rule."""
    from auditor.launch.images import is_watched, parse_reference

    installed = {package.span.path for package in facts.packages}
    stated: dict[tuple[str, Value], list[ImageReference]] = {}
    for image in facts.images:
        # in the values of a chart an image stands away from the template that uses it, and shows it
        for path in {image.span.path, *(related.span.path for related in image.related)}:
            stated.setdefault((path, image.reference), []).append(image)
    found: dict[tuple[str, Value], ImageReference] = {}
    for launch in facts.launches:
        path, reference = launch.span.path, launch.image
        if reference is None or launch.entrypoint not in SERVING or path in installed or (path, reference) in found:
            continue
        places = stated.get((path, reference), [])
        if launch.scope.startswith("stage ") or not places or is_watched(reference):
            continue
        if parse_reference(reference).repository:
            found[path, reference] = _nearest(places, launch)
    return set(found.values())


def _nearest(places: list[ImageReference], launch: EngineLaunch) -> ImageReference:
    """The last one before the launch in its file, else the first."""
    before = [one for one in places if one.span.path == launch.span.path and one.span.start <= launch.span.start]
    return before[-1] if before else places[0]
