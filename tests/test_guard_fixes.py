"""The repair of negative guards: which are rewritten, to what, which are left and why, and what stays as it was."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.cli import main
from auditor.fixing import rewrites, write_rewrites
from auditor.model.findings import Finding, ScanResult
from tests.trees import ROOT, lay, scan_tree

RULE = "admit-on-negative-state"
CASES = sorted(path for path in (ROOT / "fixtures" / "fixes").iterdir() if (path / "after").is_dir())
LEFT = ROOT / "fixtures" / "fixes" / "left-alone" / "before"
REQUEST = (ROOT / "fixtures" / "fixes" / "split-verdict" / "before" / "request.py").read_text(encoding="utf-8")
DOOR = """from request import Request


def add(queue, req: Request):
    if not req.finished():
        queue.append(req)
"""


def guards(result: ScanResult) -> list[Finding]:
    return [finding for finding in result.active if finding.rule == RULE]


def repaired(files: dict[str, str | bytes], tmp_path: Path) -> dict[str, bytes]:
    """The files of a tree after the fix; a second one must find nothing to do."""
    lay(files, tmp_path)
    write_rewrites(rewrites(scan_tree(tmp_path)), str(tmp_path))
    assert rewrites(scan_tree(tmp_path)) == []
    return {name: (tmp_path / name).read_bytes() for name in files}


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_each_shape_is_rewritten_and_the_finding_is_gone(case: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(case / "before", tree)
    assert guards(scan_tree(tree)) != []
    for _ in range(2):  # the second time there is nothing left to change
        assert main(["scan", str(tree), "--fix", "--quiet", "--no-cache", "--fail-on", "never"]) == 0
        for path in sorted((case / "after").iterdir()):
            assert (tree / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
    assert guards(scan_tree(tree)) == []


def test_what_is_not_clear_is_left_and_the_remedy_says_why(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(LEFT, tree)
    result = scan_tree(tree)
    assert rewrites(result) == []
    expected = {
        (path.name, number, match.group(1).strip())
        for path in sorted(LEFT.iterdir())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := re.search(r"# left: (.*)", line))
    }
    remedies = {(finding.span.path, finding.span.start.line): finding.remedy for finding in guards(result)}
    assert set(remedies) == {(path, line) for path, line, _ in expected}
    assert {entry for entry in expected if entry[2] not in remedies[entry[0], entry[1]]} == set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class Q:\r\n\tdef add(self, req: Request):\r\n\t\tif not req.finished():\r\n\t\t\t"
         "self.waiting.append(req)\r\n", "req.is_admissible()"),
        ("class Q:\n  # é\n  @hook('ü')\n  async def add(self, req: Request):\n    é = 'ä𝄞'; "
         "self.waiting.append(req) if not req.finished() else None\n", "req.is_admissible()"),
        ('class Q:\n    def add(self, req: Request):\n        """one\ntwo\n        three"""\n        x = """\n"""\n'
         "        if a and \\\n  not req.finished():\n            self.waiting.append(req)", "req.is_admissible()"),
        ("class Q:\n    def add(self, req: Request):\n# at the edge\n        if not req.finished(): "
         "self.waiting.append(req)\n", "req.is_admissible()"),
    ],
    ids=["CRLF and tabs", "non-ASCII and decorator", "strings and continuation", "comment at the edge"],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_every_byte_outside_of_the_span_stays(before: str, after: str, encoding: str, tmp_path: Path) -> None:
    head = "from request import Request\n\n\n"
    raw = (head + before).encode(encoding)
    files = repaired({"request.py": REQUEST, "queue_.py": raw}, tmp_path)
    assert files["queue_.py"] == raw.replace(b"not req.finished()", after.encode())
    assert files["request.py"] == REQUEST.encode()


def test_a_property_and_a_class_above_are_followed(tmp_path: Path) -> None:
    text = REQUEST.replace("    def is_admissible", "    @property\n    def is_admissible")
    text += "\n\nclass Chat(Request):\n    pass\n"
    door = "from request import Chat\n\n\ndef add(queue, chat: Chat):\n    if not(chat.finished())and queue:\n"
    door += "        queue.append(chat)\n"
    files = repaired({"request.py": text, "door.py": door}, tmp_path)
    assert files["door.py"] == door.replace("not(chat.finished())", "chat.is_admissible ").encode()


def test_a_predicate_of_the_owner_stands_in_for_a_state(tmp_path: Path) -> None:
    text = (
        "from enum import Enum\n\n\nclass State(Enum):\n    NEW = 0\n    HELD = 1\n    DONE = 2\n    REJECTED = 3\n\n\n"
        "class Job:\n    state: State\n\n    @property\n    def is_runnable(self):\n"
        "        return self.state in (State.NEW, State.HELD)\n\n\n"
        "def add(queue, job: Job):\n    if job.state != State.DONE:\n        queue.append(job)\n"
    )
    files = repaired({"jobs.py": text}, tmp_path)
    assert files["jobs.py"] == text.replace("job.state != State.DONE", "job.is_runnable").encode()


def test_states_are_rewritten_in_csharp_under_the_strict_profile(tmp_path: Path) -> None:
    before = """public enum State { New, Ready, Finished, Rejected }
