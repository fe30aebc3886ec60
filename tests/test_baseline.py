"""A baseline absorbs what was there, one finding an entry, and says what it no longer needs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from auditor.cli import main
from tests.trees import git, lay, scan_tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay({"requirements.txt": "sglang==0.5.19\n", "deploy/Dockerfile": "FROM lmsysorg/sglang:v0.5.19\n"}, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    code = main(["scan", ".", "--format", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def fresh(found: dict) -> list[tuple[str, int]]:  # type: ignore[type-arg]
    return [(finding["path"], finding["line"]) for finding in found["findings"] if finding["suppressed"] is None]


def test_what_was_there_does_not_count_and_what_is_new_does(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, "--write-baseline", "base.txt")
    assert (code, fresh(found)) == (0, [])
    assert {finding["suppressed"]["kind"] for finding in found["findings"]} == {"baseline"}
    lay({"requirements.txt": "# moved down\n\nsglang==0.5.18\n", "x/requirements.txt": "sglang==0.5.19\n"}, tree)
    code, found = document(capsys, "--baseline", "base.txt")
    assert (code, fresh(found)) == (1, [("x/requirements.txt", 1)])


def test_one_entry_absorbs_one_occurrence(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "--write-baseline", "base.txt")
    lay({"requirements.txt": "sglang==0.5.19\nsglang==0.5.19\n"}, tree)
    _, found = document(capsys, "--baseline", "base.txt")
    assert fresh(found) == [("requirements.txt", 2)]


def test_entries_that_match_nothing_are_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "--write-baseline", "base.txt")
    lay({"requirements.txt": "sglang==0.5.22\n"}, tree)
    _, found = document(capsys, "--baseline", "base.txt")
    assert found["summary"]["notes"] == [
        "1 baseline entry matches nothing any more: sglang-vulnerable-version in requirements.txt (line 3); "
        "write the baseline anew"
    ]


def test_the_file_is_sorted_lines_that_merge_as_text(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "--write-baseline", "base.txt")
    lines = (tree / "base.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# auditor baseline, version 1")
    assert lines[1:] == sorted(lines[1:])
    assert [json.loads(line)["path"] for line in lines[1:]] == ["deploy/Dockerfile", "requirements.txt"]
    document(capsys, "--baseline", "base.txt", "--write-baseline", "base.txt")
    assert (tree / "base.txt").read_text(encoding="utf-8").splitlines() == lines


def test_the_configuration_may_name_the_baseline(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "conf").mkdir()
    document(capsys, "--write-baseline", "conf/base.txt")
    lay({"conf/auditor.toml": 'baseline = "base.txt"\n', "auditor.toml": 'extends = ["conf/auditor.toml"]\n'}, tree)
    code, found = document(capsys)
    assert (code, fresh(found)) == (0, [])
    lay({"x/requirements.txt": "sglang==0.5.19\n"}, tree)
    code, found = document(capsys)
    assert (code, fresh(found)) == (1, [("x/requirements.txt", 1)])
    code, found = document(capsys, "--baseline", "/dev/null")  # the command line is nearer
    assert (code, len(fresh(found))) == (1, 3)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_two_branches_baselines_merge_as_text(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def add(name: str) -> None:
        lay({name: "sglang==0.5.19\n"}, tree)
        assert main(["scan", ".", "--baseline", "base.txt", "--write-baseline", "base.txt"]) == 0
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", name)

    git(tree, "init", "-q")
    add("m/requirements.txt")
    git(tree, "checkout", "-qb", "one")
    add("a/requirements.txt")
    git(tree, "checkout", "-q", "main")
    add("z/requirements.txt")
    git(tree, "merge", "-q", "one", "-m", "both")
    capsys.readouterr()
    code, found = document(capsys, "--baseline", "base.txt")
    assert (code, fresh(found), found["summary"].get("notes", [])) == (0, [], [])
    # where both branches write at one place of the file, git keeps both with its `union` driver
    lay({".gitattributes": "base.txt merge=union\n"}, tree)
    add("p/requirements.txt")
    git(tree, "checkout", "-qb", "two")
    add("q/requirements.txt")
    git(tree, "checkout", "-q", "main")
    add("r/requirements.txt")
    git(tree, "merge", "-q", "two", "-m", "both")
    capsys.readouterr()
    code, found = document(capsys, "--baseline", "base.txt")
    assert (code, fresh(found), found["summary"].get("notes", [])) == (0, [], [])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read the baseline `base.txt`: No such file"),
        ("{}\n", "base.txt:1: not an entry"),
        ("<<<<\n", "base.txt:1:"),
        ("# auditor baseline, version 2; x\n", "base.txt:1: a baseline of version 2, and this auditor reads version 1"),
        ("<<<<<<< HEAD\n{}\n", "base.txt:1: a merge that was not finished; keep the lines of both sides"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_exit_2(
    tree: Path, capsys: pytest.CaptureFixture[str], content: str | None, says: str
) -> None:
    if content is not None:
        lay({"base.txt": content}, tree)
    assert main(["scan", ".", "--baseline", "base.txt"]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_reports_left_in_the_tree_are_not_read_as_part_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay({"requirements.txt": "sglang==0.5.19\n", "a.sh": "sglang serve m --context-length 9000\n"}, tmp_path)
    before = [(finding.rule, finding.span.path) for finding in scan_tree(tmp_path).findings]
    for name in ("json", "sarif", "markdown", "github", "terminal"):
        main(["scan", str(tmp_path), "--format", name])
        out = capsys.readouterr().out
        lay({f"out/{name}.json" if name in ("json", "sarif") else f"out/{name}.txt": out}, tmp_path)
    main(["inventory", str(tmp_path), "--format", "json"])
    lay({"out/inventory.json": capsys.readouterr().out}, tmp_path)
    main(["scan", str(tmp_path), "--write-baseline", str(tmp_path / "baseline.json")])
    assert [(finding.rule, finding.span.path) for finding in scan_tree(tmp_path).findings] == before


def test_a_baseline_holds_a_file_name_that_is_not_utf8(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        (tree / os.fsdecode(b"requirements-\xff.txt")).write_text("sglang==0.5.19\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    document(capsys, "--write-baseline", ".auditor-baseline")
    code, found = document(capsys, "--baseline", ".auditor-baseline")
    assert (code, fresh(found)) == (0, [])
    assert len(found["findings"]) == 3
