"""Applies Kustomize `images:` entries to the references of the bases below them.

An overlay's entry states what is deployed, so the finding stands there. What a base says itself is kept only where some
kustomization deploys the base without an entry of its own.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from auditor.launch.images import is_watched, parse_reference
from auditor.model.facts import Definition, FactSet, ImageReference, Related, Unresolved, Value
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.readers.kubernetes import read

MAX_BASES = 200  # files of bases that are read for an entry
MAX_REACH = 20_000  # files below one kustomization


@dataclass(slots=True)
class _Tree:
    """`bases` by kustomization, `images` by kustomization, `home` from folder to its kustomization."""

    bases: dict[str, list[str]] = field(default_factory=dict)
    images: dict[str, list[Definition]] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)

    def children(self, path: str) -> list[str]:
        """The files and kustomizations right below one kustomization."""
        return [self.home.get(base, base) for base in self.bases.get(path, ())]

    def reach(self, path: str) -> set[str]:
        """Everything below a kustomization; rings end."""
        seen: set[str] = set()
        pending = [path]
        while pending and len(seen) < MAX_REACH:
            here = pending.pop()
            if here not in seen:
                seen.add(here)
                pending.extend(self.children(here))
        return seen


def apply_overlays(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The facts as the overlays leave them."""
    tree = _tree(facts)
    if not tree.images:
        return facts
    reaches = {path: tree.reach(path) for path in tree.home.values()}
    below = {child for path, reach in reaches.items() for child in reach if child != path}
    roots = [path for path in sorted(reaches) if path not in below]
    uses: dict[Span, list[ImageReference]] = {}
    dropped: set[Span] = set()
    launches: dict[tuple[str, str], Value] = {}
    for image in (*facts.images, *_unread(facts, tree, reaches, sources)):
        if image.span.path in tree.images:
            continue
        repository = parse_reference(image.reference).repository
        entries = [
            entry
            for path, found in sorted(tree.images.items())
            if image.span.path in reaches.get(path, ())
            for entry in found
            if entry.name == repository
        ]
        for entry in entries:
            uses.setdefault(entry.span, []).append(image)
        deployed = [root for root in roots if image.span.path in reaches[root]]
        if (
            entries
            and deployed
            and all(_overrides(root, repository, tree, image.span.path, reaches) for root in deployed)
        ):
            dropped.add(image.span)
            launches[image.span.path, _text(image.reference)] = _final(entries[-1], image)
    images = []
    for image in facts.images:
        if image.span in dropped:
            continue
        used = uses.get(image.span)
        if used is not None and image.span.path in tree.images:
            value = _final(_entry(tree, image), used[0])
            more = tuple(Related(use.span, "the image is used here") for use in used[:10])
            image = replace(image, reference=value, related=(*image.related, *more))
        images.append(image)
    changed = tuple(
        replace(launch, image=launches.get((launch.span.path, _text(launch.image)), launch.image))
        if launch.image is not None
        else launch
        for launch in facts.launches
    )
    return replace(facts, images=tuple(images), launches=changed)


def _unread(
    facts: FactSet, tree: _Tree, reaches: Mapping[str, set[str]], sources: Mapping[str, SourceFile]
) -> list[ImageReference]:
    """Images of bases that do not name the engine themselves, below an entry that gives them its name."""
    known = {image.span.path for image in facts.images}
    wanted = {
        member
        for path, entries in tree.images.items()
        if any(is_watched(entry.value) and not is_watched(entry.name) for entry in entries)
        for member in reaches.get(path, ())
        if member not in known and member.endswith((".yaml", ".yml"))
    }
    found: list[ImageReference] = []
    for path in sorted(wanted)[:MAX_BASES]:
        try:
            source = sources[path]
        except (KeyError, OSError):
            continue
        found.extend(fact for fact in read(source) if isinstance(fact, ImageReference))
    return found


def _entry(tree: _Tree, image: ImageReference) -> Definition:
    return next(entry for entry in tree.images[image.span.path] if entry.span == image.span)


def _tree(facts: FactSet) -> _Tree:
    tree = _Tree()
    for definition in facts.definitions:
        if definition.domain in ("kustomize-base", "kustomize-image"):
            tree.home[posixpath.dirname(definition.scope)] = definition.scope
        if definition.domain == "kustomize-base":
            tree.bases.setdefault(definition.scope, []).append(definition.name)
        elif definition.domain == "kustomize-image":
            tree.images.setdefault(definition.scope, []).append(definition)
    return tree


def _overrides(root: str, repository: str, tree: _Tree, path: str, reaches: Mapping[str, set[str]]) -> bool:
    """Whether a kustomization changes an image before it deploys it: itself, or one between it and the file."""
    return any(
        entry.name == repository and path in reaches.get(member, ())
        for member in reaches[root]
        for entry in tree.images.get(member, ())
    )


def _final(entry: Definition, image: ImageReference) -> Value:
    """What the entry makes of the image: where it gives no tag, the image's own stays."""
    stated = parse_reference(entry.value)
    if stated.tag is not None or stated.digest is not None:
        return entry.value
    own = parse_reference(image.reference)
    if isinstance(own.tag, str):
        return f"{stated.repository}:{own.tag}"
    return entry.value


def _text(value: Value | None) -> str:
    return value.text if isinstance(value, Unresolved) else str(value)
