"""How manifests declare packages: lists of requirement texts, and tables from a name to a version or a source.

Shared by the readers of pyproject, Pipfile, pixi and the others; it is no reader itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from auditor.model.facts import PackageReference
from auditor.model.records import replace
from auditor.model.spans import SourceFile
from auditor.syntax.requirement_lines import (
    name_of_repository,
    normalise,
    pinned_version,
    requirement,
)
from auditor.syntax.spanned import Spanned

_EDITABLE = re.compile(r"\s*(?:-e|--editable)[\s=]+")
_EXACT = re.compile(
    r"\s*v?\d+(?:\.\d+)*(?:[-._]?(?:a|b|c|rc|alpha|beta|pre|post|dev)[-._]?\d*)*(?:\+[A-Za-z0-9.]+)?\s*$"
)


def listed(items: Iterable[Spanned], source: SourceFile, scope: str) -> Iterator[PackageReference]:
    """The requirements of a list of texts; what is no requirement is left out."""
    for item in items:
        if item.text is None:
            continue
        text = item.mapped
        editable = _EDITABLE.match(text.text)
        if editable:
            text = text.piece(editable.end(), len(text.text))
        fact = requirement(text, source, scope)
        if fact is not None:
            yield fact


def tabled(table: dict[str, Spanned], source: SourceFile, scope: str, *, exact: bool) -> Iterator[PackageReference]:
    """The packages of a table from name to specifier or to a table with `version`, `git`, `url` or `path`. `exact`
    says that a bare version means that version alone (Poetry), and not that version or a later one with its prefix."""
    for name, value in table.items():
        for node in value.items or [value]:
            fact = _entry(name, node, value, source, scope, exact)
            if fact is not None:
                yield fact


def _entry(
    name: str, node: Spanned, whole: Spanned, source: SourceFile, scope: str, exact: bool
) -> PackageReference | None:
    if node.text is not None:
        return of_specifier(name, node, source, scope, exact=exact)
    if not node.pairs:
        return None
    extras = tuple(item.text for item in node.list("extras") if item.text)
    marker = node.word("markers") or node.word("marker") or node.word("platform")
    fact = of_source(name, node, source, scope)
    version = node.get("version")
    if fact is None and version is not None and version.text is not None:
        fact = of_specifier(name, version, source, scope, exact=exact)
    if fact is None and not any(key in node.pairs for key in ("path", "workspace", "editable", "develop")):
        span = source.span(max(node.key, whole.key, 0), node.end)
        fact = PackageReference(normalise(name), "bare", scope, span)
    if fact is None:
        return None
    return replace(fact, extras=fact.extras or extras, marker=fact.marker or marker)


def of_specifier(name: str, node: Spanned, source: SourceFile, scope: str, *, exact: bool) -> PackageReference | None:
    """A package with its specifier as a text of its own; the span is the specifier."""
    text = (node.text or "").strip()
    span = node.span(source)
    if text in ("", "*"):
        return PackageReference(normalise(name), "bare", scope, span if text else source.span(node.key, node.end), "*")
    version = pinned_version(text)
    if version is None and exact and _EXACT.match(text):
        version = text
    if version is None and text.startswith("=") and not text.startswith("==") and exact:
        version = text[1:].strip()
    return PackageReference(normalise(name), "pinned" if version else "range", scope, span, text, version)


def of_source(name: str, node: Spanned, source: SourceFile, scope: str) -> PackageReference | None:
    """A package that a table takes from a repository or a file: `git` with `tag`, `rev`, `ref` or `branch`, `url`,
    `file`, `path` to a wheel. The span is the ref where there is one, else the address."""
    address = node.get("git") or node.get("vcs")
    if address is not None and address.text:
        folder = node.word("subdirectory")
        found = name_of_repository(address.text, folder or "") if folder else None
        if normalise(name) == "sglang" and found not in (None, "sglang"):
            return None
        ref = next((node.get(key) for key in ("tag", "rev", "ref", "branch") if node.get(key) is not None), None)
        inside = None
        url = address.text
        if ref is None and "@" in url.rsplit("/", 1)[-1]:
            url, _, inside = url.rpartition("@")
        span = (ref or address).span(source)
        return PackageReference(
            normalise(name), "vcs", scope, span, vcs_ref=ref.text if ref is not None else inside, vcs_url=url
        )
    for key in ("url", "file", "path"):
        location = node.get(key)
        if location is not None and location.text and re.search(r"\.(?:whl|tar\.gz|zip)(?:[#?].*)?$", location.text):
            fact = requirement(location.mapped, source, scope)
            if fact is not None and fact.name == normalise(name):
                return fact
            return PackageReference(normalise(name), "file", scope, location.span(source))
    return None


def project_itself(
    name: Spanned | None, version: Spanned | None, source: SourceFile, scope: str = "project"
) -> PackageReference | None:
    """The project that the file is the manifest of. The span runs from its name to its version where that follows."""
    if name is None or not name.text:
        return None
    last = version if version is not None and version.start > name.start else name
    return PackageReference(
        normalise(name.text),
        "source",
        scope,
        source.span(name.start, last.end),
        version=version.text if version is not None and version.text else None,
    )
