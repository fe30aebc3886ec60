"""One requirement as pip reads it: PEP 508, a URL, a source checkout, a wheel or sdist by file name, with its span.

Reading is by shape and not by `packaging`: a marker that no parser knows (`; #engine# == "x"`) or a variable in the
version must not hide the pin. Holes (`${V}`, `$V`, `{{ v }}`) stand as one private character while the shape is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import unquote

from auditor.model.facts import Hole, PackageReference, Unresolved, Value
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.expressions import choice_of
from auditor.syntax.mapped import Mapped
from auditor.syntax.words import Word

_INVISIBLE = " \t\r\n\f\v\u00a0\u200b\u2060\ufeff"  # a mark of a file pasted into another stands at a line's start
_FIRST = 0xE000  # Unicode private use: one character stands for one hole
_HOLES = f"{chr(_FIRST)}-{chr(0xF8FF)}"
_HOLE = re.compile(
    r"\$\{\{[^{}]*\}\}|\{\{[^{}]*\}\}|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_.]*)(?P<rest>[^{}]*)\}|\$(?P<plain>[A-Za-z_]\w*)"
)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EXTRAS = re.compile(rf"\s*\[([A-Za-z0-9._,\s{_HOLES}-]*)\]")
_CLAUSE = rf"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9{_HOLES}][A-Za-z0-9._*+!{_HOLES}-]*"
_SPECIFIER = re.compile(rf"\s*\(?\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)\s*,?\s*\)?")
_ONLY_HOLE = re.compile(rf"\s*([{_HOLES}])")
_URL = re.compile(r"\s*@\s*([^\s;:/]*[:/][^\s]*)")
_TAIL = re.compile(r"\s*(?:;(?P<marker>.*)|(?:\\?\s*--[a-z].*)|#.*)?$", re.DOTALL)
_PIN = re.compile(rf"(===?)\s*([A-Za-z0-9{_HOLES}][A-Za-z0-9._+!{_HOLES}-]*)$")
_VCS = re.compile(r"(?:git|hg|svn|bzr)\+")
_WHEEL = re.compile(
    rf"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-(?P<version>[0-9{_HOLES}][A-Za-z0-9._+!{_HOLES}]*)"
    rf"(?:-\d[^-]*)?-[A-Za-z0-9_.{_HOLES}]+-[A-Za-z0-9_.{_HOLES}]+-[A-Za-z0-9_.{_HOLES}]+\.whl$"
)
_SDIST = re.compile(
    rf"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-(?P<version>v?[0-9{_HOLES}][A-Za-z0-9._+!{_HOLES}]*?)"
    r"(?:\.tar\.gz|\.tgz|\.zip|\.tar\.bz2|\.tar\.xz)$"
)
_ARCHIVE = re.compile(r"/([^/]+)/(?:archive|tarball|zipball)/(?:refs/(?:tags|heads)/)?(.+?)(?:\.tar\.gz|\.tgz|\.zip)?$")
_ENGINE_FOLDERS = ("", "python", "python/", "./python")

Masked = tuple[Hole, str]  # a hole and its text as written
Kind = Literal["pinned", "range", "locked", "vcs", "file", "source", "bare"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What one requirement text says; `end` is where its last telling character ends, before marker and options."""

    name: str
    kind: Kind
    start: int
    end: int
    specifier: str | None = None
    version: str | None = None
    vcs_ref: str | None = None
    vcs_url: str | None = None
    extras: tuple[str, ...] = ()
    marker: str | None = None


