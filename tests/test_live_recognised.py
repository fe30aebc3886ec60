"""The audit recognises its own gate: a tree with one of the documented manifests has no `missing-capacity-gate`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from auditor.rulebook import load_rules
from tests.live import run

EXAMPLES = Path(__file__).resolve().parent.parent / "fixtures" / "live"
RULE = "missing-capacity-gate"
GATES = ("front-init-container.yaml", "gate-job.yaml", "rollout-analysis.yaml", "helm-test.yaml", "sglang.service")


def missing(root: Path) -> int:
    """How many launches the strict audit calls ungated."""
    done = run("scan", str(root), "--profile", "strict", "--select", RULE, "--format", "json")
    return sum(one["rule"] == RULE for one in json.loads(done.out)["findings"])


def ungated(root: Path) -> None:
    """The worker of the examples without its probe: a launch that nothing gates."""
    text = (EXAMPLES / "engine-startup-probe.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    del document["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
    (root / "prefill.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    if all(rule.id != RULE for rule in load_rules()):
        pytest.skip(f"there is no rule {RULE} yet")
    ungated(tmp_path)
    if not missing(tmp_path):
        pytest.fail("the rule does not find the launch that nothing gates")
    return tmp_path


@pytest.mark.parametrize("name", GATES)
def test_a_documented_gate_satisfies_the_rule(tree: Path, name: str) -> None:
    shutil.copy(EXAMPLES / name, tree / name)
    assert missing(tree) == 0


def test_a_worker_that_gates_itself_satisfies_the_rule(tree: Path) -> None:
    shutil.copy(EXAMPLES / "engine-startup-probe.yaml", tree / "prefill.yaml")
    assert missing(tree) == 0


def test_a_log_watcher_is_no_gate(tree: Path) -> None:
    shutil.copy(EXAMPLES / "latency-cronjob.yaml", tree / "latency.yaml")
    assert missing(tree) > 0
