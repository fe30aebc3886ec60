"""The incident, replayed: a pool of 681,280 tokens under a context of 1,048,576, on 0.5.19; and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.model.records import replace
from tests.engine import Cluster, Engine
from tests.live import PROXY_VARIABLES, Served, run, served, words
from tests.logs import gateway, requests

CONTEXT, POOL = 1_048_576, 681_280
LARGER = 2_039_936  # about 2.04 million tokens, in pages of 64
PREFILL = Engine(mode="prefill", version="0.5.19", context=CONTEXT, pools=(POOL,), page_size=64, model="org/million")
DECODE = replace(PREFILL, mode="decode", pools=(LARGER,))
PAIR = ("--prefill", "{prefill}", "--decode", "{decode}")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def exposed() -> Iterator[Served]:
    with served(Cluster(replace(PREFILL), replace(DECODE))) as where:
        yield where


@pytest.fixture
def repaired() -> Iterator[Served]:
    fixed = {"version": "0.5.22", "pools": (LARGER,)}
    with served(Cluster(replace(PREFILL, **fixed), replace(DECODE, **fixed))) as where:  # type: ignore[arg-type]
        yield where


def test_the_gate_fails_with_both_reasons(exposed: Served) -> None:
    done = run("gate", *words(PAIR, exposed), "--format", "json")
    assert (done.code, done.failed(), done.report["front_limit_tokens"]) == (1, {"version", "pool"}, 681_273)
    pool = [one for one in done.report["results"] if one["id"] == "pool" and one["status"] == "fail"]
    assert [one["subject"] for one in pool] == [exposed.prefill.url]
    assert "367,302 prompt lengths pass the front" in pool[0]["message"]


def test_the_gate_passes_after_the_fix(repaired: Served) -> None:
    done = run("gate", *words(PAIR, repaired), "--edge-limit", "1048569", "--format", "json")
    assert (done.code, done.failed(), done.undecided(), done.report["front_limit_tokens"]) == (
        0,
        set(),
        set(),
        1_048_569,
    )


@pytest.mark.slow
def test_the_canary_finds_the_text_of_others(exposed: Served) -> None:
    done = run("canary", *words(("{front}", *PAIR), exposed), "--format", "json", "--timeout", "60")
    assert done.code == 1
    assert {one["subject"] for one in done.report["results"] if one["id"] == "foreign"} >= {"limit", "limit + 1"}
    assert {one["subject"] for one in done.report["results"] if one["status"] == "pass"} >= {"90 %", "limit - 1"}


@pytest.mark.slow
def test_the_canary_passes_after_the_fix(repaired: Served) -> None:
    done = run("canary", *words(("{front}", *PAIR), repaired), "--format", "json", "--timeout", "60")
    assert done.code == 0
    lengths = [one["length"] for one in done.report["requests"] if one["kind"] == "over"]
    assert lengths == [1_048_570, 1_048_571, 1_048_575]


def test_latency_raises_the_alarm_on_the_traffic_of_the_incident(tmp_path: Path) -> None:
    path, fixed = tmp_path / "before.log", tmp_path / "after.log"
    lines = [gateway(*one) for one in requests(5000, leaks=lambda length: length >= POOL - 6)]
    path.write_text("\n".join(lines), encoding="utf-8")
    done = run("latency", str(path), "--format", "json")
    assert (done.code, [one["subject"] for one in done.report["results"] if one["status"] == "fail"]) == (
        1,
        ["glm 512k-1M"],
    )
    fixed.write_text("\n".join(gateway(*one) for one in requests(5000)), encoding="utf-8")
    assert run("latency", str(fixed)).code == 0