def normalise(name: str) -> str:
    """The name by PEP 503: lower case, runs of `-`, `_` and `.` as one dash."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned_version(specifier: str) -> str | None:
    """The one version that a specifier set can mean by `==` or `===`; `None` for a range or a wildcard."""
    for clause in specifier.strip().strip("()").split(","):
        pin = _PIN.match(clause.strip())
        if pin:
            return pin.group(2)
    return None


def requirement(text: Mapped, source: SourceFile, scope: str) -> PackageReference | None:
    """The package that a requirement text names; `None` where the text is no requirement. The span runs from the name
    to the end of specifier or URL, without marker and options."""
    masked, holes, places = mask(text.text)
    shape = read_shape(masked)
    if shape is None:
        return None
    return _reference(shape, holes, scope, text.span(source, places[shape.start], places[shape.end]))


def requirement_of_word(word: Word, source: SourceFile, scope: str) -> PackageReference | None:
    """The same for one word of a command line or one scalar of a list. A word without escapes gets the exact span."""
    holes: list[Masked] = []
    if isinstance(word.value, Unresolved):
        pieces = []
        for part in word.value.parts:
            if isinstance(part, Hole):
                pieces.append(chr(_FIRST + len(holes)))
                holes.append((part, "${" + part.name + "}"))
            else:
                pieces.append(part)
        masked = "".join(pieces)
    elif isinstance(word.value, str):
        masked = word.value
    else:
        return None
    shape = read_shape(masked)
    if shape is None:
        return None
    span = word.span
    inside = source.slice(span).find(word.text) if len(masked) == len(word.text) else -1
    if inside >= 0:
        first = span.start.offset + inside
        span = source.span(first + shape.start, first + shape.end)
    elif (written := source.slice(span)) and len(written) > 2 and written[0] in "\"'" and written[-1] == written[0]:
        span = source.span(span.start.offset + 1, span.end.offset - 1)
    return _reference(shape, holes, scope, span)


def mask(text: str) -> tuple[str, list[Masked], list[int]]:
    """The text with one private character for each hole, the holes, and the place of each character."""
    pieces: list[str] = []
    holes: list[Masked] = []
    places: list[int] = []
    last = 0
    for found in _HOLE.finditer(text) if "$" in text or "{{" in text else ():
        pieces.append(text[last : found.start()])
        places.extend(range(last, found.start()))
        pieces.append(chr(_FIRST + len(holes)))
        places.append(found.start())
        holes.append((_hole(found), found.group()))
        last = found.end()
    pieces.append(text[last:])
    places.extend(range(last, len(text) + 1))
    return "".join(pieces), holes, places


def _hole(found: re.Match[str]) -> Hole:
    name = found.group("name") or found.group("plain")
    if name is None:
        inner = found.group(0).strip("${} ")
        if not found.group(0).startswith("${{"):
            return Hole(inner)
        choice = choice_of(inner)
        return Hole(choice.name, inner[slice(*choice.literal)] if choice.literal is not None else None)
    rest = found.group("rest") or ""
    default = re.match(r":?-(.*)$", rest, re.DOTALL)
    return Hole(name, default.group(1) if default else None)


def _reference(shape: Shape, holes: Sequence[Masked], scope: str, span: Span) -> PackageReference:
    def value(text: str | None) -> Value | None:
        return None if text is None else fill(text, holes)

    return PackageReference(
        name=shape.name,
        kind=shape.kind,
        scope=scope,
        span=span,
        specifier=value(shape.specifier),
        version=value(shape.version),
        vcs_ref=value(shape.vcs_ref),
        vcs_url=_plain(shape.vcs_url, holes),
        extras=tuple(_plain(extra, holes) or "" for extra in shape.extras),
        marker=_plain(shape.marker, holes),
    )


def fill(text: str, holes: Sequence[Masked]) -> Value:
    """Put the holes back: plain text where there are none, `Unresolved` with its parts otherwise."""
    parts: list[str | Hole] = []
    written: list[str] = []
    for char in text:
        index = ord(char) - _FIRST
        written.append(holes[index][1] if 0 <= index < len(holes) else char)
        if 0 <= index < len(holes):
            parts.append(holes[index][0])
        elif parts and isinstance(parts[-1], str):
            parts[-1] += char
        else:
            parts.append(char)
    if not any(isinstance(part, Hole) for part in parts):
        return text
    return Unresolved("".join(written), tuple(parts))


def _plain(text: str | None, holes: Sequence[Masked]) -> str | None:
    if text is None:
        return None
    value = fill(text, holes)
    return value.text if isinstance(value, Unresolved) else str(value)


def read_shape(text: str) -> Shape | None:
    """The shape of one requirement in a text where each hole is one private character."""
    start = len(text) - len(text.lstrip(_INVISIBLE))
    end = len(text.rstrip(_INVISIBLE))
    if start >= end:
        return None
    if _VCS.match(text, start) or "://" in text[start:end].split(";")[0].split("@")[0] or text[start] in "./":
        return _of_url(text, start, end)
    name = _NAME.match(text, start)
    if name is None:
        return None
    location = re.match(r"\S+", text[start:end])
    if location and re.search(r"\.(?:whl|tar\.gz|zip)$", location.group()):
        return _of_url(text, start, end)
    at, last = name.end(), name.end()
    extras: tuple[str, ...] = ()
    bracket = _EXTRAS.match(text, at)
    if bracket:
        extras = tuple(extra.strip() for extra in bracket.group(1).split(",") if extra.strip())
        at = last = bracket.end()
    found = normalise(name.group())
    url = _URL.match(text, at)
    if url:
        marker = _marker(text[url.end() : end])
        return _direct(found, url.group(1), start, url.end(), extras, marker)
    specifier = _SPECIFIER.match(text, at)
    hole = None if specifier else _ONLY_HOLE.match(text, at)
    if specifier:
        at = last = specifier.end()
        last -= len(text[specifier.start() : last]) - len(text[specifier.start() : last].rstrip())
    elif hole:
        at = last = hole.end()
    tail = _TAIL.match(text, at)
    if tail is None:
        return None
    marker = tail.group("marker")
    written = specifier.group(1).strip() if specifier else hole.group(1) if hole else None
    version = pinned_version(written) if specifier and written else None
    kind: Kind = "pinned" if version else "range" if written else "bare"
    return Shape(
        found, kind, start, last, written, version, extras=extras, marker=marker.strip() if marker is not None else None
    )


def _marker(rest: str) -> str | None:
    found = re.match(r"\s*;(.*)$", rest, re.DOTALL)
    return found.group(1).strip() if found else None


def _of_url(text: str, start: int, end: int) -> Shape | None:
    """A requirement that is a location: its name comes from `#egg=`, the file name, or the repository."""
    found = re.match(r"\S+", text[start:end])
    if found is None:
        return None
    url = found.group()
    marker = _marker(text[start + len(url) : end])
    if url.endswith(";"):
        url, marker = url[:-1], text[start + len(found.group()) : end].strip()
    egg = re.search(r"[#&]egg=([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?", url)
    extras = tuple(part.strip() for part in (egg.group(2) or "").split(",") if part.strip()) if egg else ()
    bracket = re.search(r"\[([A-Za-z0-9._,\s-]*)\]$", url)
    if bracket and not egg:
        extras = tuple(part.strip() for part in bracket.group(1).split(",") if part.strip())
    name = normalise(egg.group(1)) if egg else _name_of_url(url[: bracket.start()] if bracket else url)
    if not name:
        return None
    return _direct(name, url, start, start + len(url), extras, marker)


def _direct(name: str, url: str, start: int, end: int, extras: tuple[str, ...], marker: str | None) -> Shape:
    bare = url.split("#", 1)[0].split("?", 1)[0].rstrip("/")
    bare = re.sub(r"\[[A-Za-z0-9._,\s-]*\]$", "", bare)
    if _VCS.match(url):
        address, ref = split_vcs(bare)
        return Shape(name, "vcs", start, end, vcs_ref=ref, vcs_url=address, extras=extras, marker=marker)
    file = unquote(bare.rsplit("/", 1)[-1])
    archive = _ARCHIVE.search(bare)
    if archive:
        return Shape(
            name, "vcs", start, end, vcs_ref=archive.group(2), vcs_url=bare[: archive.start(1)] + archive.group(1),
            extras=extras, marker=marker,
        )  # fmt: skip
    built = _WHEEL.match(file) or _SDIST.match(file)
    if built:
        return Shape(name, "file", start, end, version=built.group("version"), extras=extras, marker=marker)
    if re.search(r"\.git$", bare):
        return Shape(name, "vcs", start, end, vcs_url=bare, extras=extras, marker=marker)
    return Shape(name, "file", start, end, extras=extras, marker=marker)


def split_vcs(url: str) -> tuple[str, str | None]:
    """Address and ref of a pip VCS URL without fragment: `git+https://host/o/r.git@v1` gives the part before the `@`
    of the path and `v1`."""
    address = _VCS.sub("", url, count=1)
    scheme, found, rest = address.partition("://")
    slash = rest.find("/") if found else address.find("/")
    at = (rest if found else address).find("@", max(slash, 0))
    if at < 0:
        return address, None
    if found:
        return f"{scheme}://{rest[:at]}", rest[at + 1 :] or None
    return address[:at], address[at + 1 :] or None


def _name_of_url(url: str) -> str | None:
    fragment = url.partition("#")[2]
    bare = url.split("#", 1)[0].split("?", 1)[0].rstrip("/")
    file = unquote(bare.rsplit("/", 1)[-1])
    archive = _ARCHIVE.search(bare)
    if archive:
        return _of_repository(archive.group(1), fragment)
    built = _WHEEL.match(file) or _SDIST.match(file)
    if built:
        return normalise(built.group("name"))
    if _VCS.match(url) or bare.endswith(".git"):
        address = split_vcs(bare)[0] if _VCS.match(url) else bare
        return _of_repository(address.rsplit("/", 1)[-1].rsplit(":", 1)[-1], fragment)
    return None


def _of_repository(repository: str, fragment: str) -> str | None:
    folder = re.search(r"(?:^|&)subdirectory=([^&]*)", fragment)
    return name_of_repository(repository, folder.group(1) if folder else "")


def name_of_repository(repository: str, folder: str) -> str | None:
    """The distribution that a checkout installs from a folder of it: the kernel or the router of the engine's
    repository is not the engine. `repository` is the name or the address of the repository."""
    repository = repository.rstrip("/").rsplit("/", 1)[-1]
    inside = folder.strip("/")
    name = normalise(re.sub(r"\.git$", "", repository))
    if name == "sglang" and inside not in _ENGINE_FOLDERS:
        return normalise(inside.split("/")[0]) or None
    return name or None
