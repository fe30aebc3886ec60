"""Which files to look at: names, ignore files, links, submodules. Nothing is opened here but ignore files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from auditor.errors import UsageError
from auditor.git_index import Tracked
from auditor.ignore_files import NAME, Ignores, ignores_above

if TYPE_CHECKING:
    from auditor.readers import Reader

LANGUAGES = {".py": "python", ".pyi": "python", ".cs": "csharp"}  # what code checks can look at, by file ending

# Trees that tools install or generate: what is in them is pinned elsewhere, or nowhere in this repository.
INSTALLED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".venv",
        "site-packages",
        "dist-packages",
        "node_modules",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".eggs",
        ".terraform",
        ".auditor-cache",
    }
)


class Candidate(NamedTuple):
    """One file that some reader may want: `path` relative to the root with `/`, `full` for opening it. `explicit`: it
    was named on the command line, so it is read even where the walk would skip it."""

    path: str
    full: str
    explicit: bool = False


class Walked:
    """What the walk gave: the candidates in order of path, how many files it saw, remarks for the summary, and the
    folders that could not be read with the reason."""

    __slots__ = ("candidates", "files", "notes", "root", "unread")

    def __init__(self, root: str) -> None:
        self.root = root
        self.candidates: list[Candidate] = []
        self.files = 0
        self.notes: list[str] = []
        self.unread: list[tuple[str, str]] = []


class NameIndex:
    """Finds the readers of a path without trying every pattern.

    The ending alone decides for nearly all names of a tree, and that answer is kept. A path goes through the patterns
    one by one where its name is one that a pattern spells out, has no ending, or holds a word of the other patterns.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = tuple(readers)
        self._names: dict[str, list[int]] = {}
        self._endings: dict[str, list[int]] = {}
        self._globs: list[tuple[str, int]] = []
        self._plain: dict[str, tuple[Reader, ...]] = {}
        deciding: set[str] = set()
        for index, reader in enumerate(readers):
            endings = {pattern for pattern in reader.patterns if _ENDING.fullmatch(pattern)}
            for pattern in reader.patterns:
                if not re.search(r"[*?\[/]", pattern):
                    self._names.setdefault(pattern, []).append(index)
                elif pattern in endings:
                    self._endings.setdefault(pattern[1:], []).append(index)
                else:
                    self._globs.append((pattern, index))
                    if "*.*" not in reader.excludes:  # such a reader wants names without an ending only
                        deciding.add(pattern)
            if endings:
                deciding.update(
                    pattern for pattern in reader.excludes if pattern in endings or not _ENDING.fullmatch(pattern)
                )
        words = {_word(pattern) for pattern in deciding if "/" not in pattern}
        words = {word for word in words if not any(other in word for other in words - {word})}
        self._word = re.compile("|".join(map(re.escape, sorted(words))) or "(?!)")
        self._folders = tuple(sorted({_word(pattern) for pattern in deciding if "/" in pattern}))

    def readers(self, path: str) -> tuple[Reader, ...]:
        """The readers whose patterns match the path, in registry order."""
        path = "/" + path.lower()
        name = path[path.rfind("/") + 1 :]
        dot = name.rfind(".")
        if dot < 0 or name in self._names or self._word.search(name) or any(word in path for word in self._folders):
            return self._one_by_one(path, name, name[dot:] if dot >= 0 else "")
        ending = name[dot:]
        if ending not in self._plain:
            self._plain[ending] = tuple(self._readers[index] for index in self._endings.get(ending, ()))
        return self._plain[ending]

    def _one_by_one(self, path: str, name: str, ending: str) -> tuple[Reader, ...]:
        found = {*self._names.get(name, ()), *self._endings.get(ending, ())}
        for pattern, index in self._globs:
            if index not in found and _matches(pattern, path, name):
                found.add(index)
        return tuple(
            reader
            for reader in (self._readers[index] for index in sorted(found))
            if not any(_matches(pattern, path, name) for pattern in reader.excludes)
        )


_ENDING = re.compile(r"\*\.[^*?\[/.]+")


def _word(pattern: str) -> str:
    """The longest text that stands in every path that the pattern matches; empty where it has none."""
    return max(re.split(r"\[.[^\]]*\]|[*?]", pattern), key=len)


def _matches(pattern: str, path: str, name: str) -> bool:
    return _glob(pattern).match(path if "/" in pattern else name) is not None


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    if "/" in pattern and not pattern.startswith(("*", "/")):
        pattern = "*/" + pattern
    return re.compile(translate(pattern))


