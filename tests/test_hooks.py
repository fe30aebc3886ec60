"""The hooks select what the readers read, and both give the same findings on a single file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from auditor.cli import main
from auditor.readers import READERS
from auditor.walk import LANGUAGES
from tests.trees import ROOT, lay

HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def names_of(pattern: str) -> list[str]:
    """Names that a glob matches, in the cases that people write."""
    plain = pattern.replace("[!.]*", "entrypoint").replace("*", "x")
    return [plain, plain.capitalize(), "deploy/" + plain]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_files_selects_what_the_readers_read(hook: dict[str, str]) -> None:
    select = re.compile(hook["files"])
    patterns = {pattern for reader in READERS for pattern in reader.patterns} | {f"*{ending}" for ending in LANGUAGES}
    missed = [name for pattern in sorted(patterns) for name in names_of(pattern) if not select.search(name)]
    assert missed == []


@pytest.mark.parametrize("name", ["logo.png", "src/main.go", "a.rs", "README.md", "x/y.tsx", "data.parquet", "a.c"])
def test_files_leaves_out_what_nobody_reads(name: str) -> None:
    assert not re.search(HOOKS[0]["files"], name)


def test_the_hooks_are_the_two_of_the_readme() -> None:
    assert [hook["id"] for hook in HOOKS] == ["auditor", "auditor-files"]
    whole, files = HOOKS
    assert whole["pass_filenames"] is False
    assert whole["require_serial"] is True
    assert files["args"] == ["--"], "a file name that begins with a dash must not be read as an option"


def test_a_file_by_name_and_the_tree_give_the_same_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay({"requirements.txt": "sglang==0.5.19\n", "--odd.txt": "sglang==0.5.18\n"}, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["scan", "--format", "json"]) == 1
    whole = json.loads(capsys.readouterr().out)["findings"]
    assert main(["scan", "--format", "json", "--", "--odd.txt", "requirements.txt"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"] == whole
    assert [finding["path"] for finding in whole] == ["--odd.txt", "requirements.txt"]
