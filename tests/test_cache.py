"""What is known of files from an earlier audit: the same answers, for less, and never a stale or a foreign one."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import auditor.cache as cache_module
import auditor.scan as scan_module
from auditor.cache import FORMAT, FactCache, cache_of
from auditor.checks import code_reading
from auditor.checks.base import Match
from auditor.checks.code_run import KINDS, run_code_checks
from auditor.cli import main
from auditor.model.facts import CodeModule, Related
from auditor.model.findings import Edit
from auditor.model.spans import Position, SourceFile, Span
from auditor.packing import digest, pack, unpack
from auditor.rulebook import load_rules
from auditor.scan import ScanRequest, scan, shown
from auditor.walk import LANGUAGES

ROOT = Path(__file__).parent.parent
CODE = ROOT / "fixtures" / "code"

REQUEST = """class Request:
    def __init__(self):
        self.finished_reason = None
        self.to_finish = None

    def finished(self):
        return self.finished_reason is not None

    def check_finished(self):
        if self.to_finish is not None:
            self.finished_reason = self.to_finish

    def abort(self, message):
        self.to_finish = message
"""
QUEUE = """class Queue:
    def pump(self, requests):
        for request in requests:
            if not request.finished():
                self.waiting.append(request)
"""


def modules_of(folder: Path) -> list[CodeModule]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in LANGUAGES:
            data = path.read_bytes()
            source = SourceFile(str(path.relative_to(folder)), data.decode(), data)
            found.append(CodeModule(source, LANGUAGES[path.suffix], source.span(0, 0)))
    return found


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all modules that are really looked at from here on."""
    seen: list[str] = []
    whole = code_reading.spread

    def spread(work: Any, items: Sequence[Any], *rest: Any) -> list[Any]:
        seen.extend((item[0] if isinstance(item, tuple) else item).source.path for item in items)
        return whole(work, items, *rest)

    monkeypatch.setattr(code_reading, "spread", spread)
    return seen


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a_second_run_gives_the_same_and_looks_at_nothing(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules, rules, place = modules_of(CODE), shown(load_rules(), profile), str(tmp_path / "facts.json")
    plain = run_code_checks(modules, rules, 1, profile)
    first = FactCache(place, "test")
    assert run_code_checks(modules, rules, 1, profile, first) == plain
    first.save()
    seen = counted(monkeypatch)
    assert run_code_checks(modules_of(CODE), rules, 1, profile, FactCache(place, "test")) == plain
    assert (seen, plain[0] != []) == ([], True)


def test_only_what_changed_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [rule for rule in load_rules() if rule.id == "admit-on-negative-state"]
    place = str(tmp_path / "facts.json")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "request.py").write_text(REQUEST)
    (tree / "queue.py").write_text(QUEUE)
    for number in range(5):
        (tree / f"other{number}.py").write_text("X = 1\n")

    def run() -> list[tuple[str, int]]:
        cache = FactCache(place, "test")
        found, problems = run_code_checks(modules_of(tree), rules, 1, "default", cache)
        cache.save()
        assert problems == []
        return sorted((match.span.path, match.span.start.line) for _, match in found)

    assert run() == [("queue.py", 4)]
    seen = counted(monkeypatch)
    (tree / "queue.py").write_text("# moved\n" + QUEUE)
    assert run() == [("queue.py", 5)]
    assert set(seen) == {"queue.py"}
    seen.clear()
    # What makes the test dangerous stands in another file: the answer for a file that did not change is another one.
    (tree / "request.py").write_text(
        REQUEST.replace("is not None\n\n    def check", "is not None or self.to_finish\n\n    def check")
    )
    assert run() == []
    assert {"queue.py", "request.py"} <= set(seen)
    (tree / "request.py").write_text(REQUEST)
    assert run() == [("queue.py", 5)]
    (tree / "queue.py").unlink()
    assert run() == []
    assert "queue.py" not in json.loads(Path(place).read_text())[2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 100_000,
        json.dumps([FORMAT, "another version", {}, {}]).encode(),
        json.dumps([FORMAT, "test", [], {}]).encode(),
        json.dumps([FORMAT, "test", {"queue.py": 3}, {"stage": 4}]).encode(),
    ],
)
def test_a_damaged_or_foreign_cache_is_no_cache(content: bytes, tmp_path: Path) -> None:
    place = tmp_path / "facts.json"
    place.write_bytes(content)
    modules, rules = modules_of(CODE), shown(load_rules(), "default")
    cache = FactCache(str(place), "test")
    assert run_code_checks(modules, rules, 1, "default", cache) == run_code_checks(modules, rules, 1, "default")
    cache.save()
    assert json.loads(place.read_text())[1] == "test"


