"""The short way for files with nothing in them gives the very answer of the full audit, and only where it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import quick
from auditor.cli import main
from auditor.rulebook import load_rules
from auditor.scan import plan_of
from tests.trees import READY, lay


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lay({"work/.git/HEAD": ""}, tmp_path)
    monkeypatch.chdir(tmp_path / "work")


def remember() -> None:
    plan = plan_of(load_rules(), load_rules())
    quick.remember(plan.needles, dict(plan.code_needles))


def test_the_answer_is_that_of_the_full_audit(capsys: pytest.CaptureFixture[str]) -> None:
    lay({"a.yaml": "name: web\nimage: nginx:1.29\n", "b.md": "# notes\n", "c.sh": "echo hello\n"}, Path())
    names = ["a.yaml", "b.md", "c.sh", "a.yaml"]
    assert quick.answer(names) is None, "nothing is remembered before the first run"
    assert main(["scan", *names]) == 0
    full = capsys.readouterr().out
    assert quick.answer(names) == full
    assert main(["scan", *names]) == 0
    assert capsys.readouterr().out == full


@pytest.mark.skipif(not READY, reason="the readers that this needs are not all there yet")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("requirements.txt", "SGLang==0.5.19\n"),
        ("requirements.txt", "numpy  # auditor: ignore[sglang-vulnerable-version] why\n"),
        ("requirements.txt", b"\xff\xfes\x00g\x00l\x00a\x00n\x00g\x00"),
        (".env", "TAG=v1\n"),
    ],
)
def test_a_file_with_something_in_it_takes_the_full_audit(name: str, content: str | bytes) -> None:
    remember()
    lay({name: content}, Path())
    assert quick.answer([name]) is None


@pytest.mark.parametrize(
    "arguments", [[], ["."], ["a.yaml", "--fail-on", "note"], ["a.yaml", "missing.yaml"], ["--format=json", "a.yaml"]]
)
def test_anything_but_plain_files_takes_the_full_audit(arguments: list[str]) -> None:
    remember()
    lay({"a.yaml": "name: web\n"}, Path())
    assert quick.answer(arguments) is None
    assert quick.answer(["--", "a.yaml"]) is not None


def test_a_configuration_takes_the_full_audit() -> None:
    remember()
    lay({"a.yaml": "name: web\n", "pyproject.toml": "[project]\nname = 'x'\n"}, Path())
    assert quick.answer(["a.yaml"]) is not None
    lay({"pyproject.toml": "[tool.auditor]\n"}, Path())
    assert quick.answer(["a.yaml"]) is None


def test_changed_rules_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    remember()
    assert quick.load() is not None
    monkeypatch.setattr(quick, "__version__", "0.0.0")
    assert quick.load() is None
