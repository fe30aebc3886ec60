"""Launches joined with the file of options that their `--config` names."""

from __future__ import annotations

from pathlib import Path

from auditor.model.facts import EngineLaunch
from tests.trees import lay, scan_tree

OPTIONS = """disaggregation-mode: prefill
model-path: org/model
context-length: 9600
max-total-tokens: 8000
"""
COMMAND = "python -m sglang.launch_server --config {name} --context-length 4096\n"


def launches(files: dict[str, str | bytes], tmp_path: Path) -> list[EngineLaunch]:
    lay(files, tmp_path)
    return list(scan_tree(tmp_path).facts.launches)


def flags(launch: EngineLaunch) -> dict[str, object]:
    return {name: flag.value for name, flag in launch.flags.items() if name != "config"}


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    [launch] = launches(
        {"run.sh": COMMAND.format(name="/etc/engine/prefill.yaml"), "conf/prefill.yaml": OPTIONS}, tmp_path
    )
    assert (launch.role, launch.model) == ("prefill", "org/model")
    assert flags(launch) == {
        "disaggregation-mode": "prefill",
        "model-path": "org/model",
        "context-length": 4096,
        "max-total-tokens": 8000,
    }
    assert [(related.span.path, related.message) for related in launch.related] == [
        ("conf/prefill.yaml", "options of this launch")
    ]


def test_a_path_from_the_file_or_the_root_is_exact(tmp_path: Path) -> None:
    tree: dict[str, str | bytes] = {
        "a/run.sh": COMMAND.format(name="./options.yaml"),
        "a/options.yaml": OPTIONS,
        "b/options.yaml": OPTIONS.replace("8000", "500"),
    }
    joined, other = launches(tree, tmp_path)
    assert flags(joined)["max-total-tokens"] == 8000
    assert (other.entrypoint, other.span.path) == ("options file", "b/options.yaml")


def test_a_name_that_two_files_bear_is_not_guessed(tmp_path: Path) -> None:
    tree: dict[str, str | bytes] = {
        "run.sh": COMMAND.format(name="/etc/options.yaml"),
        "a/options.yaml": OPTIONS,
        "b/options.yaml": OPTIONS,
    }
    assert [(launch.entrypoint, launch.role) for launch in launches(tree, tmp_path)] == [
        ("options file", "prefill"),
        ("options file", "prefill"),
        ("sglang.launch_server", "unified"),
    ]


def test_a_file_of_options_is_held_against_its_pool(tmp_path: Path) -> None:
    options = (
        OPTIONS.replace("org/model", "zai-org/GLM-5.2-FP8").replace("9600", "1048576").replace("max-total-tokens", "tp")
    )
    lay({"prefill.yaml": options.replace("8000", "8") + "mem-fraction-static: 0.8\n"}, tmp_path)
    findings = [(finding.rule, finding.outcome, finding.span.start.line) for finding in scan_tree(tmp_path).active]
    assert ("kv-pool-below-context", "unknown", 3) in findings
