"""Bytes to text: byte-order mark first, then a coding comment, then UTF-8, then a fallback that loses no byte."""

from __future__ import annotations

import codecs
import re

from auditor.limits import BINARY_PROBE_BYTES
from auditor.model.spans import SourceFile

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LATIN = 0.5  # the share of characters below U+0100 from which unmarked bytes are taken for UTF-16: texts, not numbers
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")


def mark_of(data: bytes) -> tuple[bytes, str] | None:
    """The byte-order mark at the start of the bytes and its encoding; an empty mark where the bytes have none and NUL
    bytes in every second place, or in three of four, show that they are UTF-16 or UTF-32 all the same."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return mark, encoding
    probe = data[:BINARY_PROBE_BYTES]
    if b"\0" not in probe or len(data) % 2:
        return None
    for width, encodings in ((4, ("utf-32-be", "utf-32-le")), (2, ("utf-16-be", "utf-16-le"))):
        units = len(probe) // width
        if len(data) % width or not units:
            continue
        for encoding, text in zip(encodings, (width - 1, 0), strict=True):
            lanes = [probe[lane::width].count(0) for lane in range(width)]
            if lanes[text] == 0 and all(count >= units * _LATIN for lane, count in enumerate(lanes) if lane != text):
                return b"", encoding
    return None


def utf8_of(data: bytes) -> bytes:
    """The bytes in which byte strings are looked for: the file's own, those of wide encodings as UTF-8."""
    marked = mark_of(data)
    if marked is None or marked[1] == "utf-8":
        return data
    return data[len(marked[0]) :].decode(marked[1], "replace").encode("utf-8", "replace")


def is_binary(data: bytes) -> bool:
    """A NUL byte near the start and no byte-order mark: not text."""
    return b"\0" in data[:BINARY_PROBE_BYTES] and mark_of(data) is None


def decode(path: str, data: bytes) -> tuple[SourceFile, str | None]:
    """The decoded file, and a remark when some byte did not fit the encoding that it seems to have."""
    marked = mark_of(data)
    if marked:
        mark, encoding = marked
        try:
            return SourceFile(path, data[len(mark) :].decode(encoding), data, encoding), None
        except UnicodeDecodeError:
            text = data[len(mark) :].decode(encoding, "replace")
            return SourceFile(path, text, data, encoding), f"not valid {encoding.upper()}: bad characters were replaced"
    for line in data.split(b"\n", 2)[:2]:
        declared = _CODING.match(line)
        if declared:
            try:
                name = codecs.lookup(declared.group(1).decode("ascii")).name
                return SourceFile(path, data.decode(name), data, name), None
            except (LookupError, UnicodeDecodeError, TypeError):
                break
    try:
        return SourceFile(path, data.decode("utf-8"), data), None
    except UnicodeDecodeError:
        return SourceFile(
            path, data.decode("latin-1"), data, "latin-1"
        ), "not valid UTF-8: read byte by byte as Latin-1"
