"""`auditor canary` against engines that leak, engines that are fixed, and engines that are in trouble."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from auditor.live.sentinels import CODE_LENGTH, Pieces, comes_back, foreign, sentinel, token_prompt
from auditor.model.records import dataclass, field, replace
from tests.engine import Cluster, Engine, Faults
from tests.live import PROXY_VARIABLES, Run, run, served, words

PREFILL = Engine(mode="prefill", context=3072, pools=(2048,))
DECODE = Engine(mode="decode", context=3072, pools=(6144,))
BOTH = Engine(context=3072, pools=(8192,))
NO_TOKENIZER = Faults(missing=("/tokenize", "/v1/tokenize"))
ALL = ("{front}", "--prefill", "{prefill}", "--decode", "{decode}")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("AUDITOR_TOKEN", raising=False)


def pair(version: str, prefill: int = 2048, decode: int = 6144, **changes: object) -> tuple[Engine, Engine]:
    """A prefill and a decode worker of one version with these pools."""
    return (
        replace(PREFILL, version=version, pools=(prefill,), **changes),  # type: ignore[arg-type]
        replace(DECODE, version=version, pools=(decode,), **changes),  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Row:
    """One cluster, one command line, one verdict. `fails` are the requests that must fail, `open` those that stay
    undecided; `None` leaves it open which ones."""

    name: str
    code: int
    engines: tuple[Engine, ...]
    fails: frozenset[str] | None = frozenset()
    open: frozenset[str] | None = frozenset()
    arguments: Sequence[str] = ALL
    faults: Faults = field(default_factory=Faults)
    front: Faults = field(default_factory=Faults)
    workers: Faults = field(default_factory=Faults)
    leaks: bool = False


OVER = frozenset({"limit", "limit + 1", "context - 48", "context - 1"})
LAST = OVER - {"context - 48"}
LONG = frozenset({"90 %", "limit - 1"})
SHORT = frozenset({"short"})
UNIFIED = ("{front}",)
AT_LIMITS = ("{front}", "--limit", "2042", "--context-length", "3072")

ROWS = (
    # What the releases do.
    Row("0.5.19 hands out the pages of others", 1, pair("0.5.19"), OVER, leaks=True),
    Row("0.5.11 does too", 1, pair("0.5.11"), OVER, leaks=True),
    Row("0.5.19 hands out low pages first, others' again", 1, pair("0.5.19", reuse="sorted"), OVER, leaks=True),
    Row("0.5.19 with a large pool still answers six lengths", 1, pair("0.5.19", 8192, 8192), LAST),
    Row("0.5.19 with equal small pools answers with nothing", 1, pair("0.5.19", 2048, 2048), OVER),
    Row("0.5.20 refuses after the forward pass", 0, pair("0.5.20")),
    Row("0.5.21 refuses at the doors", 0, pair("0.5.21")),
    Row("0.5.22 refuses", 0, pair("0.5.22")),
    Row("0.5.22 with room to spare refuses the last six lengths", 0, pair("0.5.22", 8192, 8192)),
    Row("one server refuses on every release", 0, (replace(BOTH, version="0.5.19"),), arguments=UNIFIED),
    Row("one server with a small pool refuses", 0, (replace(BOTH, pools=(2048,)),), arguments=UNIFIED),
    Row("roles that cut at different lengths leak on every release", 1, pair("0.5.22", auto_truncate=True), OVER,
        leaks=True),
    Row("one server that cuts answers what must be refused", 1, (replace(BOTH, auto_truncate=True),),
        LAST, arguments=UNIFIED),
    # Content under the limit.
    Row("pages that are not sent", 1, pair("0.5.22"), None, faults=Faults(short_transfer=4), leaks=True),
    Row("a model that cannot repeat a code decides nothing", 3, pair("0.5.22"), open=SHORT, faults=Faults(mute=True)),
    Row("a front that counts fewer tokens has cut", 3, pair("0.5.22"), open=SHORT, faults=Faults(wrong_usage=-9)),
    Row("a front that adds tokens", 3, pair("0.5.22"), open=SHORT, faults=Faults(wrong_usage=7)),
    # Status and body of refusals.
    Row("a refusal answered with 200 and an error object", 1, pair("0.5.22"), OVER,
        faults=Faults(ok_on_refusal='{"error": "too long"}')),
    Row("a refusal answered with 200 and nothing", 1, pair("0.5.22"), OVER, faults=Faults(ok_on_refusal="")),
    Row("a refusal with 500", 0, pair("0.5.22"), faults=Faults(refusal_status=500)),
    Row("a refusal with 413", 0, pair("0.5.22"), faults=Faults(refusal_status=413)),
    Row("overload is no refusal", 3, pair("0.5.22"), open=OVER, faults=Faults(refusal_status=503)),
    Row("a gateway's time-out is no refusal", 3, pair("0.5.22"), open=OVER, faults=Faults(refusal_status=504)),
    Row("rate limits are no refusal", 3, pair("0.5.22"), open=OVER, faults=Faults(refusal_status=429)),
    Row("a refusal that shows what stands in the pages", 1, pair("0.5.22"), OVER, leaks=True,
        faults=Faults(leak_in_error=True)),
    # How to ask.
    Row("tokens counted by usage find the leak", 1, pair("0.5.19"), OVER, leaks=True, front=NO_TOKENIZER,
        workers=NO_TOKENIZER),
    Row("tokens counted by usage pass where it is fixed", 0, pair("0.5.22"), front=NO_TOKENIZER, workers=NO_TOKENIZER),
    Row("the tokenizer of a worker will do", 0, pair("0.5.22"), front=NO_TOKENIZER),
    Row("no tokenizer and no usage", 3, pair("0.5.22"), open=SHORT, front=NO_TOKENIZER, workers=NO_TOKENIZER,
        faults=Faults(no_usage=True)),
    Row("chat finds the leak", 1, pair("0.5.19"), OVER, arguments=(*ALL, "--api", "chat"), leaks=True),
    Row("chat passes where it is fixed", 0, pair("0.5.22"), arguments=(*ALL, "--api", "chat")),
    Row("the native API finds the leak", 1, pair("0.5.19"), OVER, arguments=(*ALL, "--api", "generate"), leaks=True),
    Row("a front without completions is asked natively", 0, pair("0.5.22"), front=Faults(missing=("/v1/completions",))),
    Row("a front with chat alone", 0, pair("0.5.22"), front=Faults(missing=("/v1/completions", "/generate"))),
    Row("a front that streams unasked", 1, pair("0.5.19"), OVER, leaks=True, front=Faults(sse=True)),
    # Limits.
    Row("limits named by hand", 1, pair("0.5.19"), OVER, arguments=AT_LIMITS, leaks=True,
        front=Faults(missing=("/server_info", "/get_server_info"))),
    Row("the context of the front's models", 0, pair("0.5.22"), arguments=("{front}", "--limit", "2042"),
        front=Faults(missing=("/server_info", "/get_server_info"))),
    Row("no limit known", 3, pair("0.5.22"), open=None, arguments=("{front}",),
        front=Faults(missing=("/server_info", "/get_server_info"))),
    Row("a worker that does not answer leaves the limit open", 3, pair("0.5.22"), open=None,
        workers=Faults(slam=99)),
    Row("a front with a limit of its own", 3, pair("0.5.22"), open=LONG | {"plant 1", "plant 2", "plant 3", "plant 4"},
        faults=Faults(front_limit=1000)),
    Row("the front's limit named", 0, pair("0.5.22"), arguments=(*ALL, "--edge-limit", "1000"),
        faults=Faults(front_limit=1000)),
    Row("the front's limit named and not kept", 1, pair("0.5.22"), {"limit - 1"},
        arguments=(*ALL, "--edge-limit", "1000")),
    Row("a limit over the context is wrong usage", 2, pair("0.5.22"), arguments=(
        "{front}", "--limit", "4000", "--context-length", "3072")),
    # Trouble.
    Row("nothing answers", 3, pair("0.5.22"), open=None, front=Faults(slam=999), arguments=UNIFIED),
    Row("requests hang", 3, pair("0.5.22"), open=SHORT, front=Faults(paths=("/v1/completions",), half_open=True),
        arguments=(*ALL, "--timeout", "0.3")),
    Row("everything is 500", 3, pair("0.5.22"), open=SHORT, arguments=AT_LIMITS,
        front=Faults(paths=("/v1/completions", "/generate", "/v1/chat/completions"), status=500)),
    Row("a token is asked for", 3, pair("0.5.22"), open=SHORT,
        front=Faults(paths=("/v1/completions", "/generate", "/v1/chat/completions"), token="sesame")),
    Row("huge answers", 3, pair("0.5.22"), open=SHORT, front=Faults(
        paths=("/v1/completions", "/generate", "/v1/chat/completions"), huge=17 * 1024 * 1024)),
    Row("answers that are no JSON", 3, pair("0.5.22"), open=SHORT, front=Faults(
        paths=("/v1/completions", "/generate", "/v1/chat/completions"), body=b"<html>hello</html>")),
    Row("redirects elsewhere", 3, pair("0.5.22"), open=SHORT, front=Faults(
        paths=("/v1/completions", "/generate", "/v1/chat/completions"), redirect="http://127.0.0.2:9")),
    Row("undecided counts as fail", 1, pair("0.5.22"), open=SHORT, faults=Faults(mute=True),
        arguments=(*ALL, "--unknown", "fail")),
    Row("undecided counts as pass", 0, pair("0.5.22"), open=SHORT, faults=Faults(mute=True),
        arguments=(*ALL, "--unknown", "pass")),
    Row("a saved document is nothing to fly to", 2, pair("0.5.22"), arguments=("{file}",)),
)  # fmt: skip


def of_status(done: Run, status: str) -> set[str]:
    return {one["subject"] for one in done.report["results"] if one["status"] == status}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_canary_decides(row: Row, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(json.dumps(BOTH.server_info()), encoding="utf-8")
    cluster = Cluster(*(replace(engine) for engine in row.engines), faults=row.faults)
    with served(cluster, row.front, row.workers, row.workers) as where:
        arguments = [word.replace("{file}", str(tmp_path / "saved.json")) for word in row.arguments]
        arguments = words(arguments, where)
        timeout = () if "--timeout" in arguments else ("--timeout", "5")
        done = run("canary", *arguments, *timeout, "--format", "json", "--seed", "a fixed one")
    if row.code == 2:
        assert (done.code, done.report) == (2, {})
        return
    assert (done.code, done.report["exit_code"]) == (row.code, row.code)
    failed, undecided = of_status(done, "fail"), of_status(done, "undecided")
    if row.fails is None:
        assert failed & LONG
    else:
        assert failed == set(row.fails)
    assert row.open is None or undecided == set(row.open)
    assert row.leaks == ("foreign" in done.failed())


def test_at_and_over_the_limit_and_under_it_to_the_token() -> None:
    cluster = Cluster(*pair("0.5.22"))
    with served(cluster) as where:
        assert run("canary", *words(ALL, where), "--timeout", "5").code == 0
    assert cluster.requests == [512, 2041, 2041, 2041, 2041, 2042, 2043, 3024, 3071, 1836, 2041, 512]


def test_lengths_counted_by_usage_are_right_to_the_token_too() -> None:
    cluster = Cluster(*pair("0.5.22"))
    with served(cluster, NO_TOKENIZER, NO_TOKENIZER, NO_TOKENIZER) as where:
        assert run("canary", *words(ALL, where), "--timeout", "5").code == 0
    assert [length for length in cluster.requests if length > 1800][-6:] == [2042, 2043, 3024, 3071, 1836, 2041]


def test_rounds_repeat_the_prompts_over_the_limit() -> None:
    cluster = Cluster(*pair("0.5.22"))
    with served(cluster) as where:
        done = run("canary", *words(ALL, where), "--timeout", "5", "--rounds", "3", "--plants", "1", "--format", "json")
    assert (done.code, cluster.requests.count(2042)) == (0, 3)
    assert {one["name"] for one in done.report["requests"]} >= {"limit", "limit (2)", "limit (3)"}


def test_the_same_seed_sends_the_same_prompts() -> None:
    bodies = []
    for _ in range(2):
        with served(Cluster(*pair("0.5.22"))) as where:
            run("canary", *words(ALL, where), "--timeout", "5", "--seed", "again")
            bodies.append([request.body for request in where.front.seen])
    assert bodies[0] == bodies[1]


def test_text_is_shown_on_request_alone() -> None:
    for arguments, shown in (((), False), (("--show-text",), True)):
        for form in ("json", "terminal"):
            with served(Cluster(*pair("0.5.19"))) as where:
                done = run("canary", *words(ALL, where), "--timeout", "5", "--seed", "s", "--format", form, *arguments)
            assert ("lists the code" in done.out) is shown
            assert "other tenants' text" in done.err


def test_a_token_reaches_the_engine_and_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TOKEN", "sesame-4711")
    faults = Faults(token="sesame-4711")
    with served(Cluster(*pair("0.5.22")), faults, faults, faults) as where:
        done = run("canary", *words(ALL, where), "--timeout", "5")
    assert done.code == 0
    assert "sesame" not in done.out + done.err


def test_a_sentinel_is_in_every_page_of_a_prompt() -> None:
    record = list(range(100, 121))
    prompt = token_prompt(Pieces((1,), (7,)), record, [200] * 5, 1000)
    assert prompt is not None
    assert all(set(prompt[at : at + 64]) >= set(record) for at in range(0, 900, 64))


@pytest.mark.parametrize("length", [60, 61, 512, 4097])
def test_a_prompt_has_the_length_that_was_asked_for(length: int) -> None:
    prompt = token_prompt(Pieces((1,), (7, 8, 9)), [100] * 10, [200] * 5, length)
    assert prompt is not None
    assert (len(prompt), prompt[0], prompt[-5:], prompt.count(100)) == (length, 1, [200] * 5, (length - 6) // 10 * 10)


def test_a_prompt_too_short_for_its_parts_is_not_made() -> None:
    assert token_prompt(Pieces((1,), (7,)), [100] * 10, [200] * 5, 15) is None


def test_a_sentinel_comes_back_whole_or_begins_where_room_ends() -> None:
    own = sentinel("s", "p")
    assert len(own.code) == CODE_LENGTH
    assert comes_back(f"the code {own.code}.", own, 48)
    assert comes_back(f" {own.code[:5]}", own, 5)
    assert not comes_back(f" {own.code[:5]}", own, 48)
    assert not comes_back(own.code[:3], own, 5)
    assert not comes_back("", own, 5)


def test_every_sentinel_but_the_own_one_is_foreign() -> None:
    own, other = sentinel("s", "a"), sentinel("s", "b")
    assert foreign(f"{own.code} {other.code}", own, (own, other)) == (other,)
