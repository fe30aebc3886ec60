"""The documents say what the program does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from auditor.cli import COMMANDS, main
from auditor.docs import rules_markdown
from auditor.rulebook import load_rules
from tests.trees import ROOT


def test_the_rule_page_is_current() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert page == rules_markdown(), "run `python -m auditor.docs`"


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"auditor {command.name}" in text, command.name


def test_the_changelog_names_every_rule() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [rule.id for rule in load_rules() if f"`{rule.id}`" not in text] == []


def test_the_readme_shows_the_output_that_the_command_gives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```console\n\$ (auditor scan [^\n]*)\n(.*?)```", text, re.DOTALL)
    assert shown, "the README shows one real run"
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "118")
    main(shlex.split(shown[1])[1:])
    output = capsys.readouterr().out
    for line in shown[2].splitlines():
        if line.strip() and line.strip() != "[...]":
            assert line.rstrip() in [known.rstrip() for known in output.splitlines()]


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_between_documents_lead_somewhere(name: str) -> None:
    page = ROOT / "docs" / name
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not re.fullmatch(r"\d+", target):
            assert (Path(page.parent) / target).exists(), f"{name} links to {target}"
