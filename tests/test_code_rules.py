"""The code rules on small cases: each marked line is found and nothing else; the near misses beside them stay quiet."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from auditor.checks import CHECKS, code_facts, code_reading
from auditor.checks.base import CodeCheck
from auditor.checks.code_index import FileRecord, record
from auditor.checks.code_run import run_code_checks
from auditor.checks.code_words import StateWords
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.rules import Rule
from auditor.model.spans import SourceFile, Span
from auditor.rulebook import load_rules
from auditor.syntax.code_tree import CodeTree
from auditor.syntax.python_parts import PythonParts
from tests.trees import ROOT, SHARED

CODE_RULES = tuple(
    rule for rule in load_rules() if isinstance(next(check for check in CHECKS if check.name == rule.check), CodeCheck)
)
SLOTS = {"admit-on-negative-state", "release-without-invalidation", "handle-read-without-generation"}
LANGUAGES = {".py": "python", ".cs": "csharp"}
Found = list[tuple[str, int, str, str]]


def cases(folder: Path) -> list[object]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in LANGUAGES)
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in files]


def module(path: str, text: str) -> CodeModule:
    source = SourceFile(path, text)
    return CodeModule(source, LANGUAGES[Path(path).suffix], source.span(0, 0))


def findings(modules: list[CodeModule], rules: tuple[Rule, ...] = CODE_RULES) -> tuple[Found, list[Problem]]:
    matches, problems = run_code_checks(modules, rules, 1)
    found = [
        (match.span.path, match.span.start.line, rule.id, match.confidence or rule.confidence)
        for rule, match in matches
        if match.outcome != "split"
    ]
    return sorted(found), problems


def judged(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    marks = [
        (number, match.group(1))
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.search(r"expect: ([a-z-]+)", line))
    ]
    rules = {rule for _, rule in marks} or ({path.parent.name} if path.suffix == ".py" else SLOTS)
    found, problems = findings([module(path.name, text)])
    assert [(line, rule) for _, line, rule, _ in found if rule in rules] == marks
    assert problems == []


@pytest.mark.parametrize("path", cases(ROOT / "fixtures" / "code"))
def test_marked_lines_are_found_and_the_near_misses_are_quiet(path: Path) -> None:
    judged(path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared material is not at hand: its snippets are not judged")
@pytest.mark.parametrize("path", cases(SHARED / "truth" / "snippets") if SHARED.is_dir() else [])
def test_shared_snippets(path: Path) -> None:
    judged(path)


REQUEST = """class Req:
    def __init__(self):
        self.finished_reason = None
        self.to_finish = None

    def set_finish_with_abort(self, message):
        self.to_finish = message

    def finished(self):
        return self.finished_reason is not None

    def update(self):
        if self.to_finish:
            self.finished_reason = self.to_finish
"""


def test_the_proof_of_a_door_may_stand_in_other_files() -> None:
    doors = (
        "from req import Req\n\n\nclass PrefillQueue:\n    def add(self, req: Req):\n        self.queue.append(req)\n"
    )
    found, _ = findings([module("req.py", REQUEST), module("queue.py", doors)])
    assert found == [("queue.py", 6, "split-verdict", "high")]


def test_a_helper_of_a_helper_in_a_third_file_guards_the_door() -> None:
    helpers = "def is_aborted(req):\n    return req.to_finish is not None\n\n\n"
    helpers += "def is_refused(req):\n    return is_aborted(req)\n"
    doors = (
        "from req import Req\nfrom helpers import is_refused\n\n\nclass PrefillQueue:\n    def add(self, req: Req):\n"
        "        if is_refused(req):\n            return\n        self.queue.append(req)\n"
    )
    found, _ = findings([module("req.py", REQUEST), module("queue.py", doors), module("helpers.py", helpers)])
    assert found == []


def test_a_function_that_only_mentions_the_verdict_is_no_guard() -> None:
    """Of the engine's release 0.5.21 every small function that had the field in it was taken for one."""
    helpers = "class Desk:\n    def note(self, req):\n        self.log(req.to_finish)\n        return len(self.lines)\n"
    doors = (
        "from req import Req\n\n\nclass PrefillQueue:\n    def add(self, req: Req):\n        self.desk.note(req)\n"
        "        self.queue.append(req)\n"
    )
    found, _ = findings([module("req.py", REQUEST), module("queue.py", doors), module("desk.py", helpers)])
    assert found == [("queue.py", 7, "split-verdict", "high")]


