"""Joins a chart: templates with the values and the chart file that stand beside them.

The finding stands where the version is written: in the values, in the chart file, or in the template itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from auditor.model.facts import (
    EngineLaunch,
    FactSet,
    Flag,
    Hole,
    ImageReference,
    Related,
    Unresolved,
    Value,
)
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.syntax.go_eval import Chart, Piece, Text, evaluate

MAX_OVERLAYS = 40  # values files of one chart that are tried one by one


@dataclass(slots=True)
class _Chart:
    folder: str
    chart: dict[str, tuple[str, Span]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[str, Span]]] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> dict[str, tuple[str, Span]]:
        for name in ("values.yaml", "values.yml"):
            found = self.files.get(posixpath.join(self.folder, name))
            if found is not None:
                return found
        return {}

    @property
    def overlays(self) -> list[dict[str, tuple[str, Span]]]:
        base = self.base
        return [values for _, values in sorted(self.files.items()) if values is not base][:MAX_OVERLAYS]


def join_charts(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The facts with template references filled from their chart."""
    charts = _charts(facts)
    if not charts:
        return facts
    images: list[ImageReference] = []
    taken: set[Span] = set()
    for image in facts.images:
        chart = _chart_of(image.span.path, charts)
        if chart is None or not isinstance(image.reference, Unresolved):
            images.append(image)
            continue
        for made, used in _joined(image, chart):
            images.append(made)
            taken.update(used)
    kept: dict[Span, ImageReference] = {}
    for image in images:
        resolved = image.span in taken and bool(image.related)
        if image.span in taken and not resolved:
            continue  # the values file's own reading of the same keys
        if image.span not in kept or resolved:
            kept.setdefault(image.span, image)
    launches = tuple(_launch(launch, _chart_of(launch.span.path, charts)) for launch in facts.launches)
    return replace(facts, images=tuple(sorted(kept.values(), key=lambda fact: fact.span)), launches=launches)


def _charts(facts: FactSet) -> dict[str, _Chart]:
    charts: dict[str, _Chart] = {}
    for definition in facts.definitions:
        if definition.domain == "helm-chart":
            folder = posixpath.dirname(definition.scope)
            chart = charts.setdefault(folder, _Chart(folder))
            chart.chart[definition.name] = (str(definition.value), definition.span)
        elif definition.domain == "helm-define" and "/templates/" in "/" + definition.scope:
            folder = _above_templates(definition.scope)
            charts.setdefault(folder, _Chart(folder)).defines[definition.name] = str(definition.value)
    for definition in facts.definitions:
        if definition.domain != "helm-values":
            continue
        owner = _nearest(posixpath.dirname(definition.scope), charts)
        if owner is not None:
            owner.files.setdefault(definition.scope, {})[definition.name] = (str(definition.value), definition.span)
    for folder, chart in list(charts.items()):
        parent, _, name = folder.rpartition("/charts/")
        above = charts.get(parent) if name else None
        if above is not None:
            over = {key[len(name) + 1 :]: value for key, value in above.base.items() if key.startswith(name + ".")}
            shared = {key: value for key, value in above.base.items() if key.startswith("global.")}
            base = posixpath.join(folder, "values.yaml")
            chart.files[base] = {**chart.base, **shared, **over}
        for other in charts.values():  # library charts share their named templates
            for key, body in other.defines.items():
                chart.defines.setdefault(key, body)
    return charts


def _above_templates(path: str) -> str:
    return ("/" + path).rpartition("/templates/")[0].lstrip("/")


def _nearest(folder: str, charts: dict[str, _Chart]) -> _Chart | None:
    """The chart that a values file belongs to: of its own folder, or of one above or beside it."""
    here = folder
    while True:
        if here in charts:
            return charts[here]
        if not here:
            break
        here = posixpath.dirname(here)
    below = [chart for name, chart in sorted(charts.items()) if posixpath.dirname(name) == folder]
    return below[0] if len(below) == 1 else None


def _chart_of(path: str, charts: dict[str, _Chart]) -> _Chart | None:
    return charts.get(_above_templates(path)) if "/templates/" in "/" + path else None


