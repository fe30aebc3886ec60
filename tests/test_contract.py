"""The command line as the contract fixes it: exit codes, one document on stdout, the same bytes twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.cli import main
from auditor.report import REPORTERS
from tests.trees import ROOT, lay

EXPOSED = ROOT / "fixtures" / "repos" / "incident-glm"
FIXED = ROOT / "fixtures" / "repos" / "incident-glm-fixed"
FORMATS = [reporter.name for reporter in REPORTERS]


def run(*arguments: str, cwd: Path | None = None, **env: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "auditor", *arguments],
        cwd=cwd or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("scan", str(EXPOSED)), 1),
        (("scan", str(EXPOSED), "--fail-on", "never"), 0),
        (("scan", str(FIXED)), 0),
        (("scan", str(FIXED), "--fail-on", "note"), 0),
        (("inventory", str(EXPOSED)), 0),
        (("rules",), 0),
        (("explain", "sglang-vulnerable-version"), 0),
    ],
)
def test_exit_codes_of_work_done(arguments: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "auditor COMMAND"),
        (("scna",), "did you mean `scan`?"),
        (("--profile", "strict", "scan"), "the command comes first"),
        (("scan", "no/such/path"), "`no/such/path` does not exist"),
        (("scan", "--select", "no-such-rule"), "there is no rule `no-such-rule`"),
        (("scan", "--select", "sglang-vulnerable-versions"), "did you mean `sglang-vulnerable-version`?"),
        (("scan", "--format", "xml"), "invalid choice: 'xml'"),
        (("scan", "--jobs", "0"), "`0` is not a number of processes"),
        (("scan", "--colour"), "unrecognized arguments: --colour"),
        (("explain", "kv-pool"), "did you mean"),
        (("scan", str(FIXED), "--output", "/no/such/folder/report.json"), "cannot write `/no/such/folder/report.json`"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.err + captured.out
    assert "Traceback" not in captured.err
    if arguments:
        assert captured.out == ""
        assert captured.err.count("\n") == 1


def test_a_broken_rule_file_is_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from auditor import rulebook

    lay({"version/broken.yaml": "id: broken\nfamily: [\n"}, tmp_path)
    monkeypatch.setattr(rulebook, "rules_root", lambda: tmp_path)
    rulebook._own.cache_clear()
    try:
        assert main(["scan", str(FIXED)]) == 2
    finally:
        rulebook._own.cache_clear()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("auditor: rules/version/broken.yaml:")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("form", FORMATS)
def test_two_runs_give_the_same_bytes(form: str) -> None:
    first = run("scan", str(EXPOSED), "--format", form, PYTHONHASHSEED="1")
    second = run("scan", str(EXPOSED), "--format", form, PYTHONHASHSEED="2")
    assert first == second
    assert first[0] == 1
    assert first[2] == ""


def test_the_place_one_stands_in_changes_nothing() -> None:
    absolute = run("scan", str(EXPOSED), "--format", "json")
    parent = run("scan", "incident-glm", "--format", "json", cwd=EXPOSED.parent)
    inside = run("scan", "--format", "json", cwd=EXPOSED)
    dotted = run("scan", ".", "--format", "json", cwd=EXPOSED)
    assert absolute == parent == inside == dotted


def test_json_is_alone_on_stdout_and_counts_agree() -> None:
    code, out, err = run("scan", str(EXPOSED), "--format", "json")
    document = json.loads(out)
    assert (code, err) == (1, "")
    assert document["schema_version"] == 1
    assert document["tool"] == {"name": "auditor", "version": document["tool"]["version"]}
    levels = [finding["level"] for finding in document["findings"] if finding["suppressed"] is None]
    assert document["summary"]["findings"] == {level: levels.count(level) for level in ("error", "warning", "note")}
    keys = [(f["path"], f["line"], f["column"], f["rule"]) for f in document["findings"]]
    assert keys == sorted(keys)
    prints = [finding["fingerprint"] for finding in document["findings"]]
    assert len(prints) == len(set(prints))
    for finding in document["findings"]:
        assert finding["properties"]["outcome"]
        assert not finding["path"].startswith(("/", "./", "../"))


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.json"
    assert main(["scan", str(EXPOSED), "--format", "json", "--output", str(target)]) == 1
    assert json.loads(target.read_text(encoding="utf-8"))["findings"]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert capsys.readouterr().out == ""


def test_a_broken_file_is_a_note_and_the_rest_is_still_found(tmp_path: Path) -> None:
    lay(
        {
            "broken.yaml": 'services:\n  a: {image: "lmsysorg/sglang:v0.5.19"\n  b: [\n',
            "requirements.txt": "sglang==0.5.19\n",
        },
        tmp_path,
    )
    code, out, _ = run("scan", str(tmp_path), "--format", "json")
    document = json.loads(out)
    rules = {(finding["rule"], finding["path"]) for finding in document["findings"]}
    assert ("unread-evidence", "broken.yaml") in rules
    assert ("sglang-vulnerable-version", "requirements.txt") in rules
    assert [entry["path"] for entry in document["unread"]] == ["broken.yaml"]
    assert code == 1


def test_nothing_to_read_is_success_and_says_so(tmp_path: Path) -> None:
    code, out, err = run("scan", str(tmp_path))
    assert (code, err) == (0, "")
    assert out == "no findings; 0 files looked at, 0 read\n"


def test_a_legacy_code_page_never_ends_an_audit(tmp_path: Path) -> None:
    lay({"配置/requirements.txt": "sglang==0.5.19\n"}, tmp_path)
    code, out, err = run("scan", str(tmp_path), PYTHONIOENCODING="cp1252:strict")
    assert code == 1
    assert "sglang-vulnerable-version" in out
    assert "Traceback" not in err


def test_a_log_is_not_cut_at_80_columns() -> None:
    _, out, _ = run("scan", str(EXPOSED), CI="true", COLUMNS="")
    assert max(len(line) for line in out.splitlines()) > 80
    for line in out.splitlines():
        assert not line.endswith("…")


def test_parallel_and_serial_reading_agree(tmp_path: Path) -> None:
    files = {f"d{number % 7}/requirements-{number}.txt": f"sglang==0.5.{number % 30}\n" for number in range(450)}
    lay(files, tmp_path)
    serial = run("scan", str(tmp_path), "--format", "json", "--jobs", "1")
    parallel = run("scan", str(tmp_path), "--format", "json", "--jobs", "2")
    assert serial == parallel
    assert json.loads(serial[1])["summary"]["read"] == 450


def test_a_wrong_call_is_one_line_with_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "--basline", "x"]) == 2
    assert capsys.readouterr().err == (
        "auditor scan: unrecognized arguments: --basline; did you mean `--baseline`? (see `auditor scan --help`)\n"
    )
    assert main(["scan", "--select", "unread-evidence", "--ignore", "unread-evidence", "."]) == 2
    assert capsys.readouterr().err == "auditor: no rule is left to run: what is selected is also ignored\n"