def root_of(paths: Sequence[str]) -> str:
    """The folder that reported paths are relative to: the one folder that was given; for files and for several
    folders, the working folder where it holds them all, else the folder that does."""
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return os.path.abspath(paths[0])
    here = os.getcwd()
    absolute = [os.path.abspath(path) for path in paths]
    if all(path == here or path.startswith(here.rstrip(os.sep) + os.sep) for path in absolute):
        return here
    return os.path.commonpath([path if os.path.isdir(path) else os.path.dirname(path) for path in absolute])


def git_top(folder: str) -> str | None:
    """The nearest folder at or above that holds `.git`; `None` outside of a checkout."""
    folder = os.path.abspath(folder)
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def walk(
    paths: Sequence[str],
    index: NameIndex,
    *,
    wanted: frozenset[str],
    exclude: Sequence[str] = (),
    base: str | None = None,
    submodules: bool = False,
) -> Walked:
    """All candidates below the paths, each once, ordered by path.

    `wanted` are file endings that are candidates without a reader (source files of the code checks); `exclude` are
    git-ignore patterns of the configuration, relative to `base`. Links are followed only where they are named on the
    command line; a folder reached twice is walked once. Raises `UsageError` for a path that does not exist.
    """
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"`{path}` does not exist")
    walked = Walked(root_of(paths))
    spec = None
    if exclude:
        from pathspec import GitIgnoreSpec

        spec = GitIgnoreSpec.from_lines(exclude)
    seen: set[str] = set()
    excluded = 0
    left_out: list[str] = []
    barred: list[tuple[str, str]] = []
    for path in paths:
        full = os.path.abspath(path)
        if os.path.isdir(full):
            top = git_top(full)
            for entry in _files(full, ignores_above(full, top), Tracked(top), submodules, left_out, barred):
                walked.files += 1
                if entry in seen:
                    continue
                name = _relative(entry, walked.root)
                dot = name.rfind(".")
                if not (name[dot:].lower() in wanted if dot >= 0 else False) and not index.readers(name):
                    continue
                if spec is not None and spec.match_file(_relative(entry, base or walked.root)):
                    excluded += 1
                    continue
                seen.add(entry)
                walked.candidates.append(Candidate(name, entry))
        elif full not in seen:
            seen.add(full)
            walked.files += 1
            walked.candidates.append(Candidate(_relative(full, walked.root), full, explicit=True))
    walked.candidates.sort(key=lambda candidate: candidate.path)
    walked.unread = sorted({(_relative(path, walked.root), reason) for path, reason in barred})
    if left_out:
        count = len(left_out)
        names = ", ".join(sorted(_relative(folder, walked.root) for folder in left_out)[:3])
        walked.notes.append(
            f"{count} submodule{'s' if count > 1 else ''} not scanned ({names}); include with --submodules"
        )
    if excluded and not walked.candidates:
        what = "the one file that would be read" if excluded == 1 else f"all {excluded} files that would be read"
        walked.notes.append(f"`exclude` of the configuration takes out {what}")
    return walked


def _relative(full: str, root: str) -> str:
    if full.startswith(root + os.sep):
        return full[len(root) + 1 :].replace(os.sep, "/")
    return os.path.relpath(full, root).replace(os.sep, "/")


def _files(
    folder: str,
    ignores: Ignores,
    tracked: Tracked,
    submodules: bool,
    left_out: list[str],
    barred: list[tuple[str, str]],
) -> Iterator[str]:
    """Regular files below a folder that are tracked or that git would not ignore, in no order. Submodules that are left
    out, and folders that cannot be read with the reason, are added to the two lists.

    An explicit stack: trees can be deeper than recursion.
    """
    stack = [(folder, ignores, tracked, False)]
    while stack:
        here, ignores, tracked, only_tracked = stack.pop()
        try:
            with os.scandir(here) as scan:
                entries = {entry.name: entry for entry in scan}
        except OSError as error:
            barred.append((here, error.strerror or str(error)))
            continue
        if here != folder:
            if "pyvenv.cfg" in entries and entries["pyvenv.cfg"].is_file():
                continue
            if ".git" in entries:
                if not submodules and entries[".git"].is_file():
                    left_out.append(here)
                    continue
                tracked = Tracked(here)
        if NAME in entries:
            ignores = ignores.with_file(entries[NAME].path)
        for entry in entries.values():
            if entry.is_symlink():
                continue  # a link inside the tree leads to a file that is read anyway, or out of it
            if entry.is_dir():
                if entry.name in INSTALLED:
                    continue
                ignored = only_tracked or ignores.ignored(entry.name, True)
                if not ignored or tracked.holds_below(entry.path):
                    stack.append((entry.path, ignores.below(entry.name), tracked, ignored))
            elif entry.is_file() and (
                not (only_tracked or ignores.ignored(entry.name, False)) or tracked.holds(entry.path)
            ):
                yield entry.path
