"""Every example of every rule file: bad ones give what they say, at the text that they say; good ones nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.checks import CHECKS
from auditor.config import Config
from auditor.errors import RuleFileError
from auditor.model.rules import Example, Rule
from auditor.rulebook import load_rules, parse_rule
from tests.trees import READY, lay, scan_tree

BAD = [pytest.param(rule, example, id=f"{rule.id}: {example.name}") for rule in load_rules() for example in rule.bad]
GOOD = [pytest.param(rule, example, id=f"{rule.id}: {example.name}") for rule in load_rules() for example in rule.good]


def profile_of(rule: Rule, outcomes: set[str]) -> Config:
    """The default profile, or the strict one where the rule is off without it."""
    off = any(rule.levels[outcome] == "off" for outcome in outcomes) or rule.floor.get("default") == "high"
    return Config(profile="strict" if off else "default", select=())


@pytest.mark.skipif(not READY, reason="the readers that the examples need are not all there yet")
@pytest.mark.parametrize(("rule", "example"), BAD)
def test_bad_example_gives_what_it_says(rule: Rule, example: Example, tmp_path: Path) -> None:
    outcomes = {expect.outcome for expect in example.expect}
    result = scan_tree(lay(example.files, tmp_path), profile_of(rule, outcomes), **example.assume)
    got = sorted(
        (finding.span.path, result.sources[finding.span.path].slice(finding.span), finding.outcome)
        for finding in result.active
        if finding.rule == rule.id
    )
    assert got == sorted((expect.path, expect.at, expect.outcome) for expect in example.expect)
    assert not [problem for problem in result.problems if problem.kind == "internal"]


@pytest.mark.parametrize(("rule", "example"), GOOD)
def test_good_example_is_quiet(rule: Rule, example: Example, tmp_path: Path) -> None:
    result = scan_tree(lay(example.files, tmp_path), profile_of(rule, set(rule.levels)), **example.assume)
    assert [finding for finding in result.active if finding.rule == rule.id] == []
    assert not [problem for problem in result.problems if problem.kind == "internal"]


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.id)
def test_rule_is_complete(rule: Rule) -> None:
    check = next(check for check in CHECKS if check.name == rule.check)
    assert set(rule.levels) == set(check.outcomes)
    assert 0 < rule.severity <= 10
    assert rule.bad, "a rule shows at least one exposed example"
    assert rule.good, "a rule shows at least one near miss that stays quiet"
    assert not rule.title.endswith(".")


VALID = Path(__file__).resolve().parent.parent / "rules" / "engine" / "unused-ignore.yaml"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("family: engine", "family: engines", "2:9: `engines` is not one of version, capacity, code, engine"),
        ("check: unused-ignore", "check: nothing", "4:8: there is no check `nothing`"),
        ("id: unused-ignore", "id: other", "1:5: the id `other` differs from the file name"),
        ("since: 0.1.0", "since: 0.1.0\ncolour: red", "unknown key `colour`"),
        ("levels: {unused: note,", "levels: {unused: fatal,", "5:18: `fatal` is not one of"),
        ("levels: {unused: note,", "levels: {unused: off,", "`unused` is off: say under `strict`"),
        ("{rules}", "{package}", "gives no field `package`"),
        ("severity: 1.0", "severity: high", "a number above 0"),
        ("title: An ignore", "title: [An", "not valid YAML"),
    ],
)
def test_wrong_rule_file_is_one_line_with_its_place(old: str, new: str, says: str) -> None:
    text = VALID.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(RuleFileError) as caught:
        parse_rule(text.replace(old, new, 1), "rules/engine/unused-ignore.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("rules/engine/unused-ignore.yaml")
    assert "\n" not in str(caught.value)
