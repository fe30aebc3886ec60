"""What git would leave out: `.gitignore` files, innermost first, asked as seldom as possible.

An ignore file of a hundred lines is a hundred regular expressions a path. Most paths hold no name that any of its lines
speaks of; those are told apart by the names alone, and only the others are put to `pathspec`, which reads the lines as
git does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.git_index import common_folder, git_folder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAME = ".gitignore"
_ENDING = re.compile(r"\*(\.[^*?\[\\.]+)")
_WILD = re.compile(r"\*+|\?|\[[A-Za-z0-9_]+\]")  # what can be taken at its word; anything else matches from there on


class IgnoreFile:
    """The patterns of one ignore file. Paths are relative to the folder that it holds for."""

    __slots__ = ("_endings", "_lines", "_names", "_others", "_spec")

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._spec: GitIgnoreSpec | None = None
        self._names: set[str] = set()
        self._endings: set[str] = set()
        others = set()
        for line in lines:
            segment = _telling(line)
            ending = _ENDING.fullmatch(segment)
            if ending:
                self._endings.add(ending[1])
            elif not re.search(r"[*?\[\\]", segment):
                self._names.add(segment)
            else:
                others.add(_loose(segment))
        self._others = re.compile("|".join(sorted(others)) or "(?!)", re.DOTALL)

    def touches(self, name: str) -> bool:
        """Whether a pattern may match a path because of this name in it. Never `False` where one does."""
        return (
            name in self._names or name[name.rfind(".") :] in self._endings or self._others.fullmatch(name) is not None
        )

    def verdict(self, path: str) -> bool | None:
        """Whether the path is left out (`True`), kept (`False`) or not spoken of. A folder's path ends in `/`."""
        if self._spec is None:
            self._spec = _spec(self._lines)
        return self._spec.check_file(path).include


def read_ignore_file(path: str) -> IgnoreFile | None:
    """The ignore file at the path; `None` where there is none or nothing stands in it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return None
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    return IgnoreFile(lines) if lines else None


class Level(NamedTuple):
    """One ignore file as it holds in a folder: `prefix` leads there from the folder of the file, `touched` says that a
    name on the way is one that it speaks of."""

    file: IgnoreFile
    prefix: str
    touched: bool


class Ignores:
    """The ignore files that hold in a folder; the innermost that speaks of a path decides, as in git."""

    __slots__ = ("_levels",)

    def __init__(self, levels: tuple[Level, ...] = ()) -> None:
        self._levels = levels

    def below(self, name: str) -> Ignores:
        """Those of the folder `name` in this one, without its own file."""
        if not self._levels:
            return self
        return Ignores(
            tuple(
                Level(file, f"{prefix}{name}/", touched or file.touches(name)) for file, prefix, touched in self._levels
            )
        )

    def with_file(self, path: str) -> Ignores:
        """The same and the file at the path, which stands in this folder (or holds for it)."""
        own = read_ignore_file(path)
        return self if own is None else Ignores((Level(own, "", False), *self._levels))

    def ignored(self, name: str, folder: bool) -> bool:
        """Whether git would leave out the file or folder `name` of this folder."""
        for file, prefix, touched in self._levels:
            if touched or file.touches(name):
                verdict = file.verdict(prefix + name + ("/" if folder else ""))
                if verdict is not None:
                    return verdict
        return False


def ignores_above(root: str, top: str | None) -> Ignores:
    """What holds in `root` from above it: the ignore files of the folders from the repository's `top` down to it."""
    ignores = Ignores()
    if top is None:
        return ignores
    git = git_folder(top)
    if git is not None:
        ignores = ignores.with_file(os.path.join(common_folder(git), "info", "exclude"))
    if root == top:
        return ignores
    folder = top
    for part in os.path.relpath(root, top).split(os.sep):
        ignores = ignores.with_file(os.path.join(folder, NAME)).below(part)
        folder = os.path.join(folder, part)
    return ignores


def _telling(line: str) -> str:
    """The part of a pattern between two `/` that says most: each path that the pattern matches has a name like it."""
    parts = [part for part in line.rstrip().removeprefix("!").split("/") if part]
    return max(parts, key=lambda part: len(part.strip("*")), default="")


def _loose(segment: str) -> str:
    """A regular expression for all names that the segment of a pattern matches, and perhaps for others."""
    parts, at = [], 0
    for wild in _WILD.finditer(segment):
        parts.append(re.escape(segment[at : wild.start()]))
        parts.append({"*": ".*", "?": "."}.get(wild[0][0], wild[0]))
        at = wild.end()
    parts.append(re.escape(segment[at:]))
    odd = re.search(r"[\[\\]", _WILD.sub(lambda wild: "_" * len(wild[0]), segment))
    if odd is None:
        return "".join(parts)
    return re.escape(_WILD.split(segment[: odd.start()], maxsplit=1)[0]) + ".*"


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """The lines that are patterns. git passes over the others too, and one of them must not end an audit."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):
        pass
    sound = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            continue
        sound.append(line)
    return GitIgnoreSpec.from_lines(sound)
