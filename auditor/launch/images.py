"""Image references: their grammar, which of them hold the engine, and the engine version that a tag states."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from auditor.launch.versions import FIXED, version_verdict
from auditor.model.facts import Hole, Unresolved, Value
from auditor.model.findings import Confidence
from auditor.model.records import dataclass

Family = Literal["upstream", "vendor", "rebuild", "unnumbered", "product", "unknown"]

_HOLE = "\ue001"  # stands for one variable while a reference is taken apart
_VERSION = r"\d+(?:\.\d+)+(?:\.?(?:rc|a|b|alpha|beta)\.?\d+)?(?:\.?post\.?\d+)?(?:\.?dev\d*)?(?:\+[a-z0-9.]+)?"
_LEADING = re.compile(rf"v?({_VERSION})(?=[-_]|\Z)", re.IGNORECASE)
_WITH_V = re.compile(rf"(?:\A|[-_.])v({_VERSION})(?=[-_]|\Z)", re.IGNORECASE)
_NAMED = re.compile(rf"(?:sglang|sgl-dev)[-_:]?v?({_VERSION})(?=[-_.]|\Z)", re.IGNORECASE)
_BUILT = re.compile(
    r"\.post\d|-(?:cu\d{2,3}|rocm\d+|cann\d|runtime|nixl|mooncake|ucx)(?=[-_.\d]|\Z)"
)  # of the engine's tags
_DATED = re.compile(r"(?:\A|[-_])(20\d\d)(\d\d)(\d\d)(?=[-_]|\Z)")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_DOMAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}")
_SCHEMES = ("docker://", "docker-image://", "docker:", "oci://", "dockerd://", "podman://", "enroot://")


@dataclass(frozen=True, slots=True)
class ImageParts:
    """`repository` with its registry, `tag` and `digest` where the reference has them."""

    repository: str
    tag: Value | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """What an image reference can mean. `version` is the engine's where the tag states it; `reason` says why it is
    unverifiable and `decide` what would decide it; `basis` names the table or convention that the version rests on;
    `date` is the day of a dated build."""

    verdict: Literal["vulnerable", "safe", "unverifiable"]
    reason: str | None = None
    version: str | None = None
    decide: str | None = None
    confidence: Confidence = "high"
    basis: str | None = None
    date: str | None = None


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    import yaml

    text = (Path(__file__).parent / "images.yaml").read_text(encoding="utf-8")
    loaded = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts only: `0.10` stays `0.10`
    return dict(loaded)


def vendors() -> list[dict[str, Any]]:
    """The vendors' release tables."""
    return list(_data()["vendors"])


def parse_reference(reference: Value) -> ImageParts:
    """Split a reference. A colon before the last slash is a registry port, not a tag; a scheme is left out."""
    text, holes = _marked(reference)
    for scheme in _SCHEMES:
        if text.startswith(scheme):
            text = text[len(scheme) :]
            break
    text = text.strip()
    if text.endswith((".sqsh", ".sif")) or "+" in text.rsplit("/", 1)[-1].split(":", 1)[0]:
        text = _squashed(text)
    if "#" in text:  # enroot writes registry#path
        text = text.replace("#", "/", 1)
    text, _, digest = text.partition("@")
    slash, colon = text.rfind("/"), text.rfind(":")
    name, tag = (text[:colon], text[colon + 1 :]) if colon > slash else (text, "")
    return ImageParts(_plain(name, holes), _value(tag, holes) if tag else None, _plain(digest, holes) or None)


def repository_of(reference: Value, depth: int = 0) -> str:
    """The repository of a reference, its variables at their defaults: what two mentions of one image have in common."""
    if isinstance(reference, Unresolved) and depth < 8:
        parts = [
            part if isinstance(part, str) else repository_of(part.default, depth + 1)
            if isinstance(part.default, Unresolved) else "${" + part.name + "}" if part.default is None
            else str(part.default)
            for part in reference.parts
        ]  # fmt: skip
        text = "".join(parts)
        return text if depth else parse_reference(text).repository
    text = reference.text if isinstance(reference, Unresolved) else str(reference)
    return text if depth else parse_reference(text).repository


def _squashed(text: str) -> str:
    """`lmsysorg+sglang+v0.5.8.sqsh`, `sglang-v0.4.sqsh`: an image file named after its reference."""
    stem = re.sub(r"\.(?:sqsh|sif)\Z", "", text.rsplit("/", 1)[-1])
    if "+" in stem:
        *path, tag = stem.split("+")
        return "/".join(path) + ":" + tag
    found = re.match(r"(.*?sglang(?:-rocm|-runtime)?)[-_:](.+)\Z", stem, re.IGNORECASE)
    return f"{found.group(1)}:{found.group(2)}" if found else stem


def _marked(reference: Value) -> tuple[str, list[Hole]]:
    if not isinstance(reference, Unresolved):
        return str(reference), []
    holes = [part for part in reference.parts if isinstance(part, Hole)]
    return "".join(part if isinstance(part, str) else _HOLE for part in reference.parts), holes


