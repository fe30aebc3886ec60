"""Pipfile.lock: the packages of each category with the version or the repository that they are locked to."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.readers.declared import of_source
from auditor.syntax import json_spans
from auditor.syntax.requirement_lines import normalise, pinned_version


def read(source: SourceFile) -> Iterator[Fact]:
    """One fact for each locked package; the span runs from its name to its version."""
    root = json_spans.parse(source)
    for category, packages in root.pairs.items():
        if category == "_meta":
            continue
        for name, entry in packages.pairs.items():
            version = entry.get("version")
            fact = of_source(name, entry, source, category)
            if fact is None and version is not None and version.text:
                span = source.span(entry.key + 1, version.end)
                stated = pinned_version(version.text) or version.text
                fact = PackageReference(
                    normalise(name), "locked", category, span, version.text, stated, marker=entry.word("markers")
                )
            if fact is not None:
                yield fact
