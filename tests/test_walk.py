"""Which files the audit looks at."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import UsageError
from auditor.ignore_files import IgnoreFile
from auditor.readers import READERS, Reader
from auditor.walk import NameIndex, walk
from tests.trees import git, lay, scan_tree

TEXT = Reader(
    "text", "none", ("*.txt", "dockerfile", "deploy/*.conf", "dockerfile.*"), "", "", "", excludes=("skip*.txt",)
)
INDEX = NameIndex([TEXT])
EVERY = NameIndex(READERS)


def paths(root: Path, *given: str, **options: bool) -> list[str]:
    walked = walk(given or (str(root),), INDEX, wanted=frozenset(), **options)
    return [candidate.path for candidate in walked.candidates]


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        ("a.txt", True),
        ("x/A.TXT", True),
        ("Dockerfile", True),
        ("x/Dockerfile.gpu", True),
        ("deploy/a.conf", True),
        ("x/deploy/a.conf", True),
        ("x/a.conf", False),
        ("skip1.txt", False),
        ("mydockerfile", False),
    ],
)
def test_names_select_readers(name: str, matches: bool) -> None:
    assert bool(INDEX.readers(name)) is matches


def test_ignored_files_installed_trees_and_links_are_left_out(tmp_path: Path) -> None:
    files = {
        ".git/HEAD": "",
        ".gitignore": "out/\n*.log.txt\n!keep.log.txt\n",
        "a.txt": "",
        "b.log.txt": "",
        "keep.log.txt": "",
        "out/c.txt": "",
        "sub/.gitignore": "local.txt\n",
        "sub/local.txt": "",
        "sub/d.txt": "",
        ".venv/e.txt": "",
        "env/pyvenv.cfg": "",
        "env/f.txt": "",
        "node_modules/g.txt": "",
    }
    lay(files, tmp_path)
    os.symlink("..", tmp_path / "sub" / "loop")
    os.symlink("nowhere", tmp_path / "dead.txt")
    assert paths(tmp_path) == ["a.txt", "keep.log.txt", "sub/d.txt"]


def test_ignore_files_above_the_scanned_folder_count(tmp_path: Path) -> None:
    lay({".git/HEAD": "", ".gitignore": "*.tmp.txt\n", "x/y/a.tmp.txt": "", "x/y/b.txt": ""}, tmp_path)
    assert paths(tmp_path, str(tmp_path / "x" / "y")) == ["b.txt"]


def test_a_submodule_is_left_out_and_named(tmp_path: Path) -> None:
    lay({"third/.git": "gitdir: ../.git/modules/third\n", "third/a.txt": "", "b.txt": ""}, tmp_path)
    walked = walk((str(tmp_path),), INDEX, wanted=frozenset())
    assert [candidate.path for candidate in walked.candidates] == ["b.txt"]
    assert walked.notes == ["1 submodule not scanned (third); include with --submodules"]
    assert paths(tmp_path, submodules=True) == ["b.txt", "third/a.txt"]


def test_a_file_given_by_name_is_read_even_where_the_walk_would_skip_it(tmp_path: Path) -> None:
    lay({".gitignore": "a.txt\n", "a.txt": ""}, tmp_path)
    walked = walk((str(tmp_path / "a.txt"),), INDEX, wanted=frozenset())
    assert [(candidate.path, candidate.explicit) for candidate in walked.candidates] == [
        (os.path.relpath(tmp_path / "a.txt", walked.root).replace(os.sep, "/"), True)
    ]


def test_a_path_given_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay({"d/a.txt": ""}, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert paths(tmp_path, "d", "d/a.txt", ".") == ["d/a.txt"]


def test_a_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UsageError, match="`no/such` does not exist"):
        walk(("no/such",), INDEX, wanted=frozenset())


def test_lines_of_an_ignore_file_that_are_no_patterns_do_not_end_the_audit(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xff[\n!\n**/[z-a]\n\\\nleft-out.txt\n")
    (tmp_path / "left-out.txt").write_text("sglang==0.5.19\n")
    (tmp_path / "requirements.txt").write_text("sglang==0.5.19\n")
    walked = walk([str(tmp_path)], NameIndex(READERS), wanted=frozenset())
    assert [candidate.path for candidate in walked.candidates] == ["requirements.txt"]


NAMES = """
    a.txt b.py Dockerfile Dockerfile.gpu dockerfile.md values.yaml values-prod.yml app.yaml.j2 x.yaml.tmpl run.sh run
    Makefile makefile.inc requirements.txt requirements-gpu.lock dev.conf constraints.txt package.json config.json
    x.json setup.py setup_all.py pyproject.toml uv.lock .env .env.local prod.env env.prod.example UV.LOCK a.tpl
    chart.yaml pnpm-lock.yaml environment.yml unit.service.j2 no.ending. .hidden conda-lock.yml x.GEOJSON
