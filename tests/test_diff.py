"""`auditor diff`: two revisions out of the git objects, the pool before and after, the verdict, what to fetch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.cli import main
from tests.trees import ROOT, git, lay

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
LAUNCH = (
    "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --context-length 1048576 "
    "--tp-size 8 --mem-fraction-static {fraction} --kv-cache-dtype fp8_e4m3 --port 31000\n"
)
UNIT = "services:\n  glm:\n    image: lmsysorg/sglang:{tag}\n    command: {command}"


def commit(root: Path, files: Mapping[str, str]) -> str:
    if not (root / ".git").exists():
        root.mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q")
    lay(files, root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "step", "--allow-empty")
    return git(root, "rev-parse", "HEAD")


def compose(tag: str = "v0.5.22", **options: str) -> str:
    return UNIT.format(tag=tag, command=LAUNCH.format(fraction=options.get("fraction", "0.9")))


def diff(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["diff", *arguments, "--repository", str(root), "--format", "json"])
    out = capsys.readouterr()
    return code, json.loads(out.out) if out.out else {"stderr": out.err}


def test_a_lower_static_fraction_is_shown_with_both_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay({"auditor.toml": 'gpu = "H200"\n'}, tmp_path)
    commit(tmp_path, {"prefill.sh": "# GPU: H200\n" + LAUNCH.format(fraction="0.9")})
    commit(tmp_path, {"prefill.sh": "# GPU: H200\n\n" + LAUNCH.format(fraction="0.8")})
    _, document = diff(tmp_path, capsys, "HEAD~1", "HEAD")
    [change] = document["changes"]
    assert (change["kind"], change["state"], change["path"], change["line"]) == ("launch", "changed", "prefill.sh", 3)
    assert change["settings"] == [{"name": "--mem-fraction-static", "before": "0.9", "after": "0.8"}]
    assert change["pool_after"]["context_tokens"] == 1048576
    assert document["gate"] == ["auditor gate http://HOST:31000"]


def test_lines_that_move_and_options_that_do_not_touch_the_pool_are_no_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"a.sh": LAUNCH.format(fraction="0.9")})
    commit(tmp_path, {"a.sh": "#!/bin/sh\n# moved\n" + LAUNCH.format(fraction="0.9").replace("31000", "32000")})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["changes"], document["gate"]) == (0, [], [])


def test_a_step_back_to_an_affected_image_is_worse_and_the_step_forward_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:v0.5.22\n"})
    commit(tmp_path, {"compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:v0.5.19\n"})
    code, document = diff(tmp_path, capsys, "HEAD~1", "HEAD")
    assert code == 1
    assert [finding["rule"] for finding in document["opened"]] == ["sglang-vulnerable-image"]
    assert [(change["verdict_before"], change["verdict_after"]) for change in document["changes"]] == [
        ("safe", "vulnerable")
    ]
    code, document = diff(tmp_path, capsys, "HEAD", "HEAD~1")
    assert (code, document["worse"]) == (0, [])
    assert [finding["rule"] for finding in document["closed"]] == ["sglang-vulnerable-image"]


def test_a_bump_inside_the_affected_range_is_a_change_and_not_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"requirements.txt": "sglang==0.5.18\n"})
    commit(tmp_path, {"requirements.txt": "sglang==0.5.19\n"})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["opened"], document["closed"]) == (0, [], [])
    assert [change["settings"][0]["after"] for change in document["changes"]] == ["sglang==0.5.19"]


def test_a_file_that_was_renamed_opens_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"old/requirements.txt": "sglang==0.5.19\n"})
    git(tmp_path, "mv", "old", "new")
    commit(tmp_path, {})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["changes"], document["opened"], document["closed"]) == (0, [], [], [])


def test_the_definition_in_another_file_moves_the_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use = {"compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:${TAG}\n"}
    commit(tmp_path, {**use, ".env": "TAG=v0.5.22\n"})
    commit(tmp_path, {".env": "TAG=v0.5.19\n"})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert code == 1
    assert [(change["path"], change["settings"][0]["after"]) for change in document["changes"]] == [
        ("compose.yaml", "lmsysorg/sglang:v0.5.19")
    ]


def test_the_work_tree_and_the_index_stay_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"requirements.txt": "sglang==0.5.22\n"})
    commit(tmp_path, {"requirements.txt": "sglang==0.5.23\n"})
    lay({"requirements.txt": "sglang==0.5.1\n", "new.txt": "x\n"}, tmp_path)
    before = git(tmp_path, "status", "--porcelain")
    index = (tmp_path / ".git" / "index").read_bytes()
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["worse"]) == (0, [])
    assert git(tmp_path, "status", "--porcelain") == before
    assert (tmp_path / ".git" / "index").read_bytes() == index


def test_three_dots_compare_with_where_the_branch_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"requirements.txt": "sglang==0.5.19\n"})
    git(tmp_path, "checkout", "-qb", "feature")
    commit(tmp_path, {"README.md": "words\n"})
    git(tmp_path, "checkout", "-q", "main")
    commit(tmp_path, {"requirements.txt": "sglang==0.5.22\n"})
    code, document = diff(tmp_path, capsys, "main...feature")
    assert (code, document["changes"]) == (0, [])
    code, document = diff(tmp_path, capsys, "main..feature")
    assert code == 1


def test_a_shallow_clone_as_ci_makes_it_is_told_what_to_fetch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = tmp_path / "origin"
    first = commit(origin, {"requirements.txt": "sglang==0.5.22\n"})
    commit(origin, {"requirements.txt": "sglang==0.5.19\n"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "clone")
    clone = tmp_path / "clone"
    code, document = diff(clone, capsys, first)
    assert code == 2
    assert document["stderr"] == (
        f"auditor: there is no commit `{first}` in this clone; it is a shallow one: "
        f"`git fetch --depth=1 origin {first}` first\n"
    )
    code, document = diff(clone, capsys, "origin/release")
    assert (code, "origin release:refs/remotes/origin/release" in document["stderr"]) == (2, True)
    git(clone, "fetch", "-q", "--depth=1", "origin", first)  # as told
    code, document = diff(clone, capsys, first)
    assert (code, [finding["rule"] for finding in document["opened"]]) == (1, ["sglang-vulnerable-version"])
    code, document = diff(clone, capsys, f"{first}...HEAD")
    assert (code, "--unshallow" in document["stderr"]) == (2, True)


@pytest.mark.parametrize("revision", ["HEAD", "HEAD~1", "main", "@{u}"])
def test_before_the_first_commit_nothing_is_to_be_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    git(tmp_path, "init", "-q")
    says = "nothing is committed here yet, so there is nothing to compare"
    code, document = diff(tmp_path, capsys, revision)
    assert (code, document["stderr"]) == (2, f"auditor: there is no commit `{revision}` in this clone; {says}\n")
    git(tmp_path, "remote", "add", "origin", "https://localhost/x.git")
    assert says in diff(tmp_path, capsys, "HEAD")[1]["stderr"]
    assert "`git fetch --depth=1 origin main`" in diff(tmp_path, capsys, "main")[1]["stderr"]


def test_without_a_remote_no_fetch_is_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"requirements.txt": "sglang==0.5.22\n"})
    code, document = diff(tmp_path, capsys, "release")
    assert (code, "git fetch" in document["stderr"], "no remote" in document["stderr"]) == (2, False, True)


def test_outside_of_a_repository_and_without_git_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, "is not inside a git repository" in document["stderr"]) == (2, True)
    monkeypatch.setenv("PATH", "")
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, "`git` is not on PATH" in document["stderr"]) == (2, True)


def test_a_revision_is_never_read_as_an_option_of_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"requirements.txt": "sglang==0.5.22\n"})
    code = main(["diff", "--repository", str(tmp_path), "--", "--output=x"])
    assert (code, (tmp_path / "x").exists()) == (2, False)


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_the_report_ends_with_the_gate(tmp_path: Path, form: str) -> None:
    commit(tmp_path, {"compose.yaml": compose(fraction="0.9")})
    commit(tmp_path, {"compose.yaml": compose(tag="v0.5.19", fraction="0.8")})
    done = subprocess.run(
        [sys.executable, "-m", "auditor", "diff", "HEAD~1", "--format", form],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "auditor gate http://HOST:31000" in done.stdout
    assert "--mem-fraction-static: 0.9 -> 0.8".replace("->", "-&gt;" if form == "markdown" else "->") in done.stdout


OLD = {"deploy/compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:v0.5.19\n"}
SAFE = {"deploy/compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:v0.5.22\n"}
REASONED = '[[ignores]]\nrule = "sglang-vulnerable-image"\nreason = "one tenant"\n'
BY_PATH = '[[path]]\nmatch = "deploy/"\nignore = ["sglang-vulnerable-image"]\n'


@pytest.mark.parametrize(
    ("settings", "by", "excused"),
    [
        ('exclude = ["deploy/"]\n', "the configuration excludes the file", False),
        ('ignore = ["sglang-vulnerable-image"]\n', "the configuration leaves the rule out", False),
        (BY_PATH, "the configuration ignores it: ignored for `deploy/`", False),
        (REASONED, "the configuration ignores it: one tenant (auditor.toml:1)", True),
    ],
)
@pytest.mark.parametrize("exposed_before", [True, False])
def test_what_a_new_configuration_hides_is_shown_and_no_repair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, by: str, excused: bool, exposed_before: bool
) -> None:
    commit(tmp_path, OLD if exposed_before else SAFE)
    commit(tmp_path, {**OLD, "auditor.toml": settings})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert [(item["finding"]["rule"], item["by"], item["excused"]) for item in document["hidden"]] == [
        ("sglang-vulnerable-image", by, excused)
    ]
    assert (document["opened"], document["closed"]) == ([], [])
    assert code == (1 if not exposed_before and not excused else 0)
    assert [change["state"] for change in document["changes"]] == ([] if exposed_before else ["changed"])


def test_a_comment_that_silences_a_finding_is_shown_and_no_repair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comment = " # auditor: ignore[sglang-vulnerable-image] one tenant\n"
    commit(tmp_path, OLD)
    commit(tmp_path, {"deploy/compose.yaml": OLD["deploy/compose.yaml"].rstrip() + comment})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["closed"], [item["by"] for item in document["hidden"]]) == (
        0,
        [],
        ["ignored in place: one tenant"],
    )
    git(tmp_path, "mv", "deploy", "run")
    commit(tmp_path, {})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["hidden"]) == (0, [])  # silenced before, and only moved


def test_what_only_a_new_configuration_shows_did_not_get_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {**OLD, "auditor.toml": 'exclude = ["deploy/"]\n'})
    commit(tmp_path, {"auditor.toml": "\n"})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, document["opened"], [finding["rule"] for finding in document["uncovered"]]) == (
        0,
        [],
        ["sglang-vulnerable-image"],
    )


def test_another_accelerator_in_the_configuration_moves_the_pool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = LAUNCH.format(fraction="0.9")
    commit(
        tmp_path,
        {"serve.sh": launch, "conf/base.toml": 'gpu = "B300"\n', "auditor.toml": 'extends = ["conf/base.toml"]\n'},
    )
    commit(tmp_path, {"conf/base.toml": 'gpu = "H200"\n'})
    lay({"conf/base.toml": 'gpu = "B300"\n'}, tmp_path)  # the work tree does not count
    code, document = diff(tmp_path, capsys, "HEAD~1")
    [change] = document["changes"]
    assert change["settings"] == [{"name": "GPU", "before": "B300", "after": "H200"}]
    assert (code, bool(document["worse"])) == (1, True)


def test_a_wrong_configuration_of_a_revision_names_the_revision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = commit(tmp_path, {"auditor.toml": "gpo = 1\n"})
    commit(tmp_path, {"auditor.toml": "\n"})
    code, document = diff(tmp_path, capsys, "HEAD~1")
    assert (code, f"at {first[:12]}: " in document["stderr"], "did you mean `gpu`" in document["stderr"]) == (
        2,
        True,
        True,
    )


def test_the_configuration_of_a_folder_is_that_of_its_revision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {**OLD, "deploy/auditor.toml": 'exclude = ["compose.yaml"]\n', "auditor.toml": "gpo = 1\n"})
    commit(tmp_path, {"README.md": "words\n"})
    (tmp_path / "deploy" / "auditor.toml").unlink()
    code = main(["diff", "HEAD~1", "--repository", str(tmp_path / "deploy")])
    assert (code, capsys.readouterr().err) == (0, "")