def _plain(text: str, holes: list[Hole]) -> str:
    """The text with its variables written as `${NAME}`; takes the holes that it uses from the list."""
    pieces = text.split(_HOLE)
    out = pieces[0]
    for piece in pieces[1:]:
        out += "${" + holes.pop(0).name + "}" + piece
    return out


def _value(text: str, holes: list[Hole]) -> Value:
    if _HOLE not in text:
        return text
    parts: list[str | Hole] = []
    for index, piece in enumerate(text.split(_HOLE)):
        if index:
            parts.append(holes.pop(0))
        if piece:
            parts.append(piece)
    shown = "".join(part if isinstance(part, str) else "${" + part.name + "}" for part in parts)
    return Unresolved(shown, tuple(parts))


def is_reference(text: str) -> bool:
    """Whether the whole text has the shape of an image reference with a path, a tag or a digest: what a value must be
    to count as an image where its key does not say so."""
    for scheme in _SCHEMES:
        if text.startswith(scheme):
            text = text[len(scheme) :]
            break
    name, _, digest = text.partition("@")
    if digest and not _DIGEST.fullmatch(digest):
        return False
    slash, colon = name.rfind("/"), name.rfind(":")
    tag = ""
    if colon > slash:
        name, tag = name[:colon], name[colon + 1 :]
        if not _TAG.fullmatch(tag):
            return False
    path = "/" in name
    first, _, rest = name.partition("/")
    if rest and ("." in first or ":" in first or first == "localhost"):
        if not _DOMAIN.fullmatch(first):
            return False
        name = rest
    return bool(_REPOSITORY.fullmatch(name)) and bool(tag or digest or path)


def family_of(reference: Value) -> Family | None:
    """What kind of engine image a reference names; `None` when it is none."""
    parts = parse_reference(reference)
    repository = parts.repository.lower()
    tag = (parts.tag.text if isinstance(parts.tag, Unresolved) else str(parts.tag or "")).lower()
    name = reference if isinstance(reference, str) else ""
    if name.endswith((".sqsh", ".sif")) and "+" not in name and not _NAMED.search(name):
        return None  # a file name without a version says nothing that could be judged
    if "<" in repository or "<" in tag or tag in _data()["placeholder_tags"]:
        return None
    literal = re.sub(r"\$\{[^}]*\}", _HOLE, repository)
    component = literal.rsplit("/", 1)[-1]
    words = re.split(r"[-_.:]", component)
    if not set(words).isdisjoint(_data()["other_words"]):
        return None
    if _HOLE in component:
        return _family_of_names(parts.repository)
    for path in _data()["unnumbered"]:
        if _ends(literal, path):
            return "unnumbered"
    if any(_matches(vendor, literal) for vendor in _data()["vendors"]):
        return "vendor"
    if component == "sgl-dev":
        return "rebuild" if not _ends(literal, "rocm/sgl-dev") else "upstream"
    if component in _data()["engine"]:
        return "upstream" if any(_ends(literal, path) for path in _data()["upstream"]) else "rebuild"
    if "sglang" in words or "sgl-dev" in tag or any(word.startswith("sglang") for word in re.split(r"[-_.]", tag)):
        return "product"
    return None


def _family_of_names(repository: str) -> Family | None:
    """The family of a repository that is a variable: `unknown` when the variable is named after the engine."""
    names = " ".join(re.findall(r"\$\{([^}]*)\}", repository)).lower()
    words = set(re.split(r"[^a-z0-9]+", names))
    named = "sglang" in names and words.isdisjoint(_data()["other_words"])
    return "unknown" if named else None


def _ends(repository: str, path: str) -> bool:
    return repository == path or repository.endswith("/" + path)


def _matches(vendor: dict[str, Any], repository: str) -> bool:
    component = vendor.get("component")
    return repository.rsplit("/", 1)[-1] == component if component else _ends(repository, vendor["path"])


def is_watched(reference: Value) -> bool:
    """Whether the reference names an image that holds the engine."""
    return family_of(reference) is not None


def image_verdict(reference: Value, fixed: str = FIXED) -> ImageVerdict:
    """The verdict on an image reference by its tag; the digest of a tagged reference is not looked at."""
    parts = parse_reference(reference)
    family = family_of(reference) or "product"
    if parts.tag is None:
        if parts.digest:
            return ImageVerdict("unverifiable", "digest", decide="the tag that this digest was pulled from")
        if family == "unknown" or (isinstance(reference, Unresolved) and isinstance(reference.parts[-1], Hole)):
            return ImageVerdict("unverifiable", "variable", decide=_set(reference))
        return ImageVerdict("unverifiable", "latest", decide="a tag that states the version; none means `latest`")
    tag, _ = _marked(parts.tag)
    if family == "vendor":
        vendor = next(entry for entry in _data()["vendors"] if _matches(entry, parts.repository.lower()))
        known = _vendor_verdict(vendor, tag, fixed)
        if known is not None:
            return known
    version, confidence = _engine_version(tag, family, parts.repository.lower().rsplit("/", 1)[-1])
    if version is not None:
        word = version_verdict(version, fixed).verdict
        if word in ("vulnerable", "safe"):
            basis = None if family == "upstream" else "the number in the tag of an image that is built elsewhere"
            return ImageVerdict(
                "safe" if word == "safe" else "vulnerable", version=version, confidence=confidence, basis=basis
            )
    if _HOLE in tag:
        return ImageVerdict("unverifiable", "variable", decide=_set(parts.tag))
    return _undecided(tag, family, parts.digest, parts.repository.rsplit("/", 1)[-1])


