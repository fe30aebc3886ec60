"""Which versions are affected, what a range admits, and what other advisories say of a launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.launch import bundles
from auditor.launch.advisories import advisories
from auditor.launch.images import vendors
from auditor.launch.versions import (
    guard_story,
    parse_version,
    releases,
    specifier_verdict,
    vcs_verdict,
    version_verdict,
)
from tests.trees import lay, scan_tree


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("0.5.9", "vulnerable"),
        ("0.4.10.post2", "vulnerable"),
        ("0.5.22rc1", "vulnerable"),
        ("0.5.22.dev20261009+g37ae292e6f", "vulnerable"),
        ("0.5.21.post2", "vulnerable"),
        ("0.5.21+patched", "vulnerable"),
        ("0.5.22", "safe"),
        ("0.5.22.post1", "safe"),
        ("0.5.22+cu130", "safe"),
        ("0.5.100", "safe"),
        ("1!0.1", "safe"),
        ("not-a-version", "unverifiable"),
    ],
)
def test_a_version_is_ordered_by_pep_440(version: str, verdict: str) -> None:
    assert version_verdict(version).verdict == verdict


@pytest.mark.parametrize(
    ("specifier", "verdict", "worst", "whole"),
    [
        (">=0.5.10,<0.5.22", "admits-vulnerable", "0.5.10", True),
        ("<0.5.20", "admits-vulnerable", "0.1.3", True),
        ("~=0.5.20", "admits-vulnerable", "0.5.20", False),
        ("==0.5.*", "admits-vulnerable", "0.5.1", False),
        ("!=0.5.9", "admits-vulnerable", "0.1.3", False),
        ("^0.5.9", "admits-vulnerable", "0.5.9", False),
        (">=0.4,<0.5 || >=0.5.22", "admits-vulnerable", "0.4.0", False),
        (">=0.5.9.*", "admits-vulnerable", "0.5.9", False),
        (">=0.5.21,!=0.5.21", "admits-vulnerable", "0.5.21.post1", False),  # a post release may follow
        (">=0.5.22rc1", "admits-vulnerable", "0.5.22rc1", False),  # named by the specifier itself
        (">0.5.21", "safe", None, False),  # PEP 440: not its post releases
        ("~=0.5.22", "safe", None, False),
        (">=0.5.23,<0.6", "safe", None, False),
        (">=0.9", "safe", None, False),  # newer than the catalogue: by number
        ("===0.5.19", "vulnerable", None, False),
    ],
)
def test_a_range_is_what_it_admits(specifier: str, verdict: str, worst: str | None, whole: bool) -> None:
    found = specifier_verdict(specifier)
    assert (found.verdict, found.worst, found.whole) == (verdict, worst, whole)


@pytest.mark.parametrize(
    ("ref", "url", "verdict", "reason"),
    [
        ("v0.5.6.post2", "https://github.com/sgl-project/sglang.git", "vulnerable", None),
        ("refs/tags/v0.5.22", "https://github.com/sgl-project/sglang", "safe", None),
        ("v0.5.9-fix.2", "https://github.com/acme/sglang.git", "vulnerable", None),
        ("main", "https://github.com/sgl-project/sglang.git", "unverifiable", "branch"),
        (None, "git@github.com:sgl-project/sglang.git", "unverifiable", "branch"),
        ("0a1b2c3d4e5f", "https://github.com/sgl-project/sglang.git", "unverifiable", "commit"),
        ("main", "https://github.com/acme/sglang.git", "unverifiable", "fork"),
    ],
)
def test_a_checkout_is_its_tag(ref: str | None, url: str, verdict: str, reason: str | None) -> None:
    found = vcs_verdict(ref, url)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert (found.decide is None) == (verdict != "unverifiable")


def test_the_catalogue_is_in_order_and_dated() -> None:
    known = releases("sglang")
    assert known is not None
    parsed = [parse_version(version) for version in known.versions]
    assert None not in parsed
    assert parsed == sorted(parsed)  # type: ignore[type-var]
    assert len(known.read_on) == 10
    assert {"0.5.19", "0.5.20", "0.5.21", "0.5.22"} <= set(known.versions)


def test_each_stretch_of_releases_has_its_story() -> None:
    stories = [guard_story(version) for version in ("0.5.19", "0.5.20", "0.5.21", "0.5.22")]
    assert len(set(stories)) == 4
    assert "no guard" in stories[0]
    assert "after their forward pass" in stories[1]


def test_the_message_says_what_the_version_has(tmp_path: Path) -> None:
    result = scan_tree(lay({"requirements.txt": "sglang==0.5.20\nsglang>=0.5.10,<0.5.22\n"}, tmp_path))
    first, second = (finding for finding in result.active if finding.rule == "sglang-vulnerable-version")
    assert "after their forward pass" in first.message
    assert ">=0.5.10,<0.5.22" in second.message
    assert (second.outcome, second.level, second.properties["verdict"]) == ("vulnerable", "error", "admits-vulnerable")


def test_one_pin_gives_one_finding_by_default(tmp_path: Path) -> None:
    result = scan_tree(lay({"requirements.txt": "sglang==0.5.19\n"}, tmp_path))
    assert [finding.rule for finding in result.active] == ["sglang-vulnerable-version"]


@pytest.mark.parametrize(
    ("line", "verdict", "version"),
    [
        ("ai-dynamo[sglang]==1.0.1", "vulnerable", "0.5.9"),
        ("ai-dynamo[sglang]==0.4.1", "vulnerable", "0.5.3.post2"),
        ("ai-dynamo[sglang]==9.9.9", "unverifiable", None),
        ("ai-dynamo[sglang]>=0.9,<1.1", "admits-vulnerable", None),
        ("ai_dynamo[sglang]", "admits-vulnerable", None),
    ],
)
def test_a_bundle_is_judged_by_the_engine_inside(line: str, verdict: str, version: str | None, tmp_path: Path) -> None:
    result = scan_tree(lay({"requirements.txt": line + "\nai-dynamo==1.0.1\n"}, tmp_path))
    found = [finding for finding in result.active if finding.rule == "sglang-vulnerable-version"]
    assert [(finding.span.start.line, finding.properties["verdict"]) for finding in found] == [(1, verdict)]
    assert found[0].properties["version"] == (version or (line.partition("==")[2] or None))


def test_bundles_are_those_of_the_table() -> None:
    assert {vendor["package"] for vendor in vendors() if "package" in vendor} == bundles.NAMES


def test_advisory_ranges_can_be_read() -> None:
    for entry in advisories():
        assert (entry.fixed is None) != (entry.last_affected is None), entry.id
        assert entry.affects(entry.last_affected or entry.introduced), entry.id
        assert not entry.affects("99.0"), entry.id
        assert entry.condition


def test_an_engine_tree_replaces_the_version_of_its_manifest(tmp_path: Path) -> None:
    files = {
        "engine/pyproject.toml": '[project]\nname = "sglang"\nversion = "0.4.6"\n',
        "engine/sglang/srt/disaggregation/prefill.py": (
            "class PrefillBootstrapQueue:\n    pass\nclass SchedulerDisaggregationPrefillMixin:\n    pass\n"
        ),
    }
    result = scan_tree(lay(files, tmp_path))
    version = [finding for finding in result.active if finding.rule.startswith("sglang-vulnerable")]
    assert [(finding.rule, finding.outcome) for finding in version] == [("sglang-vulnerable-source", "vulnerable")]
    assert [related.message for related in version[0].related] == ["the tree calls itself sglang 0.4.6"]


@pytest.mark.parametrize(
    ("requirement", "constraint", "verdicts"),
    [
        ("sglang", "sglang==0.5.22", []),
        ("sglang>=0.5.9", "sglang>=0.5.22", []),
        ("sglang", "sglang<0.6", [("a.txt", "admits-vulnerable"), ("c.txt", "admits-vulnerable")]),
        ("sglang==0.5.19", "sglang==0.5.22", [("a.txt", "vulnerable")]),
        ("sglang", "sglang==0.5.22 ; sys_platform == 'linux'", [("a.txt", "admits-vulnerable")]),
    ],
)
def test_a_requirement_means_what_its_constraints_admit(
    requirement: str, constraint: str, verdicts: list[tuple[str, str]], tmp_path: Path
) -> None:
    files = {
        "requirements/top.txt": "-c ../c/../c.txt\n-r a.txt\nsglang-router\nstrands-sglang\n",
        "requirements/a.txt": f"-r top.txt\n{requirement}\n",
        "c.txt": f"{constraint}\n",
    }
    result = scan_tree(lay(files, tmp_path))
    found = [finding for finding in result.active if finding.rule == "sglang-vulnerable-version"]
    got = [(finding.span.path.rpartition("/")[2], finding.properties["verdict"]) for finding in found]
    assert sorted(got) == verdicts  # type: ignore[type-var]


def test_a_number_of_thousands_of_digits_is_no_version() -> None:
    from auditor.launch.versions import parse_version

    assert parse_version("9" * 5000) is None
