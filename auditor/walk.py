"""Which files to look at: names, ignore files, links, submodules. Nothing is opened here but ignore files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from auditor.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
    """What the walk gave: the candidates in order of path, how many files it saw, and remarks for the summary."""

    __slots__ = ("candidates", "files", "notes", "root")

    def __init__(self, root: str) -> None:
        self.root = root
        self.candidates: list[Candidate] = []
        self.files = 0
        self.notes: list[str] = []


class NameIndex:
    """Finds the readers of a path without trying every pattern: by name, by ending, the rest one by one."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = tuple(readers)
        self._names: dict[str, list[int]] = {}
        self._endings: dict[str, list[int]] = {}
        self._globs: list[tuple[re.Pattern[str], bool, int]] = []
        self._excludes: dict[int, list[tuple[re.Pattern[str], bool]]] = {}
        for index, reader in enumerate(readers):
            for pattern in reader.patterns:
                if not re.search(r"[*?\[/]", pattern):
                    self._names.setdefault(pattern, []).append(index)
                elif re.fullmatch(r"\*\.[^*?\[/.]+", pattern):
                    self._endings.setdefault(pattern[1:], []).append(index)
                else:
                    self._globs.append((_glob(pattern), "/" in pattern, index))
            if reader.excludes:
                self._excludes[index] = [(_glob(pattern), "/" in pattern) for pattern in reader.excludes]

    def readers(self, path: str) -> tuple[Reader, ...]:
        """The readers whose patterns match the path, in registry order."""
        path = path.lower()
        name = path[path.rfind("/") + 1 :]
        dot = name.rfind(".")
        found = set(self._names.get(name, ()))
        if dot >= 0:
            found.update(self._endings.get(name[dot:], ()))
        for pattern, whole, index in self._globs:
            if index not in found and pattern.match("/" + path if whole else name):
                found.add(index)
        for index in found & self._excludes.keys():
            if any(pattern.match("/" + path if whole else name) for pattern, whole in self._excludes[index]):
                found.discard(index)
        return tuple(self._readers[index] for index in sorted(found))


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


class _Ignores:
    """The ignore files that hold in a folder; the innermost that speaks of a path decides, as in git."""

    __slots__ = ("_own", "_parent")

    def __init__(self, parent: _Ignores | None, own: tuple[str, GitIgnoreSpec] | None) -> None:
        self._parent = parent
        self._own = own

    def below(self, folder: str) -> _Ignores:
        """The same with the ignore file of one more folder."""
        spec = _spec(os.path.join(folder, ".gitignore"))
        return _Ignores(self, (folder, spec)) if spec is not None else self

    def ignored(self, full: str, folder: bool) -> bool:
        """Whether git would leave the path out."""
        ignores: _Ignores | None = self
        while ignores is not None:
            if ignores._own is not None:
                base, spec = ignores._own
                name = os.path.relpath(full, base).replace(os.sep, "/") + ("/" if folder else "")
                verdict = spec.check_file(name).include
                if verdict is not None:
                    return verdict
            ignores = ignores._parent
        return False


def _spec(path: str) -> GitIgnoreSpec | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return None
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines(_sound(lines))


def _sound(lines: Sequence[str]) -> list[str]:
    """The lines that are patterns. git passes over the others too, and one of them must not end an audit."""
    from pathspec import GitIgnoreSpec

    sound = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            continue
        sound.append(line)
    return sound


def _ignores_above(root: str, top: str | None) -> _Ignores:
    ignores = _Ignores(None, None)
    if top is None:
        return ignores
    exclude = _spec(os.path.join(top, ".git", "info", "exclude"))
    if exclude is not None:
        ignores = _Ignores(ignores, (top, exclude))
    folder = top
    for part in ("", *os.path.relpath(root, top).split(os.sep)[:-1]):
        folder = os.path.join(folder, part) if part not in ("", ".") else folder
        if folder != root:
            ignores = ignores.below(folder)
    return ignores


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
    left_out: list[str] = []
    for path in paths:
        full = os.path.abspath(path)
        if os.path.isdir(full):
            for entry in _files(full, _ignores_above(full, git_top(full)), submodules, left_out):
                walked.files += 1
                if entry in seen:
                    continue
                name = _relative(entry, walked.root)
                dot = name.rfind(".")
                if not (name[dot:].lower() in wanted if dot >= 0 else False) and not index.readers(name):
                    continue
                if spec is not None and spec.match_file(_relative(entry, base or walked.root)):
                    continue
                seen.add(entry)
                walked.candidates.append(Candidate(name, entry))
        elif full not in seen:
            seen.add(full)
            walked.files += 1
            walked.candidates.append(Candidate(_relative(full, walked.root), full, explicit=True))
    walked.candidates.sort(key=lambda candidate: candidate.path)
    if left_out:
        count = len(left_out)
        names = ", ".join(sorted(_relative(folder, walked.root) for folder in left_out)[:3])
        walked.notes.append(
            f"{count} submodule{'s' if count > 1 else ''} not scanned ({names}); include with --submodules"
        )
    return walked


def _relative(full: str, root: str) -> str:
    if full.startswith(root + os.sep):
        return full[len(root) + 1 :].replace(os.sep, "/")
    return os.path.relpath(full, root).replace(os.sep, "/")


def _files(folder: str, ignores: _Ignores, submodules: bool, left_out: list[str]) -> Iterator[str]:
    """Regular files below a folder that git would not ignore. An explicit stack: trees can be deeper than recursion."""
    stack = [(folder, ignores)]
    while stack:
        here, ignores = stack.pop()
        ignores = ignores.below(here)
        try:
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            continue
        folders = []
        for entry in entries:
            if entry.is_symlink():
                continue  # a link inside the tree leads to a file that is read anyway, or out of it
            if entry.is_dir():
                if entry.name in INSTALLED or ignores.ignored(entry.path, True):
                    continue
                if os.path.isfile(os.path.join(entry.path, "pyvenv.cfg")):
                    continue
                if not submodules and os.path.isfile(os.path.join(entry.path, ".git")):
                    left_out.append(entry.path)
                    continue
                folders.append(entry.path)
            elif entry.is_file() and not ignores.ignored(entry.path, False):
                yield entry.path
        stack.extend((path, ignores) for path in reversed(folders))
