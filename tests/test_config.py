"""The configuration: what it changes, and that a wrong one is one line with its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from auditor.checks.code_params import AdmitParams, SplitParams
from auditor.cli import main
from auditor.config import find_config, load_config
from auditor.config_reading import schema
from auditor.model.records import replace
from auditor.model.rules import Rule
from auditor.rulebook import load_rules, with_params
from auditor.scan import ScanRequest, scan
from tests.trees import ROOT, lay


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('profil = "strict"\n', "1:1: [tool.auditor] has no key `profil`; did you mean `profile`?"),
        ('profile = "strct"\n', "1:12: `profile`: `strct` is not one of default, strict; did you mean `strict`?"),
        ("submodules = 1\n", "1:14: `submodules`: true or false is expected here, not a number"),
        ("exclude = [1]\n", "1:12: `exclude`: a text is expected here, not a number"),
        ('select = "a"\n', "1:11: `select`: a list is expected here, not a text"),
        ('select = ["kv-pool-below-contxt"]\n', "1:12: there is no rule `kv-pool-below-contxt`; did you mean"),
        (
            "[rules.kv-pool-below-context]\nhedroom = 2\n",
            "2:1: `kv-pool-below-context` has no parameter `hedroom`; did you",
        ),
        ('[rules.kv-pool-below-context]\nheadroom = "2"\n', "2:1: `headroom`: a number is expected here"),
        (
            '[rules.split-verdict]\nstates.refuzed = {add = ["barred"]}\n',
            "2:1: `states.refuzed`: not known here; did you mean `refused`?",
        ),
        (
            "[rules.split-verdict]\nholders = {ad = []}\n",
            "2:12: `holders.ad`: not known here; did you mean `add`?",
        ),
        (
            '[rules.split-verdict]\nholders = {remove = ["que"]}\n',
            "2:12: `holders.remove`: `que` is not in the list; did you mean `queue`?",
        ),
        (
            '[rules.split-verdict]\nholders = {add = ["waitingRoom"]}\n',
            "2:1: `holders`: single words in lower case are expected here, such as `queue`, not `waitingRoom`",
        ),
        (
            '[rules.split-verdict]\nholders = "hangar"\n',
            "2:1: `holders`: a list is expected here, or a table with `add` and `remove`",
        ),
        (
            '[rules.split-verdict.states.over]\nadd = "gone"\n',
            "2:1: `states.over.add`: a list is expected here",
        ),
        (
            "[rules.kv-pool-below-context]\nheadroom = -1\n",
            "2:1: `headroom`: a number above 0 is expected here, not -1",
        ),
        ("[rules.kv-pool-below-context]\nheadroom = inf\n", "2:1: `headroom`: a number above 0 is expected here"),
        ('gpu = "H2000"\n', "1:8: `gpu`: there is no accelerator `H2000` in the catalogue; did you mean `H200`?"),
        (
            '[[path]]\nmatch = "x"\ngpu = "l4os"\n',
            "3:8: `gpu`: there is no accelerator `l4os` in the catalogue; did you",
        ),
        (
            '[models."a/b"]\nnum_hidden_layers = "x"\n',
            "2:22: `num_hidden_layers`: a number is expected here, not a text",
        ),
        ('[models."a/b"]\nnum_hiden_layers = 3\n', "2:1: a model configuration has no key `num_hiden_layers`; did you"),
        ("[models.m.text_config]\nhead_dim = []\n", "2:12: `head_dim`: a number is expected here, not a list"),
        ("[rules.nothing]\n", "1:1: there is no rule `nothing`"),
        ('[[ignores]]\nrule = "unread-evidence"\n', "1:1: [[ignores]] needs the key `reason`"),
        ('[[ignores]]\nreason = " "\n', "2:11: `reason`: say in words"),
        ('[[ignores]]\nreason = "x"\nuntil = "soon"\n', "3:10: `until`: `soon` is not a date; write YYYY-MM-DD"),
        ("[[path]]\ngpu = 'H200'\n", "1:1: [[path]] needs the key `match`"),
        ("profile = \n", "1:"),
        ('extends = [\n  "no.toml",\n]\n', "2:4: `extends`: cannot read `no.toml`: No such file"),
        ("gpu = 2027-01-31\n", "1:7: `gpu`: a text is expected here"),
        ('[[ignores]]\nreason = "x"\nuntil = 2027-01-31T10:00:00\n', "3:9: `until`: a day is expected here"),
        ('gpu = "H200"\ngpu = "H100"\n', "auditor.toml:2:"),
        ('[[ignores]]\nreason = "x"\nrul = "y"\n', "3:1: [[ignores]] has no key `rul`; did you mean `rule`?"),
        ('extends = ["auditor.toml"]\n', "`extends` leads in a circle"),
    ],
)
def test_a_wrong_configuration_is_one_line_with_its_place(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay({"auditor.toml": text}, tmp_path)
    assert main(["scan", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


FULL = """
[tool.auditor]
select = ["sglang-vulnerable-version", "kv-pool-below-context"]
profile = "strict"
fail-on = "warning"
exclude = ["legacy/"]
gpu = "H200"
baseline = "b.txt"
[tool.auditor.rules.kv-pool-below-context]
headroom = 1.5
[[tool.auditor.path]]
match = "edge/"
gpu = "L40S"
[[tool.auditor.ignores]]
path = "bench/"
rule = "sglang-vulnerable-version"
reason = "one tenant"
until = 2027-01-31
[tool.auditor.models."org/own"]
num_hidden_layers = 2
"""


def test_every_key_is_read_and_is_in_the_schema(tmp_path: Path) -> None:
    import tomli

    lay({"pyproject.toml": FULL, "sub/x.txt": ""}, tmp_path)
    found = find_config(str(tmp_path / "sub"))
    assert found == str(tmp_path / "pyproject.toml")
    config = load_config(found)
    assert (config.profile, config.fail_on, config.exclude) == ("strict", "warning", ("legacy/",))
    assert config.assume == {"gpu": "H200"}
    assert config.paths[0].gpu == "L40S"
    assert config.ignores[0].until == date(2027, 1, 31)
    assert config.params == {"kv-pool-below-context": {"headroom": 1.5}}
    assert config.baseline == str(tmp_path / "b.txt")
    plain = json.loads(json.dumps(tomli.loads(FULL)["tool"]["auditor"], default=str))
    jsonschema.validate(plain, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"profil": "strict"}, schema())


def test_the_shipped_schema_is_current() -> None:
    shipped = json.loads((ROOT / "auditor" / "config.schema.json").read_text(encoding="utf-8"))
    assert shipped == schema(), "run `python -m auditor.docs`"


def rules_of(root: Path, today: str = "2026-12-01") -> list[tuple[str, str, str | None]]:
    config = load_config(str(root / "auditor.toml"))
    result = scan(ScanRequest((str(root),), config, today=date.fromisoformat(today)))
    return [(f.rule, f.span.path, f.suppressed.kind if f.suppressed else None) for f in result.findings]


IGNORES = """
[[ignores]]
path = "bench/"
rule = "sglang-vulnerable-version"
reason = "one tenant"
until = 2026-12-31
"""


def test_a_reasoned_ignore_holds_until_its_day(tmp_path: Path) -> None:
    lay({"auditor.toml": IGNORES, "bench/requirements.txt": "sglang==0.5.19\n"}, tmp_path)
    assert rules_of(tmp_path, "2026-12-31") == [
        ("sglang-vulnerable-version", "bench/requirements.txt", "config"),
    ]
    assert rules_of(tmp_path, "2027-01-01") == [
        ("unused-ignore", "auditor.toml", None),
        ("sglang-vulnerable-version", "bench/requirements.txt", None),
    ]


def test_an_ignore_that_silences_nothing_is_a_finding(tmp_path: Path) -> None:
    lay({"auditor.toml": IGNORES, "bench/requirements.txt": "sglang==0.5.22\n"}, tmp_path)
    assert rules_of(tmp_path) == [("unused-ignore", "auditor.toml", None)]


def test_exclusions_and_extended_files_add_up(tmp_path: Path) -> None:
    files = {
        "auditor.toml": 'extends = ["base.toml"]\nexclude = ["b/"]\n',
        "base.toml": 'exclude = ["a/"]\nprofile = "strict"\n',
        "a/requirements.txt": "sglang==0.5.19\n",
        "b/requirements.txt": "sglang==0.5.19\n",
        "c/requirements.txt": "sglang==0.5.19\n",
    }
    lay(files, tmp_path)
    assert load_config(str(tmp_path / "auditor.toml")).profile == "strict"
    assert rules_of(tmp_path) == [
        ("known-advisory", "c/requirements.txt", None),
        ("sglang-vulnerable-version", "c/requirements.txt", None),
    ]


COMMENTS = {
    "requirements.txt": "# auditor: ignore[sglang-vulnerable-version] lab\nsglang==0.5.19\n",
    "Dockerfile": (
        "# auditor: ignore[sglang-vulnerable-image] lab\nFROM lmsysorg/sglang:v0.5.19\n"
        "RUN true \\\n    # auditor: ignore[sglang-vulnerable-version] lab\n    && pip install sglang==0.5.19\n"
    ),
    "k.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: a\n"
        "      image: lmsysorg/sglang:v0.5.19  # auditor: ignore[sglang-vulnerable-image] lab\n"
        "      command: [bash, -c]\n      args:\n        - |\n"
        "          # auditor: ignore[sglang-vulnerable-version] lab\n"
        "          pip install sglang==0.5.18\n"
    ),
    "chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "chart/templates/d.yaml": (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: {{ .Release.Name }}\n"
        "      {{- /* auditor: ignore[sglang-vulnerable-image] lab */}}\n      image: lmsysorg/sglang:v0.5.19\n"
    ),
    "main.tf": (
        'resource "kubernetes_pod" "a" {\n  spec {\n    container {\n'
        '      // auditor: ignore[sglang-vulnerable-image] lab\n      image = "lmsysorg/sglang:v0.5.19"\n'
        "    }\n  }\n}\n"
    ),
}


def test_ignores_in_every_comment_syntax(tmp_path: Path) -> None:
    lay(COMMENTS, tmp_path)
    result = scan(ScanRequest((str(tmp_path),)))
    assert [(f.rule, f.span.path, f.span.start.line) for f in result.active] == []
    assert len(result.findings) >= len(COMMENTS) + 1
    assert {f.suppressed.reason for f in result.findings if f.suppressed} == {"lab"}


def test_an_ignore_of_a_rule_that_did_not_run_is_not_unused(tmp_path: Path) -> None:
    from auditor.config import Config

    lay({"requirements.txt": "sglang==0.5.22  # auditor: ignore[sglang-vulnerable-version] x\n"}, tmp_path)
    ran = scan(ScanRequest((str(tmp_path),)))
    left_out = scan(ScanRequest((str(tmp_path),), Config(ignore=("sglang-vulnerable-version",))))
    assert [f.rule for f in ran.active] == ["unused-ignore"]
    assert left_out.active == ()


def test_words_are_added_removed_or_replaced_and_add_up_through_extends(tmp_path: Path) -> None:
    own = """extends = ["base.toml"]
