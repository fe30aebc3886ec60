"""Image references: their grammar, which of them hold the engine, and the engine version that a tag states."""

from __future__ import annotations

import re
from dataclasses import dataclass

from auditor.launch.versions import FIXED, Verdict, version_verdict
from auditor.model.facts import Unresolved, Value


@dataclass(frozen=True, slots=True)
class ImageParts:
    """`repository` with its registry, `tag` and `digest` where the reference has them."""

    repository: str
    tag: Value | None = None
    digest: str | None = None


def parse_reference(reference: Value) -> ImageParts:
    """Split a reference. A colon before the last slash is a registry port, not a tag."""
    text = reference.text if isinstance(reference, Unresolved) else str(reference)
    text, _, digest = text.partition("@")
    slash, colon = text.rfind("/"), text.rfind(":")
    if colon > slash:
        return ImageParts(text[:colon], text[colon + 1 :], digest or None)
    return ImageParts(text, None, digest or None)


def is_watched(reference: Value) -> bool:
    """Whether the reference names an image of the engine."""
    repository = parse_reference(reference).repository
    return repository.rsplit("/", 1)[-1] in ("sglang", "sglang-rocm")


def image_verdict(reference: Value, fixed: str = FIXED) -> Verdict:
    """The verdict on an image reference, by its tag."""
    parts = parse_reference(reference)
    if isinstance(reference, Unresolved):
        return Verdict("unverifiable", "variable", decide="the value of the variable")
    tag = parts.tag if isinstance(parts.tag, str) else ""
    found = re.match(r"v?(\d+(?:\.\d+)+(?:rc\d+)?(?:\.post\d+)?)", tag)
    if found:
        return version_verdict(found.group(1), fixed)
    if not tag:
        return Verdict("unverifiable", "digest" if parts.digest else "latest", decide="a tag that states the version")
    return Verdict("unverifiable", "latest" if tag.startswith("latest") else "unknown-tag", decide="a versioned tag")
