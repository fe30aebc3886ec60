"""Trees of past revisions, out of the git objects: no work tree and no index is touched, nothing is fetched.

By the `git` program, whose object formats (packs, alternates, worktrees, reftables, SHA-256) are its own business.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from errno import ENOENT
from pathlib import Path

from auditor.errors import UsageError
from auditor.limits import MAX_FILE_BYTES
from auditor.model.records import dataclass
from auditor.walk import INSTALLED

REGULAR = ("100644", "100755")  # no links, no submodules
_UNSAFE = frozenset({"", ".", "..", ".git"})


@dataclass(frozen=True, slots=True)
class Blob:
    """One regular file of a tree: its path, its object and its size in bytes."""

    path: str
    object: str
    size: int


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository by the folder that it is asked from."""

    folder: str

    def commit(self, revision: str) -> str:
        """The commit that a revision means. Raises `UsageError` saying what to fetch where it is not here."""
        done = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        if done.returncode == 0:
            return done.stdout.decode().strip().splitlines()[-1]
        raise UsageError(f"there is no commit `{revision}` in this clone; {self._how_to_get(revision)}")

    def merge_base(self, one: str, other: str) -> str:
        """The last commit that both revisions have in common. Raises `UsageError` where the clone is too shallow."""
        first, second = self.commit(one), self.commit(other)
        done = self._git("merge-base", first, second)
        if done.returncode == 0:
            return done.stdout.decode().strip()
        if self.is_shallow():
            raise UsageError(
                f"this clone is too shallow for where `{one}` and `{other}` part: "
                "`git fetch --deepen=100` or `git fetch --unshallow` first (actions/checkout: `fetch-depth: 0`), "
                f"or compare the two ends: `auditor diff {one} {other}`"
            )
        raise UsageError(f"`{one}` and `{other}` have no commit in common")

    def top(self) -> str | None:
        """The folder of the work tree; `None` in a bare repository."""
        done = self._git("rev-parse", "--show-toplevel")
        return os.fsdecode(done.stdout.rstrip(b"\n")) if done.returncode == 0 else None

    def is_shallow(self) -> bool:
        """Whether history was cut off when the repository was cloned."""
        return self._git("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"

    def files(self, commit: str) -> list[Blob]:
        """All regular files of a commit, less the folders that an audit never looks into."""
        done = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
        if done.returncode != 0:
            raise UsageError(f"the tree of {commit[:12]} cannot be read: {_first_line(done.stderr)}; {_REFETCH}")
        found = []
        for entry in done.stdout.split(b"\0"):
            head, _, name = entry.partition(b"\t")
            words = head.split()
            if len(words) != 4 or words[0].decode() not in REGULAR:
                continue
            path = os.fsdecode(name)
            parts = path.split("/")
            if _UNSAFE.intersection(parts) or INSTALLED.intersection(parts[:-1]):
                continue
            size = int(words[3]) if words[3].isdigit() else MAX_FILE_BYTES + 1  # `-`: the object is not here
            found.append(Blob(path, words[2].decode(), size))
        return found

    def read(self, commit: str, path: str) -> bytes:
        """The bytes of one file of a commit, links inside the tree followed. Raises `OSError` where it has none, and
        `UsageError` where a partial clone did not bring it."""
        if "\n" in path:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)  # one name a line is what `--batch` reads
        name = os.fsencode(f"{commit}:{path}\n")
        done = run_git(self.folder, "cat-file", "--batch", "--follow-symlinks", given=name)
        header, _, data = done.stdout.partition(b"\n")
        words = header.split()
        if done.returncode == 0 and len(words) == 3 and words[1] == b"blob":
            return data[: int(words[2])]
        if done.returncode == 0 and header.endswith(b" missing") and not header.startswith(commit.encode()):
            raise UsageError(f"the object of {path} is not in this clone; {_REFETCH}")
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)

    def contents(self, objects: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each object, in order. Raises `UsageError` for one that a partial clone did not bring."""
        if not objects:
            return
        process = subprocess.Popen(
            ["git", "cat-file", "--batch"],  # noqa: S607 - the git of the PATH is what the user works with
            cwd=self.folder,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        pipe_in, pipe_out = process.stdin, process.stdout
        if pipe_in is None or pipe_out is None:  # never, with both asked for; told to the type checker
            return
        try:
            for name in objects:
                pipe_in.write(name.encode() + b"\n")
                pipe_in.flush()
                header = pipe_out.readline().split()
                if len(header) != 3:
                    raise UsageError(f"the object {name[:12]} is not in this clone; {_REFETCH}")
                data = pipe_out.read(int(header[2]))
                pipe_out.read(1)
                yield name, data
        finally:
            pipe_in.close()
            pipe_out.close()
            process.wait()

    def export(
        self, commit: str, folder: Path, wanted: Callable[[str], bool], keep: Callable[[str, bytes], bool]
    ) -> int:
        """Write the wanted files of a commit below an empty folder, those whose bytes are to keep; how many files the
        commit has."""
        blobs = self.files(commit)
        chosen = [blob for blob in blobs if wanted(blob.path)]
        places: dict[str, list[Blob]] = {}
        for blob in chosen:
            if blob.size <= MAX_FILE_BYTES:
                places.setdefault(blob.object, []).append(blob)
        for name, data in self.contents(list(places)):
            for blob in places[name]:
                if not keep(blob.path, data):
                    continue
                path = folder.joinpath(*blob.path.split("/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return len(blobs)

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return run_git(self.folder, *arguments)

    def _how_to_get(self, revision: str) -> str:
        unborn = self._git("rev-parse", "--verify", "--quiet", "HEAD").returncode != 0
        remote = bool(self._git("remote").stdout.strip())
        if unborn and (not remote or re.match(r"(?:HEAD|@)(?![\w/.-])", revision)):
            return "nothing is committed here yet, so there is nothing to compare"
        if not remote:
            return "`git log --all --oneline` shows what there is, and there is no remote to fetch from"
        shallow = self.is_shallow()
        if re.fullmatch(r"[0-9a-f]{7,64}", revision):
            get = f"`git fetch --depth=1 origin {revision}`"
        elif revision.startswith("origin/"):
            branch = revision.removeprefix("origin/")
            get = f"`git fetch --depth=1 origin {branch}:refs/remotes/origin/{branch}`"
        elif re.search(r"[~^@]", revision):
            get = "`git fetch --deepen=10`" if shallow else "`git log` shows what there is"
        else:
            get = f"`git fetch --depth=1 origin {revision}` and `auditor diff FETCH_HEAD`"
        why = "it is a shallow one: " if shallow else ""
        return f"{why}{get} first" if "fetch" in get else f"{why}{get}"


_REFETCH = "this is a partial clone: `git fetch --refetch --no-filter` first"


def open_repository(folder: str) -> Repository:
    """The repository around a folder. Raises `UsageError` without git, and outside of a repository."""
    done = run_git(folder, "rev-parse", "--git-dir")
    if done.returncode != 0:
        said = _first_line(done.stderr)
        if "not a git repository" in said:
            raise UsageError(f"`{folder}` is not inside a git repository, and `auditor diff` compares its revisions")
        raise UsageError(f"git cannot open the repository: {said}")
    return Repository(folder)


def run_git(folder: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git for reading, with `given` on its standard input. Raises `UsageError` where the program is missing."""
    try:
        return subprocess.run(  # noqa: S603 - fixed subcommands; revisions stand behind --end-of-options
            ["git", *arguments],  # noqa: S607
            cwd=folder,
            env=_environment(),
            capture_output=True,
            check=False,
            input=given,
        )
    except FileNotFoundError:
        if not os.path.isdir(folder):
            raise UsageError(f"`{folder}` does not exist") from None
        raise UsageError("the program `git` is not on PATH, and `auditor diff` reads revisions with it") from None
    except NotADirectoryError:
        raise UsageError(f"`{folder}` is not a folder") from None


def _environment() -> dict[str, str]:
    """No network (a partial clone would fetch what it lacks), no prompts, messages in English."""
    return {
        **os.environ,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _first_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "git said nothing"
