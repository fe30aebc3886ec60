"""The story of one repository: which findings stay the same, which close and which come back, commit by commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.baseline import apply_baseline, read_baseline, write_baseline
from auditor.cli import main
from auditor.model.findings import Finding
from tests.trees import ROOT, SHARED, lay, scan_tree

COMPOSE = """\
services:
  prefill:
    image: lmsysorg/sglang:v0.5.18
    command: >-
      python3 -m sglang.launch_server --model-path m --disaggregation-mode prefill
      --context-length 1048576 --max-total-tokens 681280
  decode:
    image: lmsysorg/sglang:v0.5.18
    command: python3 -m sglang.launch_server --model-path m --disaggregation-mode decode
"""
REQUIREMENTS = "httpx==0.28.1\nsglang[all]==0.5.18\n"
SERVING = ROOT / "fixtures" / "repos" / "incident-glm" / "serving"
Text = str
Step = Callable[[dict[str, Text]], dict[str, Text]]


def code() -> dict[str, Text]:
    """The incident's scheduler, which admits what it refused."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(SERVING.glob("*.py"))}


def edited(path: str, *pairs: tuple[str, str]) -> Step:
    def step(files: dict[str, Text]) -> dict[str, Text]:
        text = files[path]
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return {**files, path: text}

    return step


def lines_above(files: dict[str, Text]) -> dict[str, Text]:
    return {path: "# a comment\n\n# another one\n" + text for path, text in files.items()}


def reformatted(files: dict[str, Text]) -> dict[str, Text]:
    """Another indent, other quotes, a list in place of a string, blank lines: the same statements."""
    compose = """\
# a comment
services:
      prefill:
            command: ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--disaggregation-mode", "prefill",
                      "--context-length=1048576", "--max-total-tokens=681280"]
            image: "lmsysorg/sglang:v0.5.18"

      decode:
            command: ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--disaggregation-mode", "decode"]
            image: 'lmsysorg/sglang:v0.5.18'
"""
    tabbed = {name: text.replace("    ", "\t").replace("\n\n\t", "\n\n\n\t") for name, text in code().items()}
    return {**files, "compose.yaml": compose, "requirements.txt": "sglang[all] == 0.5.18\nhttpx\n", **tabbed}


def bumped(old: str, new: str) -> Step:
    def step(files: dict[str, Text]) -> dict[str, Text]:
        return {path: text.replace(old, new) for path, text in files.items()}

    return step


Key = tuple[str, str, str]


def key(finding: Finding) -> Key:
    return finding.rule, finding.span.path, finding.identity[2]


def prints(root: Path, files: dict[str, Text]) -> dict[str, Key]:
    for path in root.rglob("*"):
        if path.is_file():
            path.unlink()
    result = scan_tree(lay(files, root))
    found = {finding.fingerprint: key(finding) for finding in result.active}
    assert len(found) == len(result.active), "two findings of a run share a fingerprint"
    return found


def test_findings_stay_close_and_come_back_as_the_repository_goes_on(tmp_path: Path) -> None:
    files = {"compose.yaml": COMPOSE, "requirements.txt": REQUIREMENTS, **code()}
    first = prints(tmp_path, files)
    assert {rule for rule, _, _ in first.values()} >= {
        "sglang-vulnerable-image",
        "sglang-vulnerable-version",
        "kv-pool-below-context",
        "admit-on-negative-state",
    }

    assert prints(tmp_path, lines_above(files)) == first, "lines above close nothing"
    assert prints(tmp_path, reformatted(files)) == first, "another layout closes nothing"

    inside = bumped("0.5.18", "0.5.19")(files)
    assert prints(tmp_path, inside) == first, "a bump inside the affected range is the same exposure"

    renamed = edited("compose.yaml", ("  decode:", "  decoder:"))(inside)
    after = prints(tmp_path, renamed)
    closed, opened = set(first) - set(after), set(after) - set(first)
    assert {first[name][1:] for name in closed} == {("compose.yaml", "decode")}, "the old service's findings close"
    assert {after[name][1:] for name in opened} == {("compose.yaml", "decoder")}, "and open under the new name"
    assert [first[name][0] for name in sorted(closed, key=first.__getitem__)] == [
        after[name][0] for name in sorted(opened, key=after.__getitem__)
    ]

    safe = bumped("0.5.19", "0.5.22")(inside)
    after = prints(tmp_path, safe)
    gone = {first[name][0] for name in set(first) - set(after)}
    assert {"sglang-vulnerable-image", "sglang-vulnerable-version"} <= gone
    assert not any(rule.startswith("sglang-vulnerable") for rule, _, _ in after.values())
    assert {rule for rule, _, _ in after.values()} >= {"kv-pool-below-context", "admit-on-negative-state"}
    assert set(after) <= set(first), "a safe version opens nothing"

    assert prints(tmp_path, inside) == first, "the revert reopens exactly what was closed"


