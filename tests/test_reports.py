"""Workflow commands, Markdown and the isolation checklist: what a person reads in GitHub and at a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from auditor.checklist import checklist
from auditor.model.facts import Definition
from auditor.model.findings import ScanResult
from auditor.model.records import replace
from auditor.model.spans import Position, Span
from auditor.report import REPORTERS, ReportOptions
from auditor.report.github import escape_data, escape_property, plain
from auditor.report.markdown import bar_of, code, escaped
from auditor.rulebook import load_rules
from auditor.scan import ScanRequest, scan
from tests.trees import ROOT, lay, scan_tree

EXPOSED = ROOT / "fixtures" / "repos" / "incident-glm"


def report(result: ScanResult, name: str, **options: bool) -> str:
    stream = io.StringIO()
    reporter = next(reporter for reporter in REPORTERS if reporter.name == name)
    reporter.write(result, stream, ReportOptions(rules=load_rules(), **options))
    return stream.getvalue()


def states(result: ScanResult) -> list[str]:
    return [point.state for point in checklist(result)]


def with_step(result: ScanResult, name: str, path: str) -> ScanResult:
    start = Position(0, 3, 1)
    step = Definition(name, f"auditor {name}", "gate", path, Span(path, start, start))
    return replace(result, facts=replace(result.facts, definitions=(*result.facts.definitions, step)))


def test_a_command_is_escaped_as_the_runner_reads_it_back() -> None:
    assert escape_data("50% of\r\nit: a, b") == "50%25 of%0D%0Ait: a, b"
    assert escape_property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"


@pytest.mark.parametrize("line", ["::set-output name=x::y", "  ::error::x", "x ##[add-path]/tmp"])
def test_text_of_a_tree_is_never_a_command(line: str) -> None:
    assert not plain(line).lstrip().startswith("::")
    assert "##[" not in plain(line)


def test_an_annotation_stands_on_the_very_text(tmp_path: Path) -> None:
    tree = lay({"my, svc/Dockerfile": "# 😀\nRUN echo 😀 && pip install sglang==0.5.19\n"}, tmp_path)
    [line, *_] = [line for line in report(scan_tree(tree), "github").splitlines() if line.startswith("::")]
    assert line.startswith(
        "::error file=my%2C svc/Dockerfile,line=2,col=28,endColumn=42,title=SGLang older than 0.5.22 "
        "(sglang-vulnerable-version)::sglang 0.5.19 "
    )


def test_ten_annotations_of_a_level_and_the_rest_as_text(tmp_path: Path) -> None:
    tree = lay({f"s{number:02}/requirements.txt": "sglang==0.5.19\n" for number in range(14)}, tmp_path)
    lines = report(scan_tree(tree), "github").splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "4 more, which GitHub does not show as annotations:" in lines
    assert sum(line.startswith("- s1") and ": error [sglang-vulnerable-version]" in line for line in lines) == 4


def test_annotations_name_files_from_the_repositorys_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    lay({"deploy/requirements.txt": "sglang==0.5.19\n"}, tmp_path)
    assert "::error file=deploy/requirements.txt," in report(scan_tree(tmp_path / "deploy"), "github")


def test_the_markdown_of_the_incident_counts_shows_the_pools_and_ends_with_the_checklist() -> None:
    text = report(scan_tree(EXPOSED), "markdown")
    assert text.startswith("## auditor\n\n7 errors, ")
    assert "| `kv-pool-below-context` | KV pool smaller than the context window | 1 |" in text
    assert "(prefill) | `" in text
    assert "681,280 | 1,048,576 | below |" in text
    assert text.rstrip().splitlines()[-1].startswith("| 5 | the gate runs again at each capacity change |")
    assert text.count("<details>") == text.count("</details>") > 0


def test_text_of_a_tree_cannot_break_out_of_the_markdown() -> None:
    assert escaped("a | <b>*x*</b> `c|d` @team #1") == ("a \\| &lt;b&gt;\\*x\\*&lt;/b&gt; `c|d` @\u200bteam \\#1")
    assert escaped("one ` alone <i>") == "one \\` alone &lt;i&gt;"
    assert code("a`b") == "``a`b``"
    assert code("a|b", cell=True) == "`a\\|b`"


def test_a_bar_tells_the_certain_from_the_possible() -> None:
    assert bar_of(0.25, 0.5, 8) == "██▒▒░░░░"
    assert bar_of(1.9, 2.0, 4) == "████"
    assert bar_of(0.0, 0.0, 4) == "░░░░"


def test_the_incident_is_exposed_where_its_tree_shows_it() -> None:
    points = checklist(scan_tree(EXPOSED))
    assert [point.state for point in points] == ["exposed"] * 3 + ["not shown by this tree"] * 2
    places = {(span.path, span.start.line) for span in points[0].evidence}
    assert ("deploy/prefill.yaml", 30) in places


def test_a_gate_beside_the_worker_runs_again_at_each_change_and_excuses_no_pool_under_its_context() -> None:
    found = states(with_step(scan_tree(EXPOSED), "gate", "deploy/prefill.yaml"))
    assert (found[0], found[4]) == ("exposed", "met")


def test_a_gate_in_a_pipeline_is_no_gate_at_start_up(tmp_path: Path) -> None:
    result = scan_tree(lay({"requirements.txt": "sglang==0.5.22\n"}, tmp_path))
    found = states(with_step(result, "gate", ".github/workflows/deploy.yml"))
    assert (found[0], found[4]) == ("not shown by this tree", "met")


def test_a_canary_tests_the_failure_path_on_content(tmp_path: Path) -> None:
    result = scan_tree(lay({"requirements.txt": "sglang==0.5.22\n"}, tmp_path))
    assert states(result)[3] == "not shown by this tree"
    assert states(with_step(result, "canary", "ops/canary.yaml"))[3] == "met"


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("sglang==0.5.22", "met"),
        ("sglang==0.5.19", "exposed"),
        ("sglang>=0.5.11", "exposed"),
        ("sglang @ git+https://github.com/sgl-project/sglang@1234567", "not shown by this tree"),
        ("sglang==0.5.19  # auditor: ignore[sglang-vulnerable-version] test only", "not shown by this tree"),
    ],
)
def test_refused_ends_before_allocation_by_the_release(tmp_path: Path, line: str, state: str) -> None:
    assert states(scan_tree(lay({"requirements.txt": line + "\n"}, tmp_path)))[1] == state


def test_the_checksum_on_both_roles_sees_a_short_transfer(tmp_path: Path) -> None:
    launch = "python -m sglang.launch_server --model-path m --disaggregation-mode {role}{more}\n"
    on = " --disaggregation-enable-kv-checksum"
    both = {f"{role}.sh": launch.format(role=role, more=on) for role in ("prefill", "decode")}
    assert states(scan_tree(lay(both, tmp_path / "both")))[2] == "met"
    one = {**both, "decode.sh": launch.format(role="decode", more="")}
    points = checklist(scan_tree(lay(one, tmp_path / "one")))
    assert (points[2].state, [span.path for span in points[2].evidence]) == ("exposed", ["decode.sh"])
    half = {"prefill.sh": both["prefill.sh"]}
    assert states(scan_tree(lay(half, tmp_path / "half")))[2] == "not shown by this tree"


def test_a_tree_without_an_engine_and_a_list_of_files_have_no_checklist(tmp_path: Path) -> None:
    assert checklist(scan_tree(lay({"requirements.txt": "numpy\n"}, tmp_path / "a"))) == ()
    tree = lay({"requirements.txt": "sglang==0.5.19\n"}, tmp_path / "b")
    assert checklist(scan(ScanRequest((str(tree / "requirements.txt"),)))) == ()


def test_the_document_holds_the_checklist() -> None:
    document = json.loads(report(scan_tree(EXPOSED), "json"))
    assert [point["point"] for point in document["checklist"]] == [1, 2, 3, 4, 5]
    assert document["checklist"][0]["evidence"][0]["path"] == "deploy/prefill.yaml"


@pytest.mark.parametrize("name", [reporter.name for reporter in REPORTERS])
def test_two_reports_of_one_tree_are_the_same_bytes(name: str) -> None:
    assert report(scan_tree(EXPOSED), name) == report(scan_tree(EXPOSED), name)


@pytest.mark.parametrize(
    ("files", "point", "state"),
    [
        ({"canary.yaml": "spec:\n  args: [auditor, canary, http://glm:30000]\n"}, 4, "met"),
        ({"ops.sh": "auditor canary http://glm:30000 --rounds 4\n"}, 4, "met"),
        ({"ops.sh": "# auditor canary http://glm:30000\n"}, 4, "not shown by this tree"),
        (
            {".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n    - run: auditor diff origin/main...HEAD\n"},
            5,
            "met",
        ),
        ({".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n    - run: auditor gate http://glm:30000\n"}, 5, "met"),
        ({".github/workflows/a.yml": "name: auditor\ndiff: {}\n"}, 5, "not shown by this tree"),
        ({"deploy.sh": "auditor gate http://glm:30000\n"}, 1, "met"),
    ],
)
def test_the_steps_of_a_tree_are_seen(tmp_path: Path, files: dict[str, str], point: int, state: str) -> None:
    tree = lay({"requirements.txt": "sglang==0.5.22\n", **files}, tmp_path)
    assert states(scan_tree(tree))[point - 1] == state


@pytest.mark.parametrize("name", ["terminal", "markdown", "github"])
def test_control_characters_of_a_tree_reach_no_terminal_and_no_runner(tmp_path: Path, name: str) -> None:
    files = {
        "req\x1b[31m\n::error::x.txt": "sglang==0.5.19 # \x1b]0;title\x07 \x9b2J \u202e\n",
        "::error::y.txt": "sglang==0.5.19\n",
        "bad\r.json": '{"image": "lmsysorg/sglang:v0.5.19"',
    }
    text = report(scan_tree(lay(files, tmp_path)), name)
    bad = "\x07\x9b\u202e\r" if name == "github" else "\x1b\x07\x9b\u202e\r"  # there a path has to stay what it is
    assert [char for char in bad if char in text] == []
    commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert all(line.startswith(("::error file=", "::notice file=")) for line in commands)
    assert bool(commands) == (name == "github")


def test_marks_stand_below_wide_characters(tmp_path: Path) -> None:
    lay({"a.sh": "说明=x; pip install sglang==0.5.19\n"}, tmp_path)
    lines = report(scan_tree(tmp_path), "terminal").splitlines()
    assert lines[2:4] == ["    1 | 说明=x; pip install sglang==0.5.19", "      |                     ^^^^^^^^^^^^^^"]


STEP = "on: push\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n      - {}\n      - run: make\n"


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ("run: auditor gate http://w:30000", "met"),
        ("run: auditor gate http://w:30000 || exit 1", "met"),
        ("run: auditor gate http://w:30000 || true", "not shown by this tree"),
        ("run: |\n          auditor gate http://w:30000 \\\n            --edge-limit 5 || :", "not shown by this tree"),
        ("run: echo auditor gate http://w:30000", "not shown by this tree"),
        ('run: "# auditor gate http://w:30000"', "not shown by this tree"),
        ("run: make  # auditor gate http://w:30000", "not shown by this tree"),
        ("run: auditor gate http://w:30000\n        continue-on-error: true", "not shown by this tree"),
        ("continue-on-error: true\n        run: auditor diff origin/main", "not shown by this tree"),
        ("run: auditor diff origin/main", "met"),
    ],
)
def test_a_step_whose_answer_nobody_reads_meets_nothing(tmp_path: Path, step: str, state: str) -> None:
    lay({".github/workflows/x.yml": STEP.format(step), "requirements.txt": "sglang==0.5.22\n"}, tmp_path)
    assert states(scan_tree(tmp_path))[4] == state


def test_a_fleet_of_one_finding_is_counted_by_rule(tmp_path: Path) -> None:
    manifests = {f"m{number:02}/Dockerfile": "FROM lmsysorg/sglang:v0.5.19\n" for number in range(20)}
    text = report(scan_tree(lay({**manifests, "requirements.txt": "sglang>=0.5.19\n"}, tmp_path)), "terminal")
    assert text.endswith("\nby rule: 20 sglang-vulnerable-image, 1 sglang-vulnerable-version\n")
    (tmp_path / "m00" / "Dockerfile").unlink()
    assert "by rule" not in report(scan_tree(tmp_path), "terminal")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "requirements.txt",
            "sglang==0.5.19\n",
            "the comment `auditor: ignore[sglang-vulnerable-version] the reason` on its line",
        ),
        (
            "deploy.json",
            '{"image": "lmsysorg/sglang:v0.5.19"}\n',
            '`[[tool.auditor.ignores]]` with path, rule = "sglang-vulnerable-image" and reason',
        ),
    ],
)
def test_who_is_stopped_is_told_how_a_judged_place_is_kept(tmp_path: Path, name: str, text: str, says: str) -> None:
    result = scan_tree(lay({name: text}, tmp_path))
    lines = report(result, "terminal").splitlines()
    assert lines[-2].startswith(f"To keep a place that you have judged: {says}")
    assert "To keep" not in report(result, "terminal", quiet=True)


def test_a_kept_place_stops_nobody(tmp_path: Path) -> None:
    kept = "sglang==0.5.19  # auditor: ignore[sglang-vulnerable-version] the reason\n"
    result = scan_tree(lay({"requirements.txt": kept}, tmp_path))
    assert result.active == ()
    assert "To keep" not in report(result, "terminal")
    note = scan_tree(lay({"requirements.txt": "", "Dockerfile": "FROM lmsysorg/sglang:latest\n"}, tmp_path))
    assert [finding.level for finding in note.active] == ["note"]
    assert "To keep" not in report(note, "terminal")
