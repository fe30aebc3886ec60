"""Requirement texts inside YAML and JSON of any schema: Truss, BentoML, Cog, Ray, Ansible, MLflow, private ones.

A text counts when it is a requirement as a whole. With a version, a repository or a wheel it counts as the item of any
list and as the value of any key but those of prose; without one only under a key that speaks of Python packages, or
in a list of packages beside a requirement with a version: a job or a service may be called like a package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.readers.declared import listed, of_specifier
from auditor.syntax import json_spans
from auditor.syntax.requirement_lines import requirement
from auditor.syntax.spanned import Spanned

MAX_JSON_CHARS = 4_000_000  # configuration is far smaller; a data set is not searched character by character
PROSE = frozenset(
    {
        "body", "changelog", "comment", "comments", "content", "description", "docs", "error", "example", "examples",
        "help", "label", "labels", "log", "message", "name", "note", "notes", "placeholder", "prompt", "reason",
        "summary", "text", "title",
    }
)  # fmt: skip
_PYTHON = re.compile(
    r"(?:python|pip|pypi|extra|additional|runtime|uv)?[_-]?"
    r"(?:requirements?|pip|pip[_-]?(?:packages?|install|dependencies|requirements)|python[_-]?(?:packages?|dependencies)"
    r"|pypi[_-]?(?:packages?|dependencies)|install_requires)(?:[_-]?txt)?$",
    re.IGNORECASE,
)
_LISTS = re.compile(r"(?:\w+[_-])?(?:packages?|dependencies|deps|libraries|modules)$", re.IGNORECASE)
_MAPS = re.compile(
    r"(?:python|pip|pypi|extra)?[_-]?(?:packages|dependencies|requirements|constraints|pins|package[_-]versions|pip)$",
    re.IGNORECASE,
)
_VERSION = re.compile(r"\s*(?:[=~!]=|[<>]=?|===|\^|~)?\s*v?\d+\.\d+[\w.+!*-]*(?:\s*,\s*[<>=!~]+\s*[\w.+!*-]+)*\s*$")
_ANSIBLE = frozenset({"pip", "ansible.builtin.pip", "uv"})
_VERSIONED = re.compile(
    r"\s*(?:[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*(?:[=~!]=|[<>]|[@(;]|[$\ue000{])|git\+|\S+\.(?:whl|tar\.gz|zip))"
)
_NAME = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*(?:;.*)?$")
_ANYWHERE = re.compile(
    r"[A-Za-z0-9_\]]\s*(?:[=~!]=|[<>]=?)\s*[0-9$\\{]|@\s*(?:git\+|https?:)|git\+https?:|git\+ssh:|\.whl\b|\.tar\.gz\b"
    r"|(?:requirements?|pip|packages|dependencies|deps|libraries|modules|install_requires)[\w-]*[\"']?\s*:",
    re.IGNORECASE,
)


def may_hold(text: str) -> bool:
    """Whether the text holds anything that looks like a requirement or a list of them: what reading it is worth."""
    return _ANYWHERE.search(text) is not None


def read(source: SourceFile) -> Iterator[Fact]:
    """The requirement texts of a JSON file. A file that looks like no configuration is left alone."""
    text = source.text
    if not may_hold(text) or '"cyclonedx"' in text[:2000].lower() or '"spdxVersion"' in text[:2000]:
        return
    if len(text) > MAX_JSON_CHARS:
        raise ReadError("a JSON file too large to search for requirements", 0, limit=True)
    yield from requirements_in(json_spans.parse(source), source)


def requirements_in(root: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """Every requirement below a value, scope by the keys that lead to it."""
    seen: set[int] = set()
    stack: list[tuple[tuple[str, ...], Spanned, bool]] = [((), root, False)]
    while stack:
        path, node, beside = stack.pop()
        if isinstance(node.value, str):
            fact = _text(path, node, source, beside)
            if fact is not None:
                yield fact
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.pairs:
            module = _pip_module(path, node, source)
            if module is not None:
                yield from module
                continue
            if path and _MAPS.match(path[-1]):
                yield from _versions(path, node, source)
            stack.extend(((*path, key), node.pairs[key], False) for key in reversed(node.pairs))
        elif node.items:
            versioned = any(
                re.match(r"[A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*(?:[=~!]=|[<>])", item.text or "") for item in node.items
            )
            stack.extend((path, item, versioned or beside) for item in reversed(node.items))


def _text(path: tuple[str, ...], node: Spanned, source: SourceFile, beside: bool) -> PackageReference | None:
    text = node.text or ""
    key = path[-1] if path else ""
    if len(text) > 400 or key.lower() in PROSE or "\n" in text.strip():
        return None
    near = path[-2:]
    speaks = any(_PYTHON.match(name) for name in near) or (beside and any(_LISTS.match(name) for name in near))
    if not _VERSIONED.match(text) and not (speaks and _NAME.match(text)):
        return None
    if re.match(r"\s*[a-z]+://\S+\.git/?$", text):
        return None  # the address of a repository, which something else clones
    fact = requirement(node.mapped, source, scope_of(path))
    return fact if fact is None or fact.kind != "bare" or speaks else None


def _versions(path: tuple[str, ...], node: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """A table from package to version, under a key that speaks of packages."""
    for name, value in node.pairs.items():
        if value.text is not None and _VERSION.match(value.text) and _NAME.match(name):
            fact = of_specifier(name, value, source, scope_of(path), exact=True)
            if fact is not None:
                yield fact


def _pip_module(path: tuple[str, ...], node: Spanned, source: SourceFile) -> list[PackageReference] | None:
    """Ansible's pip module: `name` is a requirement or a list of them, `version` a version of its own."""
    name, version = node.get("name"), node.get("version")
    if not path or path[-1] not in _ANSIBLE or name is None:
        return None
    scope = scope_of(path)
    if name.text is not None and version is not None and version.text:
        fact = of_specifier(name.text, version, source, scope, exact=True)
        return [fact] if fact is not None else []
    return list(listed(name.items or [name], source, scope))


def scope_of(path: tuple[str, ...]) -> str:
    """The keys that lead to a value, as one text."""
    return ".".join(path)