def _joined(image: ImageReference, chart: _Chart) -> Iterator[tuple[ImageReference, set[Span]]]:
    """The reference as the chart's values make it, and once more for each values file that makes it another one. Where
    all of them leave it empty it is given at the installation, and stays as it is written."""
    seen: set[tuple[str, Span]] = set()
    base = chart.base
    reference = image.reference.text if isinstance(image.reference, Unresolved) else str(image.reference)
    for values in [base, *({**base, **overlay} for overlay in chart.overlays)]:
        text = evaluate(reference, Chart(values, chart.chart, chart.defines))
        made, used = _reference(image, text)
        if _empty(made.reference):
            continue
        key = (made.reference.text if isinstance(made.reference, Unresolved) else str(made.reference), made.span)
        if key not in seen and not (seen and isinstance(made.reference, Unresolved)):
            seen.add(key)
            yield made, used
    if not seen:
        yield image, set()


def _empty(reference: Value | None) -> bool:
    return isinstance(reference, str) and not reference.strip(":/@ ")


def _reference(image: ImageReference, text: Text) -> tuple[ImageReference, set[Span]]:
    pieces = [piece for piece in text.pieces if piece.text or piece.hole]
    value = _value(pieces)
    origins = [piece.origin for piece in pieces if piece.origin is not None]
    if not origins:
        return replace(image, reference=value), set()
    place = _tag_place(pieces)
    if place is None:
        return replace(image, reference=value, related=_related(image, [], origins)), set()
    used = set(origins)
    more = [Related(image.span, "the image is used here")] if place != image.span else []
    made = replace(
        image, reference=value, span=place, related=_related(image, more, [o for o in origins if o != place])
    )
    return made, used


def _related(image: ImageReference, more: list[Related], origins: list[Span]) -> tuple[Related, ...]:
    stated = [Related(origin, "a part of the image is set here") for origin in dict.fromkeys(origins)]
    return tuple(dict.fromkeys((*image.related, *more, *stated)))


def _tag_place(pieces: list[Piece]) -> Span | None:
    """Where the text behind the last colon comes from; without a tag, where the repository comes from."""
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece.hole:
            return None
        if piece.origin is not None and not piece.text.startswith("sha256:"):
            return piece.origin
        if ":" in piece.text and index < len(pieces) - 1:
            break
    return next((piece.origin for piece in reversed(pieces) if piece.origin is not None), None)


def _value(pieces: list[Piece]) -> Value:
    if not any(piece.hole for piece in pieces):
        return "".join(piece.text for piece in pieces)
    parts: list[str | Hole] = []
    for piece in pieces:
        if piece.hole:
            parts.append(Hole(piece.hole))
        elif parts and isinstance(parts[-1], str):
            parts[-1] += piece.text
        else:
            parts.append(piece.text)
    shown = "".join(part if isinstance(part, str) else "{{ " + part.name + " }}" for part in parts)
    return Unresolved(shown, tuple(parts))


def _launch(launch: EngineLaunch, chart: _Chart | None) -> EngineLaunch:
    if chart is None:
        return launch
    from auditor.launch.flags import spelled, typed

    scope = Chart(chart.base, chart.chart, chart.defines)
    related: list[Related] = []

    def filled(value: Value | None) -> Value | None:
        if not isinstance(value, Unresolved) or "{{" not in value.text:
            return value
        text = evaluate(value.text, scope)
        related.extend(
            Related(piece.origin, "a value of the launch is set here")
            for piece in text.pieces
            if piece.origin is not None
        )
        return _value([piece for piece in text.pieces if piece.text or piece.hole]) if text.pieces else value

    def flag(name: str, given: Flag) -> Flag:
        value = filled(given.value)
        if isinstance(value, str) and isinstance(given.value, Unresolved):
            meaning = spelled(f"--{name}", None)
            value = typed(value, meaning.option.kind if meaning.option else None)
        return replace(given, value=given.value if value is None else value)

    flags = {name: flag(name, given) for name, given in launch.flags.items()}
    image = filled(launch.image)
    image = launch.image if _empty(image) else image
    made = replace(launch, model=filled(launch.model), image=image, flags=flags)
    return replace(made, related=tuple(dict.fromkeys((*launch.related, *related))))
