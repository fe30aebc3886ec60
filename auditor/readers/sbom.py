"""Software bills of materials: CycloneDX and SPDX as JSON. Packages of PyPI, and images among the components."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote

from auditor.model.facts import Fact, ImageReference, PackageReference
from auditor.model.spans import SourceFile
from auditor.syntax import json_spans
from auditor.syntax.requirement_lines import normalise
from auditor.syntax.spanned import Spanned

_PURL = re.compile(r"pkg:(?P<type>[a-z]+)/(?P<path>[^@?#]+)(?:@(?P<version>[^?#]+))?(?:\?(?P<query>[^#]*))?")
_OTHER = frozenset({"application", "operating-system", "device", "firmware", "file", "data", "machine-learning-model"})


def read(source: SourceFile) -> Iterator[Fact]:
    """One fact for each component that is a Python package or a container image."""
    root = json_spans.parse(source)
    for path, node in root.walk():
        if not node.pairs or not path:
            continue
        if path[-1] in ("components", "component") and "name" in node.pairs:
            yield from _component(node, node.get("version"), node.get("purl"), node.word("type"), source)
        elif path[-1] == "packages" and "SPDXID" in node.pairs:
            purls = (item.get("referenceLocator") for item in node.list("externalRefs"))
            purl = next((item for item in purls if item is not None and (item.text or "").startswith("pkg:")), None)
            kind = {"CONTAINER": "container", "APPLICATION": "application"}.get(
                node.word("primaryPackagePurpose") or ""
            )
            yield from _component(node, node.get("versionInfo"), purl, kind, source)


def _component(
    node: Spanned, version: Spanned | None, purl: Spanned | None, kind: str | None, source: SourceFile
) -> Iterator[Fact]:
    name = node.get("name")
    if name is None or not name.text:
        return
    located = _PURL.match(purl.text or "") if purl is not None else None
    if located and located["type"] in ("docker", "oci"):
        yield from _image(name, located, purl, source)
        return
    if (located and located["type"] != "pypi") or (not located and kind in _OTHER):
        return
    if not located and kind == "container":
        stated = f"{name.text}:{version.text}" if version is not None and version.text else name.text
        place = version if version is not None and version.text else name
        yield ImageReference(stated, "bill of materials", place.span(source))
        return
    said = version.text if version is not None and version.text else None
    said = said or (unquote(located["version"]) if located and located["version"] else None)
    last = version if version is not None and version.text and version.start > name.start else name
    plain = re.sub(r"^(?:pypi|pip):", "", name.text)
    yield PackageReference(
        normalise(plain),
        "locked" if said else "bare",
        "bill of materials",
        source.span(name.start, last.end),
        version=said,
    )


def _image(name: Spanned, located: re.Match[str], purl: Spanned | None, source: SourceFile) -> Iterator[Fact]:
    query = parse_qs(located["query"] or "")
    repository = unquote((query.get("repository_url") or [located["path"]])[0])
    version = unquote(located["version"] or "")
    tag = (query.get("tag") or [""])[0] or ("" if version.startswith("sha256:") else version)
    digest = f"@{version}" if version.startswith("sha256:") else ""
    reference = repository + (f":{tag}" if tag else "") + digest
    yield ImageReference(reference, "bill of materials", (purl or name).span(source))