def successor(repository: str, tag: str, fixed: str = FIXED) -> str | None:
    """The tag of the fixed release that takes the place of a tag of the project's own images: the same repository and
    the same suffix. `None` where none is known: mirrors and rebuilds may not have it, CUDA 12 ended before it."""
    if not any(repository == known or repository.endswith(f"docker.io/{known}") for known in _data()["upstream"]):
        return None
    match = re.fullmatch(r"v\d+(?:\.\d+)+(?:rc\d+)?(?:\.post\d+)?(?P<suffix>-.*)?", tag)
    if match is None or (match["suffix"] or "") not in _data()["successors"]:
        return None
    return f"v{fixed}{match['suffix'] or ''}"


def _set(value: Value | None) -> str:
    names = value.names if isinstance(value, Unresolved) else ()
    return f"a value for `{names[0]}`" if names else "the value of the variable"


def _engine_version(tag: str, family: Family, component: str) -> tuple[str | None, Confidence]:
    """The engine version that a tag states, with what it is worth."""
    named = _NAMED.search(tag)
    if named and _HOLE not in named.group(0):
        return named.group(1), "medium" if family == "product" else "high"
    leading = _LEADING.match(tag)
    if family == "product" and leading and component.startswith("sglang-") and _BUILT.search(tag):
        return leading.group(1), "medium"
    if family in ("unnumbered", "product", "vendor"):
        return None, "low"
    if leading and family == "rebuild" and not leading.group(1).startswith("0."):
        return None, "low"  # the engine has no 1.x: a rebuild's number of its own
    if leading:
        return leading.group(1), "high" if family == "upstream" else "medium"
    for found in _WITH_V.finditer(tag):
        if not tag[: found.start()].endswith("cann"):
            return found.group(1), "medium"
    return None, "low"


def _vendor_verdict(vendor: dict[str, Any], tag: str, fixed: str) -> ImageVerdict | None:
    """The verdict by a vendor's table; `None` when the tag has no row."""
    if _HOLE in tag:
        return None
    plain = re.sub(r"-(?:cuda\d+|amd64|arm64|x86_64|aarch64|efa|multinode)\b.*\Z", "", tag.removeprefix("v"))
    confidence: Confidence = "medium" if vendor.get("confidence") == "medium" else "high"
    engine = vendor["map"].get(tag) or vendor["map"].get(plain)
    basis = f"the release table of {vendor['name']}"
    if engine:
        word = version_verdict(engine, fixed).verdict
        return ImageVerdict(
            "safe" if word == "safe" else "vulnerable", version=engine, confidence=confidence, basis=basis
        )
    below = vendor.get("below")
    number = re.fullmatch(_VERSION, plain)
    if below and number:
        from packaging.version import InvalidVersion, Version

        try:
            older = Version(plain) < Version(below["before"])
        except InvalidVersion:
            older = False
        if older:
            return ImageVerdict("vulnerable", version=None, confidence="medium", basis=f"{basis}: older than its rows")
    decide = f"the engine version inside {vendor['name']} {tag}: run `pip show sglang` in the image"
    return ImageVerdict("unverifiable", "unknown-tag", decide=decide)


def _undecided(tag: str, family: Family, digest: str | None, component: str = "") -> ImageVerdict:
    dated = _DATED.search(tag)
    date = "-".join(dated.groups()) if dated else None
    first = re.split(r"[-_.]", tag.lower(), maxsplit=1)[0]
    if date and first in ("nightly", "dev", "main"):
        fixed = _data()["fix_not_before"]
        early = date < fixed
        decide = f"the commit; the build is of {date}, before the fix was written ({fixed})" if early else "the commit"
        return ImageVerdict("unverifiable", "commit", decide=decide, date=date)
    if re.fullmatch(r"[0-9a-f]{7,40}", tag):
        return ImageVerdict("unverifiable", "commit", decide="whether this commit is in 0.5.22 or later")
    if digest:
        return ImageVerdict("unverifiable", "digest", decide="the version behind the digest", date=date)
    if first in ("main", "master"):
        return ImageVerdict("unverifiable", "branch", decide="a tag that states the version", date=date)
    if first in _data()["moving"]:
        return ImageVerdict("unverifiable", "latest", decide="a tag that states the version; this one moves", date=date)
    if ":" in component:
        return ImageVerdict("unverifiable", "unknown-tag", decide="a reference with one tag; this one has two colons")
    if family in ("product", "unnumbered"):
        decide = "the engine version inside: run `pip show sglang` in the image"
        return ImageVerdict("unverifiable", "no-version", decide=decide, confidence="low", date=date)
    return ImageVerdict("unverifiable", "unknown-tag", decide="a tag that states the version", date=date)