""".split()  # noqa: SIM905
FOLDERS = st.lists(
    st.sampled_from(["a", "templates", "requirements", ".github", "ISSUE_TEMPLATE", "values"]), max_size=3
)


@settings(deadline=None, max_examples=200)
@given(FOLDERS, st.sampled_from(NAMES))
def test_the_index_knows_the_readers_of_a_path_as_their_patterns_do(folders: list[str], name: str) -> None:
    path = "/".join([*folders, name])

    def holds(pattern: str) -> bool:
        if "/" not in pattern:
            return fnmatchcase(name.lower(), pattern)
        return fnmatchcase("/" + path.lower(), pattern if pattern.startswith("*") else f"*/{pattern}")

    expected = [
        reader for reader in READERS if any(map(holds, reader.patterns)) and not any(map(holds, reader.excludes))
    ]
    assert list(EVERY.readers(path)) == expected


PATTERNS = st.lists(
    st.sampled_from(["", "!", "/"]).flatmap(
        lambda sign: st.lists(
            st.sampled_from(["a", "b", "*", "**", "*.py", "*.py[co]", "[ab]", "[!a]b", "?", "a*", "\\a", "*.t*", ".a"]),
            min_size=1,
            max_size=3,
        ).flatmap(lambda parts: st.sampled_from(["", "/"]).map(lambda end: sign + "/".join(parts) + end))
    ),
    min_size=1,
    max_size=4,
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", ".a", "x.py", "x.pyc", "a.txt", "y"]), min_size=1, max_size=4)


@settings(deadline=None, max_examples=300)
@given(PATTERNS, PATHS, st.booleans())
def test_a_path_that_no_name_of_an_ignore_file_touches_is_one_that_it_does_not_speak_of(
    lines: list[str], names: list[str], folder: bool
) -> None:
    file = IgnoreFile(lines)
    if not any(map(file.touches, names)):
        assert file.verdict("/".join(names) + ("/" if folder else "")) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    "steps",
    [
        ["init -q"],
        ["init -q --object-format=sha256"],
        ["init -q", "config index.version 4"],
        ["init -q", "config core.splitIndex true"],
    ],
    ids=["version 2", "sha256", "version 4", "split"],
)
def test_a_tracked_file_is_audited_although_an_ignore_pattern_names_it(tmp_path: Path, steps: list[str]) -> None:
    for step in steps:
        git(tmp_path, *step.split())
    ignored = {
        "out/deep/a.txt": "",
        "out/deep/untracked.txt": "",
        "out/other/c.txt": "",
        "local.txt": "",
        "untracked.txt": "",
        "x/ä ö.txt": "",
        "node_modules/g.txt": "",
    }
    many = {f"many/{number:03}/a-rather-long-name-{number}.txt": "" for number in range(200)}
    lay({".gitignore": "out/\nlocal.txt\nuntracked.txt\nx/*\nmany/\n", "b.txt": "", **ignored, **many}, tmp_path)
    tracked = ["b.txt", "local.txt", "out/deep/a.txt", "x/ä ö.txt", *sorted(many)]
    git(tmp_path, "add", "-f", "--", *tracked, "node_modules/g.txt")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "rm", "-q", "--cached", "many/000/a-rather-long-name-0.txt")
    expected = [name for name in tracked if name != "many/000/a-rather-long-name-0.txt" or "splitIndex" in steps[-1]]
    assert paths(tmp_path) == sorted(expected)
    assert paths(tmp_path, str(tmp_path / "out")) == ["deep/a.txt"]
    if steps[-1].startswith("init"):
        git(tmp_path, "worktree", "add", "-q", str(tmp_path / "out" / "tree"), "HEAD")
        assert paths(tmp_path, str(tmp_path / "out" / "tree")) == sorted(tracked)


def test_an_index_that_is_none_tracks_nothing(tmp_path: Path) -> None:
    lay({".gitignore": "a.txt\n", "a.txt": "", "b.txt": ""}, tmp_path)
    for content in (b"", b"DIRC", b"DIRC\0\0\0\2\0\0\xff\xff", b"DIRC\0\0\0\4\0\0\0\1" + b"\x40" * 70, b"x" * 100):
        lay({".git/index": content}, tmp_path)
        assert paths(tmp_path) == ["b.txt"]


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay({"secret/a.txt": "", "b.txt": ""}, tmp_path)
    real = os.scandir

    def scandir(path: str) -> object:  # as root, which tests may run as, every folder can be read
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    walked = walk((str(tmp_path),), INDEX, wanted=frozenset())
    assert ([candidate.path for candidate in walked.candidates], walked.unread) == (
        ["b.txt"],
        [("secret", "Permission denied")],
    )
    assert [(problem.path, problem.reason) for problem in scan_tree(tmp_path).problems] == [
        ("secret", "the folder cannot be read: Permission denied")
    ]


def test_a_file_that_goes_away_while_the_audit_runs_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from auditor import scan

    lay({"requirements.txt": "sglang==0.5.19\n", "more/requirements.txt": "sglang==0.5.19\n"}, tmp_path)
    real = scan.read_files

    def read(*arguments: object) -> object:
        results = real(*arguments)  # type: ignore[arg-type]
        for result in results:
            result.source = None  # as from a worker process
        (tmp_path / "requirements.txt").unlink()
        return results

    monkeypatch.setattr(scan, "read_files", read)
    result = scan_tree(tmp_path)
    assert [finding.span.path for finding in result.findings] == ["more/requirements.txt"]
    assert [(problem.path, problem.reason) for problem in result.problems] == [
        ("requirements.txt", "went away while the audit ran")
    ]