@pytest.mark.parametrize("inherits", [True, False])
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_worker_processes_find_the_same(profile: str, inherits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if inherits and multiprocessing.get_start_method() != "fork":
        pytest.skip("worker processes of this system begin empty")
    folder = ROOT / "fixtures" / "code"
    paths = sorted(path for path in folder.rglob("*") if path.suffix in LANGUAGES)
    modules = [module(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]
    alone = run_code_checks(modules, CODE_RULES, 1, profile)
    monkeypatch.setattr(code_reading, "SEARCHED_BYTES", 0)
    monkeypatch.setattr(code_reading, "PARSED_BYTES", 0)
    monkeypatch.setattr(code_reading, "_forks", lambda: inherits)
    assert run_code_checks(modules, CODE_RULES, 2, profile) == alone
    assert alone[0] != []


@pytest.mark.parametrize("line", ["# Licensed to whom it may concern; done, .DONE, class X\n", "\n", '"done, .DONE"\n'])
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a_long_file_without_a_statement_is_read(profile: str, line: str) -> None:
    empty = module("__init__.py", "# def finished(self): return self.a\n" + line * 4000)
    others = [
        module("req.py", REQUEST),
        module("queue.py", "def f(self, r):\n    if r.state == State.DONE:\n        pass\n"),
    ]
    assert run_code_checks([*others, empty], CODE_RULES, 1, profile)[1] == []
    assert PythonParts(empty.source).functions(lambda data, start, end: True) is not None


def test_a_bug_of_ours_in_one_file_costs_that_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tree: CodeTree, states: StateWords) -> FileRecord:
        if tree.source.path == "other.py":
            raise KeyError("x")
        return record(tree, states)

    modules = [module("req.py", REQUEST), module("other.py", REQUEST.replace("class Req", "class Other"))]
    whole = run_code_checks(modules, CODE_RULES, 1)[0]
    monkeypatch.setattr(code_facts, "record", fails)
    found, problems = run_code_checks(modules, CODE_RULES, 1)
    assert {(problem.path, problem.kind, problem.reason) for problem in problems} == {
        ("other.py", "internal", "the index of the code rules failed: KeyError: 'x'")
    }
    assert [match for _, match in found if match.span.path == "req.py"] == [
        match for _, match in whole if match.span.path == "req.py"
    ]


def test_the_default_profile_finds_all_that_is_of_high_confidence() -> None:
    folder = ROOT / "fixtures" / "code"
    paths = sorted(path for path in folder.rglob("*.py"))
    modules = [module(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]

    def high(profile: str) -> set[tuple[str, Span]]:
        found, _ = run_code_checks(modules, CODE_RULES, 1, profile)
        return {(rule.id, match.span) for rule, match in found if match.confidence == "high" and rule.floor}

    assert high("default") == high("strict") != set()


def test_a_flag_that_another_class_writes_is_a_second_verdict() -> None:
    request = REQUEST.replace("def set_finish_with_abort(self, message):\n        self.to_finish = message", "pass")
    request = request.replace("    pass\n", "")
    writer = "class Desk:\n    def abort(self, req):\n        req.to_finish = 'aborted'\n"
    door = "class Pool:\n    def fill(self, req):\n        if not req.finished():\n            self.pool.reserve(req)\n"
    found, _ = findings([module("a.py", request), module("b.py", writer), module("c.py", door)])
    assert found == [("c.py", 3, "admit-on-negative-state", "high")]


def test_an_enumeration_of_a_dependency_is_known_by_its_import() -> None:
    code = (
        "from vllm.v1.request import RequestStatus\n\n\nclass Connector:\n    def request_finished(self, request):\n"
        "        if request.status == RequestStatus.FINISHED_ABORTED:\n            return\n"
        "        self.sends.add(request.request_id)\n"
    )
    assert findings([module("connector.py", code)])[0] == [("connector.py", 6, "admit-on-negative-state", "high")]
    renamed = code.replace("import RequestStatus", "import RequestStatus as RS").replace("RequestStatus.F", "RS.F")
    assert findings([module("connector.py", renamed)])[0] == [("connector.py", 6, "admit-on-negative-state", "high")]
    other = code.replace("vllm.v1.request", "somewhere.else_")
    assert findings([module("connector.py", other)])[0] == []


STATES = """import enum


class Phase(enum.Enum):
    NEW = 0
    DONE = 1
    FAILED = 2
    REJECTED = 3


SOME = frozenset({Phase.DONE, Phase.FAILED})
OVER = SOME | {Phase.REJECTED}
"""


@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize(
    ("head", "name", "hidden"),
    [
        ("from pkg.states import SOME", "SOME", True),
        ("from .states import SOME", "SOME", True),
        ("from pkg import SOME", "SOME", True),
        ("from pkg import states", "states.SOME", True),
        ("import pkg.states as ends", "ends.SOME", True),
        ("from pkg.states import OVER", "OVER", False),
        ("from pkg import states", "states.OVER", False),
        ("from other import SOME", "SOME[0]", False),
    ],
)
def test_a_named_set_of_another_file_is_held_against_its_enumeration(
    head: str, name: str, hidden: bool, profile: str
) -> None:
    door = f"{head}\n\n\ndef fill(job, queue):\n    if job.phase not in {name}:\n        queue.append(job)\n"
    modules = [module("pkg/states.py", STATES), module("pkg/door.py", door)]
    matches, problems = run_code_checks(modules, CODE_RULES, 1, profile)
    assert [(m.span.path, m.span.start.line, m.confidence) for _, m in matches] == [("pkg/door.py", 5, "high")] * hidden
    assert problems == []


def test_two_sets_of_one_name_prove_nothing_of_a_third_file() -> None:
    other = STATES.replace("SOME = frozenset({Phase.DONE, Phase.FAILED})", "SOME = frozenset({Phase.DONE})")
    door = "from far import SOME\n\n\ndef fill(job, queue):\n    if job.phase not in SOME:\n        queue.append(job)\n"
    modules = [module("a/states.py", STATES), module("b/states.py", other), module("door.py", door)]
    assert findings(modules) == ([], [])


def test_only_the_part_of_a_large_file_that_matters_is_parsed_and_lines_stay_true() -> None:
    filler = "".join(f"\n\ndef filler_{n}(x):\n    return [x, {n}]\n" for n in range(200))
    text = filler + '\n\nTEXT = """\nclass Fake:\n    def release(self, i):\n        self.free.append(i)\n"""\n'
    text += "\n\nclass Pool:\n    def release(self, i):\n        self.free_slots.append(i)\n" + filler
    line = text.split("self.free_slots.append")[0].count("\n") + 1
    assert findings([module("pool.py", text)])[0] == [("pool.py", line, "release-without-invalidation", "medium")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "print 'old'\n\n\nclass P:\n    def release(self, i):\n        self.free.append(i)\n", id="Python 2"
        ),
        pytest.param("{% if x %}\nclass P:\n    def release(self, i):\n        self.free.append(i)\n", id="template"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_a_problem_with_a_line(text: str) -> None:
    found, problems = findings([module("old.py", text)])
    assert found == []
    assert [(problem.path, problem.kind, problem.span is not None) for problem in problems] == [
        ("old.py", "unread", True)
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("    return " + "not " * 1000 + "job.finished()\n", id="operators"),
        pytest.param("    return " + "(" * 1000 + "1" + ")" * 1000 + "\n", id="brackets"),
        pytest.param(
            "".join("    " * (n + 1) + "if job.finished():\n" for n in range(90)) + "    " * 91 + "pass\n", id="blocks"
        ),
        pytest.param("    return job" + ".a" * 5000 + ".finished()\n", id="attributes"),
        pytest.param(
            "    if job.finished():\n        pass\n" + "    elif job.finished():\n        pass\n" * 800, id="elif"
        ),
    ],
)
def test_deep_nesting_is_bounded(body: str) -> None:
    text = "class P:\n  def release(self, i):\n    self.free.append(i)\n\n\ndef f(job, queue):\n" + body
    _, problems = findings([module("deep.py", text)])
    assert all(problem.kind in ("limit", "unread") for problem in problems)


def test_a_function_of_ten_thousand_lines_takes_seconds_at_most() -> None:
    lines = "".join(f"    if job{n}.finished():\n        return\n    queue.append(job{n})\n" for n in range(3400))
    found, problems = findings([module("long.py", "def fill(queue):\n" + lines)], CODE_RULES[:1])
    assert problems == []
    assert len(found) == 3400


VERSIONS = [
    ("0.5.11", True),
    ("0.5.19", True),
    ("0.5.20", True),
    ("0.5.21", False),
    ("0.5.22", False),
    ("0.5.23", False),
]
DOORS = {"PrefillBootstrapQueue.add", "DecodePreallocQueue.add"}


@pytest.mark.slow
@pytest.mark.parametrize(("version", "open_doors"), VERSIONS)
def test_both_doors_of_the_engine_are_found_and_none_once_they_are_guarded(
    version: str, open_doors: bool, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path), f"sglang=={version}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"sglang {version} could not be downloaded, so the doors were NOT checked: {done.stderr[-200:]}")
    wheel = next(tmp_path.glob("*.whl"))
    tree = tmp_path / "tree"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree, [name for name in archive.namelist() if name.endswith(".py")])
    modules = [
        module(str(path.relative_to(tree)), path.read_bytes().decode("utf-8", "replace"))
        for path in sorted(tree.rglob("*.py"))
    ]
    matches, _ = run_code_checks(modules, tuple(rule for rule in CODE_RULES if rule.id == "split-verdict"), 1)
    found = {match.scope for _, match in matches if match.outcome == "unguarded-door" and match.confidence == "high"}
    shutil.rmtree(tree)
    assert found == (DOORS if open_doors else set())
