"""conda: environment files, conda-lock and pixi locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.readers.declared import listed
from auditor.syntax.mapped import Mapped
from auditor.syntax.requirement_lines import fill, mask, normalise, requirement
from auditor.syntax.spanned import Spanned

_SPEC = re.compile(r"\s*(?:[^\s:\[]+::?)?([A-Za-z0-9_][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(.*?)\s*$", re.DOTALL)


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The packages of an environment, or those of a lock, by the shape of the document."""
    from auditor.readers.yaml_lists import spanned
    from auditor.syntax.yaml_nodes import documents

    answer = documents(source)
    for root in answer.roots:
        tree = spanned(root)
        if tree.get("package") is not None or tree.get("packages") is not None:
            yield from _locked(tree, source)
        else:
            yield from conda_environment(tree, source)
    yield from answer.errors


def conda_environment(tree: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """The conda packages, and under `pip:` the requirements of pip."""
    for item in tree.list("dependencies"):
        if item.text is not None:
            fact = conda_spec(item.mapped, source, "dependencies")
            if fact is not None:
                yield fact
        for installer, inner in item.pairs.items():
            yield from listed(inner.items, source, installer)


def conda_spec(text: Mapped, source: SourceFile, scope: str) -> PackageReference | None:
    """One match specification: `name`, `name=1.2`, `name=1.2=build`, `name>=1.2,<2`, `channel::name ==1.2`. A single
    `=` means the version and what begins with it."""
    masked, holes, places = mask(text.text)
    found = _SPEC.match(masked)
    if not found:
        return None
    rest = found.group(2)
    span = text.span(source, places[found.start(1)], places[found.end(2) if rest else found.end(1)])
    name = normalise(found.group(1))
    if not rest:
        return PackageReference(name, "bare", scope, span)
    version = re.match(r"=?\s*([^\s=<>!~,|*]+)(?:[\s=]+\S+)?$", rest)
    exact = re.match(r"==\s*([^\s=<>!~,|*]+)(?:[\s=]+\S+)?$", rest)
    if exact:
        return PackageReference(
            name, "pinned", scope, span, fill(f"=={exact.group(1)}", holes), fill(exact.group(1), holes)
        )
    if version:
        built = bool(re.match(r"=?\s*[^\s=]+[\s=]+\S", rest))
        if built:
            return PackageReference(
                name, "pinned", scope, span, fill(f"=={version.group(1)}", holes), fill(version.group(1), holes)
            )
        return PackageReference(name, "range", scope, span, fill(f"=={version.group(1)}.*", holes))
    specifier = re.sub(r"(?<![=<>!~])=(?![=])", "==", rest)
    return PackageReference(name, "range", scope, span, fill(specifier, holes))


def _locked(tree: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """The package entries of conda-lock (`name`, `version`, `manager`) and of pixi (a URL for each kind)."""
    for entry in tree.list("package") or tree.list("packages"):
        name, version = entry.get("name"), entry.get("version")
        address = entry.get("pypi") or entry.get("conda") or entry.get("url")
        if name is None and address is not None and address.text:
            name, version = None, None
            fact = requirement(address.mapped, source, "lock") or _conda_file(address, source)
            if fact is not None:
                yield fact
            continue
        if name is None or not name.text:
            continue
        if address is not None and (address.text or "").startswith((".", "/")) and version is None:
            continue
        git = requirement(address.mapped, source, "lock") if address is not None and address.text else None
        if git is not None and git.kind == "vcs":
            yield git
            continue
        _ = (name.mapped, version.mapped if version is not None else None)  # their places are found when asked for
        first = min(name.start, version.start) if version is not None else name.start
        last = max(name.end, version.end) if version is not None else name.end
        stated = version.text if version is not None else None
        yield PackageReference(normalise(name.text), "locked", "lock", source.span(first, last), version=stated)


def _conda_file(address: Spanned, source: SourceFile) -> PackageReference | None:
    file = (address.text or "").rsplit("/", 1)[-1]
    found = re.match(r"(.+)-([^-]+)-[^-]+\.(?:conda|tar\.bz2)$", file)
    if not found:
        return None
    return PackageReference(normalise(found.group(1)), "locked", "lock", address.span(source), version=found.group(2))