[rules.split-verdict]
states.refused = {add = ["barred2"], remove = ["void"]}
states.over = ["landed"]
holders = {add = ["hangar"]}
[rules.admit-on-negative-state]
known-enums."shop.Status" = ["OPEN", "VOIDED"]
"""
    base = '[rules.split-verdict]\nholders = {add = ["apron"], remove = ["desk"]}\nstates.over = ["gone"]\n'
    lay({"auditor.toml": own, "base.toml": base}, tmp_path)
    config = load_config(str(tmp_path / "auditor.toml"))
    rules = {rule.id: rule for rule in load_rules()}
    changed = with_params(rules["split-verdict"], config.params["split-verdict"])
    before = rules["split-verdict"].params
    assert isinstance(changed, Rule)
    assert isinstance(changed.params, SplitParams)
    assert isinstance(before, SplitParams)
    assert changed.params.holders == (*(word for word in before.holders if word != "desk"), "apron", "hangar")
    assert changed.params.states == replace(
        before.states,
        over=("landed",),
        refused=(*(word for word in before.states.refused if word != "void"), "barred2"),
    )
    admit = with_params(rules["admit-on-negative-state"], config.params["admit-on-negative-state"])
    assert isinstance(admit, Rule)
    assert isinstance(admit.params, AdmitParams)
    assert admit.params.known_enums["shop.Status"] == ("OPEN", "VOIDED")
    assert "rq.job.JobStatus" in admit.params.known_enums


VOCABULARY = {
    "admit-on-negative-state": (
        "states.refused = {add = ['moribund']}",
        "class S(Enum):\n    WAITING = 1\n    DONE = 2\n    MORIBUND = 3\n\n\nclass D:\n    def f(self, job):\n"
        "        if job.state != S.DONE:\n            self.queue.append(job)\n",
        9,
    ),
    "split-verdict": (
        "states.refused = {add = ['moribund']}",
        "class R:\n    def __init__(self):\n        self.end = None\n        self.note = None\n\n"
        "    def mark_moribund(self, why):\n        self.note = why\n\n    def finished(self):\n"
        "        return self.end is not None\n\n    def settle(self):\n        if self.note:\n"
        "            self.end = self.note\n\n\nclass Queue:\n    def add(self, r: R):\n        self.items.append(r)\n",
        19,
    ),
    "release-without-invalidation": (
        "free = {add = ['hangar']}",
        "class P:\n    def release(self, bay):\n        self.hangar.append(bay)\n",
        3,
    ),
    "handle-read-without-generation": (
        "releasing = {add = ['undock']}",
        "class P:\n    def undock(self, bay):\n        self.free.append(bay)\n\n"
        "    def read(self, bay):\n        return self.bays[bay]\n",
        6,
    ),
    "reserve-without-capacity-check": (
        "taking = {add = ['undock']}",
        "class P:\n    def undock(self, n):\n        return self.free[:n]\n",
        3,
    ),
    "transfer-done-without-count": (
        "moving = {add = ['teleport']}",
        "class P:\n    def teleport(self, pages):\n        self.beam(pages)\n        self.status = Status.SUCCESS\n",
        4,
    ),
    "status-only-generation-test": (
        "endpoints = {add = ['/v9/speak']}",
        "def test_it(client):\n    r = client.post('/v9/speak', json={})\n    assert r.status_code == 200\n",
        3,
    ),
}


@pytest.mark.parametrize("rule", sorted(VOCABULARY))
def test_a_team_adds_its_own_words_to_every_code_rule(rule: str, tmp_path: Path) -> None:
    words, code, line = VOCABULARY[rule]
    plain = f'profile = "strict"\nselect = ["{rule}"]\n'
    found = []
    for text in (plain, f"{plain}[rules.{rule}]\n{words}\n"):
        lay({"auditor.toml": text, "tests/test_code.py" if "test" in code else "code.py": code}, tmp_path)
        result = scan(ScanRequest((str(tmp_path),), load_config(str(tmp_path / "auditor.toml"))))
        found.append([(finding.rule, finding.span.start.line) for finding in result.findings])
    assert found == [[], [(rule, line)]]


def test_what_the_nearer_file_says_wins_although_it_is_the_default(tmp_path: Path) -> None:
    lay({"base.toml": 'profile = "strict"\nfail-on = "note"\nsubmodules = true\n'}, tmp_path)
    lay(
        {"auditor.toml": 'extends = ["base.toml"]\nprofile = "default"\nfail-on = "error"\nsubmodules = false\n'},
        tmp_path,
    )
    config = load_config(str(tmp_path / "auditor.toml"))
    assert (config.profile, config.fail_on, config.submodules) == ("default", "error", False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool]\nauditor = 5\n", "pyproject.toml:2:11: `tool.auditor`: a table is expected here, not a number"),
        ("[[tool.auditor]]\ngpu = 'H200'\n", "`tool.auditor`: a table is expected here, not a list"),
        ("tool = 5\n", "pyproject.toml:1:8: `tool`: a table is expected here, not a number"),
    ],
)
def test_a_table_that_is_none_is_no_configuration(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay({"pyproject.toml": text}, tmp_path)
    assert main(["scan", str(tmp_path), "--config", str(tmp_path / "pyproject.toml")]) == 2
    assert says in capsys.readouterr().err


def test_a_model_may_hold_what_the_estimate_does_not_read(tmp_path: Path) -> None:
    lines = ("[models.m]", "num_hidden_layers = 2", "n_group = 8", "rms_norm_eps = 1e-6", "intermediate_size = [1]")
    lay({"auditor.toml": "\n".join(lines)}, tmp_path)
    assert load_config(str(tmp_path / "auditor.toml")).models["m"]["n_group"] == 8
    model = {"num_hidden_layers": 2, "rms_norm_eps": 1e-6, "text_config": {"head_dim": 64}}
    jsonschema.validate({"models": {"m": model}}, schema())
    for wrong in ({"num_hidden_layers": "x"}, {"text_config": {"head_dim": []}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"models": {"m": wrong}}, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"rules": {"kv-pool-below-context": {"headroom": 0}}}, schema())


def test_the_catalogue_is_loaded_for_an_accelerator_only(tmp_path: Path) -> None:
    code = (
        "import sys; from auditor.config import load_config; load_config(sys.argv[1]);"
        "print('auditor.capacity.accelerators' in sys.modules)"
    )
    for text, loaded in (('fail-on = "never"\n', "False"), ('gpu = "H200"\n', "True")):
        lay({"auditor.toml": text}, tmp_path)
        command = [sys.executable, "-c", code, str(tmp_path / "auditor.toml")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded


def test_exclusions_that_leave_nothing_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay({"auditor.toml": 'exclude = ["*"]\n', "Dockerfile": "FROM lmsysorg/sglang:v0.5.19\n"}, tmp_path)
    assert main(["scan", str(tmp_path)]) == 0
    assert "`exclude` of the configuration takes out all 2 files that would be read" in capsys.readouterr().out
    lay({"auditor.toml": 'exclude = ["*.md"]\n', "Dockerfile": "FROM lmsysorg/sglang:v0.5.22\n"}, tmp_path)
    assert main(["scan", str(tmp_path)]) == 0
    assert "`exclude`" not in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", [["scan", ".", "--format", "json"], ["scan", "x.txt"], ["rules"]])
def test_a_full_disk_is_named(command: list[str], tmp_path: Path) -> None:
    lay({"x.txt": "x\n"}, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "auditor", *command],
            cwd=tmp_path,
            env=environment,
            stdout=full,
            stderr=-1,
            text=True,
        )
    assert (done.returncode, done.stderr) == (2, "auditor: cannot write the report: No space left on device\n")
