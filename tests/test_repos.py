"""The small repositories of `fixtures/repos`: the whole report of each, spans included, against its `expected.json`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from auditor.model.findings import ScanResult
from auditor.report import ReportOptions
from auditor.report.sarif import write
from auditor.rulebook import load_rules
from tests.check_sarif import check_sarif
from tests.trees import ROOT, scan_tree, seen

REPOS = sorted(path for path in (ROOT / "fixtures" / "repos").iterdir() if path.is_dir())
FAMILY = {rule.id: rule.family for rule in load_rules()}


def expected_of(result: ScanResult) -> dict[str, Any]:
    """What a reader of the golden file wants to see: the rule, what it says, where, on which text."""
    return {
        "findings": [
            {
                "rule": finding.rule,
                "outcome": finding.outcome,
                "level": finding.level,
                "at": f"{finding.span.path}:{finding.span.start.line}:{finding.span.start.column}",
                "text": seen(result, finding)[3],
                "message": finding.message,
                "related": [
                    f"{related.span.path}:{related.span.start.line}: {related.message}" for related in finding.related
                ],
            }
            for finding in result.findings
            if finding.suppressed is None
        ],
        "unread": sorted(f"{problem.path}: {problem.reason}" for problem in result.problems),
    }


@pytest.mark.parametrize("repo", REPOS, ids=lambda path: path.name)
def test_report_is_as_expected(repo: Path, request: pytest.FixtureRequest) -> None:
    result = scan_tree(repo)
    got = expected_of(result)
    golden = repo.parent / f"{repo.name}.expected.json"
    if request.config.getoption("--update"):
        golden.write_text(json.dumps(got, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert got == json.loads(golden.read_text(encoding="utf-8"))
    assert not [problem for problem in result.problems if problem.kind == "internal"]


@pytest.mark.parametrize("repo", REPOS, ids=lambda path: path.name)
def test_sarif_is_what_github_takes(repo: Path) -> None:
    stream = io.StringIO()
    write(scan_tree(repo), stream, ReportOptions(rules=load_rules()))
    check_sarif(json.loads(stream.getvalue()), ROOT)


def test_the_incident_shows_all_three_families() -> None:
    result = scan_tree(ROOT / "fixtures" / "repos" / "incident-glm")
    texts = {FAMILY[finding.rule]: set() for finding in result.active}
    for finding in result.active:
        texts[FAMILY[finding.rule]].add(seen(result, finding)[3])
    assert {"version", "capacity", "code"} <= set(texts)
    assert {"lmsysorg/sglang:v0.5.19", "sglang[all]==0.5.19", "0.5.19"} <= texts["version"]
    assert any("1048576" in text for text in texts["capacity"])
    assert any("finished()" in text or "append" in text for text in texts["code"])


def test_the_repaired_incident_is_silent() -> None:
    result = scan_tree(ROOT / "fixtures" / "repos" / "incident-glm-fixed")
    assert result.active == ()
    assert result.problems == ()