public class Desk {
    bool Shown(Order order) => order.State == State.Ready;
    void Take(Order order) { if (order.State != State.Finished) { _queue.Enqueue(order); } }
    void Early(Order order) { if (order.State == State.Finished) return; _queue.Enqueue(order); }
    void Pattern(Order order) { if (order.State is not State.Finished) _queue.Enqueue(order); }
    void Counted(Order order) { if (order.State == State.Finished) { _over++; return; } _queue.Enqueue(order); }
    void Noted(Order order) { if (order.State != /* no */ State.Finished) _queue.Enqueue(order); }
}
"""
    after = before.replace("(order.State != State.Finished)", "(order.State == State.Ready)")
    after = after.replace("(order.State == State.Finished) return", "(order.State != State.Ready) return")
    after = after.replace("(order.State is not State.Finished)", "(order.State is State.Ready)")
    lay({"Desk.cs": before}, tmp_path)
    command = ["scan", str(tmp_path), "--fix", "--quiet", "--no-cache", "--fail-on", "never"]
    assert main(command) == 0
    assert (tmp_path / "Desk.cs").read_text(encoding="utf-8") == before
    for _ in range(2):
        assert main([*command, "--profile", "strict"]) == 0
        assert (tmp_path / "Desk.cs").read_text(encoding="utf-8") == after


@pytest.mark.parametrize(
    "body",
    [
        "return not self.finished() or self.to_finish is None",  # either will do
        "return self.to_finish is None",  # ended things pass
        "return self.finished_reason is None and self.to_finish",  # the wrong way round
        "return self.to_finish is None and self.finished()",
    ],
)
def test_a_predicate_that_does_not_prove_both_verdicts_is_not_used(body: str, tmp_path: Path) -> None:
    text = re.sub(r"return not self\.finished\(\) and .*", body, REQUEST)
    assert repaired({"request.py": text, "door.py": DOOR}, tmp_path)["door.py"] == DOOR.encode()


@pytest.mark.parametrize("decorator", ["@functools.cache", "@cached_property", "@staticmethod"])
def test_a_kept_answer_is_no_answer(decorator: str, tmp_path: Path) -> None:
    text = REQUEST.replace("    def is_admissible", f"    {decorator}\n    def is_admissible")
    assert repaired({"request.py": text, "door.py": DOOR}, tmp_path)["door.py"] == DOOR.encode()


def test_findings_with_edits_travel_between_processes() -> None:
    found = guards(scan_tree(CASES[0] / "before"))
    assert any(finding.edits for finding in found)
    assert pickle.loads(pickle.dumps(found)) == found


def test_libcst_is_imported_for_a_guard_that_may_be_rewritten_and_for_nothing_else(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom auditor.cli import main\nmain(['scan', sys.argv[1], '--no-cache', '--quiet'])\n"
        "print('libcst' in sys.modules, file=sys.stderr)\n"
    )
    lay({"a/request.py": REQUEST, "a/door.py": DOOR.replace("not req.finished()", "req.is_admissible()")}, tmp_path)
    for tree, imported in ((tmp_path / "a", "False"), (CASES[0] / "before", "True")):
        done = subprocess.run([sys.executable, "-c", code, str(tree)], capture_output=True, text=True, check=False)
        assert done.stderr.strip().splitlines()[-1] == imported


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_a_change_in_the_spans_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(CASES[0] / "before", tree)
    edits = [edit for finding in guards(scan_tree(tree)) for edit in finding.edits]
    lines = {line for edit in edits for line in range(edit.span.start.line, edit.span.end.line + 1)}
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    assert main(["scan", str(tree), "--fix", "--quiet", "--no-cache", "--fail-on", "never"]) == 0
    done = subprocess.run(["git", "diff", "-U0"], cwd=tree, capture_output=True, text=True, check=True)
    removed: set[int] = set()
    for start, count in re.findall(r"(?m)^@@ -(\d+)(?:,(\d+))? ", done.stdout):
        removed.update(range(int(start), int(start) + int(count or 1)))
    assert removed == lines


def test_the_predicate_may_stand_in_the_file_of_the_guard(tmp_path: Path) -> None:
    """Its body is looked into then, and the test is still the call that is written."""
    door = DOOR.replace("from request import Request\n", "")
    after = repaired({"one.py": REQUEST + door}, tmp_path)["one.py"].decode()
    assert after == REQUEST + door.replace("not req.finished()", "req.is_admissible()")