def test_a_baseline_of_the_first_day_absorbs_all_of_the_moves_and_none_of_the_new(tmp_path: Path) -> None:
    files = {"compose.yaml": COMPOSE, "requirements.txt": REQUIREMENTS, **code()}
    tree, baseline = tmp_path / "tree", tmp_path / "baseline.jsonl"
    write_baseline(str(baseline), scan_tree(lay(files, tree)).findings)
    lay(lines_above(bumped("0.5.18", "0.5.19")(files)), tree)
    findings, idle = apply_baseline(scan_tree(tree).findings, read_baseline(str(baseline)), "baseline.jsonl")
    assert ([key(finding) for finding in findings if finding.suppressed is None], idle) == ([], [])
    lay({"more/requirements.txt": "sglang==0.5.19\n"}, tree)
    findings, idle = apply_baseline(scan_tree(tree).findings, read_baseline(str(baseline)), "baseline.jsonl")
    assert [key(finding) for finding in findings if finding.suppressed is None] == [
        ("sglang-vulnerable-version", "more/requirements.txt", "")
    ]
    assert idle == []


def test_twins_keep_their_number_when_one_in_the_middle_moves_within_the_file(tmp_path: Path) -> None:
    one = "sglang==0.5.18\n"
    first = prints(tmp_path, {"requirements.txt": one + one + one})
    assert len(first) == 3
    assert set(prints(tmp_path, {"requirements.txt": "# x\n" + one + "\n" + one})) < set(first)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="the corpus of labelled files is not here")
def test_no_two_findings_of_the_whole_corpus_share_a_fingerprint() -> None:
    findings = scan_tree(SHARED / "corpus").findings
    assert len({finding.fingerprint for finding in findings}) == len(findings) > 0


def test_a_folder_audited_alone_or_through_a_link_gives_the_fingerprints_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    lay({"deploy/compose.yaml": COMPOSE, "deploy/requirements.txt": REQUIREMENTS}, tmp_path)
    (tmp_path.parent / f"{tmp_path.name}-link").symlink_to(tmp_path / "deploy")
    whole = [finding.fingerprint for finding in scan_tree(tmp_path).findings]
    assert [finding.fingerprint for finding in scan_tree(tmp_path / "deploy").findings] == whole
    linked = scan_tree(tmp_path.parent / f"{tmp_path.name}-link")
    assert ([finding.fingerprint for finding in linked.findings], linked.prefix) == (whole, "deploy/")


def test_a_baseline_of_the_whole_serves_a_folder_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    lay({"a/requirements.txt": REQUIREMENTS, "b/requirements.txt": REQUIREMENTS}, tmp_path)
    baseline = str(tmp_path / "baseline.txt")
    assert main(["scan", str(tmp_path), "--write-baseline", baseline, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["scan", str(tmp_path / "a"), "--baseline", baseline, "--quiet"]) == 0
    assert capsys.readouterr().out == "no findings; 1 file looked at, 1 read; 1 suppressed\n"