def test_an_answer_that_cannot_be_read_is_found_out_again(tmp_path: Path) -> None:
    modules, rules, place = modules_of(CODE), shown(load_rules(), "default"), tmp_path / "facts.json"
    cache = FactCache(str(place), "test")
    plain = run_code_checks(modules, rules, 1, "default", cache)
    cache.save()
    known = json.loads(place.read_text())
    known[3] = {stage: {path: ["os.system", "true"] for path in answers} for stage, answers in known[3].items()}
    place.write_text(json.dumps(known))
    assert run_code_checks(modules, rules, 1, "default", FactCache(str(place), "test")) == plain


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = FactCache(str(tmp_path / "file" / "facts.json"), "test")
    cache.learn("stage", [SourceFile("a.py", "x")], [True])
    cache.save()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_trees_and_settings_have_caches_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    places = {cache_of(root, profile).place for root in ("a", "b") for profile in ("default", "strict")}
    assert len(places) == 4
    assert all(Path(place).parent == tmp_path / "auditor" for place in places)


def test_what_nobody_audits_any_more_is_removed(tmp_path: Path) -> None:
    old, young = tmp_path / "facts-old.json", tmp_path / "facts-young.json"
    for path in (old, young):
        path.write_text("[]")
    then = time.time() - (cache_module.KEPT_DAYS + 1) * 86_400
    os.utime(old, (then, then))
    cache = FactCache(str(tmp_path / "facts-new.json"), "test")
    cache.learn("stage", [SourceFile("a.py", "x")], [True])
    cache.save()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["facts-new.json", "facts-young.json"]


def test_the_audit_keeps_facts_of_large_trees_alone_and_not_when_it_must_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "request.py").write_text(REQUEST)
    (tree / "queue.py").write_text(QUEUE)

    def kept() -> list[Path]:
        return sorted(tmp_path.glob("cache/auditor/facts-*.json"))

    def found(*options: str) -> str:
        main(["scan", str(tree), "--format", "json", *options])
        return capsys.readouterr().out

    plain = found()
    assert kept() == []
    monkeypatch.setattr(scan_module, "CACHED_BYTES", 0)
    assert found("--no-cache") == plain
    assert kept() == []
    assert found() == plain
    assert len(kept()) == 1
    assert found() == plain
    assert "admit-on-negative-state" in plain
    found("--profile", "strict")
    assert len(kept()) == 2
    assert scan(ScanRequest((str(tree),))).findings != ()
    assert len(kept()) == 2  # a caller of the library asks for it


PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    PLAIN | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(PLAIN, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
POSITIONS = st.builds(Position, st.integers(0, 9), st.integers(1, 9), st.integers(1, 9))
SPANS = st.builds(Span, st.text(max_size=4), POSITIONS, POSITIONS)
MATCHES = st.builds(
    Match,
    st.text(max_size=4),
    SPANS,
    st.text(max_size=4),
    values=st.dictionaries(st.text(max_size=3), PLAIN, max_size=3),
    related=st.lists(st.builds(Related, SPANS, st.text(max_size=4)), max_size=2).map(tuple),
    edits=st.lists(st.builds(Edit, SPANS, st.text(max_size=4)), max_size=2).map(tuple),
)


@given(VALUES | MATCHES)
def test_what_was_packed_comes_back(value: Any) -> None:
    text = json.dumps(pack(value))
    assert unpack(json.loads(text), KINDS) == value
    assert digest(value) == digest(unpack(json.loads(text), KINDS))


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=2)))
def test_nothing_else_than_a_value_or_an_error_comes_out_of_a_cache(value: Any) -> None:
    with suppress(ValueError):  # any other error fails the test
        assert not isinstance(unpack(value, KINDS), type)


def test_the_order_of_a_set_says_nothing_and_everything_else_does() -> None:
    assert digest(frozenset("abcdef")) == digest(frozenset("fedcba"))
    values: list[Any] = [
        ("a",),
        ["a"],
        frozenset("a"),
        {"a": None},
        "a",
        b"a",
        re.compile("a"),
        re.compile(b"a"),
        1,
        None,
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(re.compile("a")) != digest(re.compile("a", re.IGNORECASE))


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a value of the type function"):
        pack(lambda: None)
