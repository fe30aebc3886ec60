"""Which files git tracks, out of its index file: an ignore pattern says nothing of a file that was added all the same.

Read here and not by the `git` program, which costs more than a hook run may, and only once something is ignored.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left

_HEAD = 40  # bytes of times, device, inode, mode, owner and size before an entry's object name


class Tracked:
    """The tracked paths of the checkout whose top folder is `top`; of no checkout, none. The index is read at the first
    question; one that cannot be understood tracks nothing."""

    __slots__ = ("_names", "_top")

    def __init__(self, top: str | None) -> None:
        self._top = top
        self._names: list[bytes] | None = None if top is not None else []

    def holds(self, full: str) -> bool:
        """Whether the file is tracked."""
        names, name = self._known(), self._name(full)
        place = bisect_left(names, name)
        return place < len(names) and names[place] == name

    def holds_below(self, full: str) -> bool:
        """Whether any file below the folder is tracked."""
        names, name = self._known(), self._name(full) + b"/"
        place = bisect_left(names, name)
        return place < len(names) and names[place].startswith(name)

    def _name(self, full: str) -> bytes:
        return os.fsencode(os.path.relpath(full, self._top).replace(os.sep, "/"))

    def _known(self) -> list[bytes]:
        if self._names is None:
            self._names = tracked_names(self._top or "")
        return self._names


def git_folder(top: str) -> str | None:
    """The folder in which git keeps the index of a checkout: `.git`, or where the file of that name leads (worktrees,
    submodules)."""
    path = os.path.join(top, ".git")
    if os.path.isdir(path):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read(4096)
    except OSError:
        return None
    return os.path.join(top, text[8:].strip()) if text.startswith("gitdir: ") else None


def common_folder(folder: str) -> str:
    """The folder that all worktrees of a repository share, where configuration and `info/exclude` are."""
    try:
        with open(os.path.join(folder, "commondir"), encoding="utf-8", errors="surrogateescape") as stream:
            return os.path.join(folder, stream.read(4096).strip())
    except OSError:
        return folder


def tracked_names(top: str) -> list[bytes]:
    """All paths of the index, sorted, with `/` from the top of the checkout."""
    folder = git_folder(top)
    if folder is None:
        return []
    data = _bytes(os.path.join(folder, "index"))
    width = 32 if _is_sha256(common_folder(folder)) else 20
    names, end = _names(data, width)
    if data[end : end + 4] == b"link":  # a split index: most entries stand in the shared file
        shared = data[end + 8 : end + 8 + width].hex()
        names += _names(_bytes(os.path.join(folder, f"sharedindex.{shared}")), width)[0]
    return sorted(filter(None, names))


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _is_sha256(folder: str) -> bool:
    return re.search(rb"(?im)^\s*objectformat\s*=\s*\"?sha256", _bytes(os.path.join(folder, "config"))) is not None


def _names(data: bytes, width: int) -> tuple[list[bytes], int]:
    """The names of an index file and where its entries end. Format: gitformat-index of the git documentation."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        return [], 0
    names: list[bytes] = []
    place, fixed, name = 12, _HEAD + width + 2, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = place + fixed
        if start > len(data):
            return [], 0
        if data[start - 2] & 0x40:
            start += 2  # extended flags, from version 3 on
        if version == 4:
            cut, start = _varint(data, start)
            end = data.find(b"\0", start)
            name = name[: len(name) - cut] + data[start:end]
            place = end + 1
        else:
            end = data.find(b"\0", start)
            name = data[start:end]
            place += (end - place + 8) & ~7  # one to eight NUL bytes: entries are multiples of eight bytes
        if end < 0:
            return [], 0
        names.append(name)
    return names, place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """How much of the name before to cut off (version 4), and where the number ends."""
    value = 0
    while place < len(data):
        byte = data[place]
        place += 1
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            break
        value += 1
    return value, place
