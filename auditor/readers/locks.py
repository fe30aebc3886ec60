"""TOML lock files: uv.lock, poetry.lock, pdm.lock, pylock.toml. Every locked copy is a fact of its own.

These files are large and made by machines: `tomli` gives the values, and a reader of lines gives their places, which
counts only where both tell the same packages in the same order; else the slower reader with places is used.
A file that is not valid TOML (an unfinished merge) is an error, and its package blocks are read nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

from auditor.errors import ReadError
from auditor.model.facts import Fact, PackageReference
from auditor.model.records import replace
from auditor.model.spans import SourceFile
from auditor.syntax import toml_spans
from auditor.syntax.requirement_lines import normalise, read_shape

_BLOCK = re.compile(r"^\[\[(?:packages?)\]\][ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_END = re.compile(r"^\[", re.MULTILINE)
_PAIR = re.compile(r"^(name|version)[ \t]*=[ \t]*(?:\"([^\"\\\n]*)\"|'([^'\n]*)')", re.MULTILINE)
_TREES = ("editable", "virtual", "directory")
_ARCHIVE = re.compile(r"\.(?:whl|tar\.gz|zip)$")

Place = tuple[str, "str | None", int, int, int, int]  # name, version, first and last offset of both, and of the version


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """One fact for each package block that is not a local project."""
    places = list(_lines(source.text))
    try:
        plain = toml_spans.check(source)
    except ReadError as error:
        yield error
        for name, version, start, end, first, last in _lines(source.text, every=True):
            stated = source.span(first, last) if last else None
            span = source.span(start, end)
            yield PackageReference(normalise(name), "locked", "lock", span, version=version, version_span=stated)
        return
    blocks = [block for block in _blocks(plain) if isinstance(block.get("name"), str)]
    if [(block["name"], _version(block)) for block in blocks] != [place[:2] for place in places]:
        places = list(_parsed(source))
    for block, (_, _, start, end, first, last) in zip(blocks, places, strict=True):
        fact = _fact(block, source, start, end)
        if fact is not None:
            yield replace(fact, version_span=source.span(first, last)) if last else fact


def _blocks(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = plain.get("package", plain.get("packages", []))
    return [block for block in found if isinstance(block, dict)] if isinstance(found, list) else []


def _version(block: Mapping[str, Any]) -> str | None:
    version = block.get("version")
    return version if isinstance(version, str) else None


def _lines(text: str, *, every: bool = False) -> Iterator[Place]:
    """Name, version and place of each package block, from the first to the last of the two. With `every`, a block
    with several versions (both sides of a merge) gives one for each."""
    starts = [found.end() for found in _BLOCK.finditer(text)]
    for index, start in enumerate(starts):
        limit = starts[index + 1] if index + 1 < len(starts) else len(text)
        end = _END.search(text, start, limit)
        found: dict[str, tuple[str, int, int]] = {}
        versions = []
        for pair in _PAIR.finditer(text, start, end.start() if end else limit):
            group = 2 if pair.group(2) is not None else 3
            stated = (pair.group(group), pair.start(group), pair.end(group))
            found.setdefault(pair.group(1), stated)
            if pair.group(1) == "version":
                versions.append(stated)
        if "name" in found:
            for version in versions if every else versions[:1]:
                yield _place(found["name"], version)
            if not versions:
                yield _place(found["name"], None)


def _place(name: tuple[str, int, int], version: tuple[str, int, int] | None) -> Place:
    if version is None:
        return name[0], None, name[1], name[2], 0, 0
    return name[0], version[0], min(name[1], version[1]), max(name[2], version[2]), version[1], version[2]


def _parsed(source: SourceFile) -> Iterator[Place]:
    root = toml_spans.parse(source)
    for block in root.list("package") or root.list("packages"):
        name, version = block.get("name"), block.get("version")
        if name is None or name.text is None:
            continue
        stated = (version.text, version.start, version.end) if version is not None and version.text else None
        yield _place((name.text, name.start, name.end), stated)


def _fact(block: Mapping[str, Any], source: SourceFile, start: int, end: int) -> PackageReference | None:
    name, version = normalise(block["name"]), _version(block)
    span = source.span(start, end)
    where = block.get("source")
    where = where if isinstance(where, dict) else {}
    if any(key in where for key in _TREES) or where.get("type") == "directory" or "directory" in block:
        return None
    path = where.get("path") or block.get("path")
    if isinstance(path, str) and not _ARCHIVE.search(path):
        return None
    url, ref = _repository(block, where)
    if url is not None:
        return PackageReference(name, "vcs", "lock", span, vcs_ref=ref, vcs_url=url)
    if version is None:
        archive = block.get("archive")
        address = (archive.get("url") or archive.get("path") or "") if isinstance(archive, dict) else ""
        shape = read_shape(str(address)) if address else None
        version = shape.version if shape is not None else None
    marker = block.get("marker") or block.get("markers")
    return PackageReference(
        name, "locked", "lock", span, version=version, marker=marker if isinstance(marker, str) else None
    )


def _repository(block: Mapping[str, Any], where: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Address and ref of a package that is locked to a source repository; the tag where it names one."""
    if isinstance(where.get("git"), str):  # uv: address?tag=v1#commit
        # cut by hand: urlsplit refuses odd hosts, and only what stands behind the address matters
        address, _, fragment = where["git"].partition("#")
        address, _, query = address.partition("?")
        asked = parse_qs(query)
        ref = next((asked[key][0] for key in ("tag", "rev", "branch") if key in asked), None)
        tag = asked.get("tag", [None])[0]
        return address, tag or fragment or ref
    if where.get("type") == "git":  # Poetry
        return str(where.get("url")), _ref(where.get("reference"), where.get("resolved_reference"))
    if isinstance(block.get("git"), str):  # PDM
        return block["git"], _ref(block.get("ref"), block.get("revision"))
    vcs = block.get("vcs")
    if isinstance(vcs, dict):  # PEP 751
        return str(vcs.get("url") or vcs.get("path") or ""), _ref(vcs.get("requested-revision"), vcs.get("commit-id"))
    return None, None


def _ref(asked: object, commit: object) -> str | None:
    """The ref as asked for when it is a tag with a number, the commit otherwise."""
    if isinstance(asked, str) and re.match(r"v?\d+(?:\.\d+)+", asked):
        return asked
    return commit if isinstance(commit, str) else asked if isinstance(asked, str) else None
