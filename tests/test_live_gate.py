"""`auditor gate` against engines of every version and in every kind of trouble."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from auditor.model.records import dataclass, field, replace
from tests.engine import Cluster, Engine, Faults, serve
from tests.live import PROXY_VARIABLES, run, served, words

GOOD = Engine(version="0.5.22", context=2048, pools=(4096,))
PREFILL = replace(GOOD, mode="prefill")
DECODE = replace(GOOD, mode="decode")
PAIR = ("--prefill", "{prefill}", "--decode", "{decode}")
FAST = ("--timeout", "2")
SLIDING = [{"memory_usage": {"token_capacity": 4096, "token_capacity_swa": 1024}}]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("AUDITOR_TOKEN", raising=False)


@dataclass(frozen=True)
class Row:
    """One engine, one command line, one verdict. `failed` and `undecided`: all checks that end so."""

    name: str
    code: int
    engine: Engine
    decode: Engine | None = None
    arguments: Sequence[str] = ("{prefill}",)
    failed: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()
    faults: Faults | None = None
    decode_faults: Faults | None = None
    says: str = ""
    limit: int | None = field(default=None)


def one(name: str, code: int, *failed: str, says: str = "", **changes: object) -> Row:
    """A row of one worker; `undecided` for exit code 3."""
    arguments = changes.pop("arguments", ("{prefill}",))
    faults = changes.pop("faults", None)
    limit = changes.pop("limit", None)
    also = changes.pop("also_undecided", ())
    checks = frozenset(failed)
    undecided = checks if code == 3 else frozenset(also)  # type: ignore[call-overload]
    return Row(
        name,
        code,
        replace(GOOD, **changes),
        None,
        arguments,
        checks if code == 1 else frozenset(),
        undecided,  # type: ignore[arg-type]
        faults,
        None,
        says,
        limit,  # type: ignore[arg-type]
    )


def two(name: str, code: int, *failed: str, says: str = "", **changes: object) -> Row:
    """A row of a prefill and a decode worker; `decode` holds what differs on decode."""
    differs = changes.pop("decode", {})
    arguments = changes.pop("arguments", PAIR)
    faults = changes.pop("faults", None)
    decode_faults = changes.pop("decode_faults", None)
    also = changes.pop("also_undecided", ())
    checks = frozenset(failed)
    undecided = checks if code == 3 else frozenset(also)  # type: ignore[call-overload]
    return Row(
        name,
        code,
        replace(PREFILL, **changes),
        replace(DECODE, **{**changes, **differs}),
        arguments,  # type: ignore[arg-type]
        checks if code == 1 else frozenset(),
        undecided,
        faults,
        decode_faults,
        says,  # type: ignore[arg-type]
    )


ROWS = (
    # Versions.
    one("0.5.22 with room to spare passes", 0, limit=2041),
    one("0.5.23 passes", 0, version="0.5.23"),
    one("0.5.21 is below the floor", 1, "version", version="0.5.21", says="guards at the door"),
    one("0.5.20 is below the floor", 1, "version", version="0.5.20", says="forward pass"),
    one("0.5.19 has no guard", 1, "version", version="0.5.19", says="has no guard"),
    one("0.4.6 has no rank pools and no new endpoint", 1, "version", version="0.4.6.post5"),
    one("a local build of the floor passes", 0, version="0.5.22+cu129"),
    one("a post release of the floor passes", 0, version="0.5.22.post1"),
    one(
        "a development build before the floor is below it", 1, "version", version="0.5.22.dev3+gabc", says="pre-release"
    ),
    one("a development build after the floor passes", 0, version="0.5.23.dev7+g0a1b2c3"),
    one("a release candidate of the floor is below it", 1, "version", version="0.5.22rc1", says="pre-release"),
    one("a build without tags has no version", 3, "version", version="0.0.0.dev0", says="commit would decide"),
    one("a version that is no number", 3, "version", version="main-20260901"),
    one("no version", 3, "version", drop=("version",)),
    one("an older floor can be asked for", 0, version="0.5.20", arguments=("{prefill}", "--minimum-version", "0.5.20")),
    one("no version number as floor is wrong usage", 2, arguments=("{prefill}", "--minimum-version", "latest")),
    # Pool against context.
    one("the pool is below the context", 1, "pool", pools=(1024,), says="fewer than one prompt", limit=1017),
    one("the pool is exactly the context", 1, "pool", pools=(2048,), says="1.25x is asked"),
    one("the pool is one page under the headroom", 1, "pool", pools=(2544,), says="1.24x"),
    one("the pool is exactly the headroom", 0, pools=(2560,)),
    one(
        "the pool is exactly the context and no headroom is asked",
        0,
        pools=(2048,),
        arguments=("{prefill}", "--headroom", "1"),
    ),
    one("a headroom below one is wrong usage", 2, arguments=("{prefill}", "--headroom", "0.9")),
    one("no pool in the document", 3, "pool", drop=("max_total_num_tokens", "internal_states")),
    one(
        "no pool and a limit that binds",
        3,
        "pool",
        "ranks",
        drop=("max_total_num_tokens", "internal_states", "dp_size"),
    ),
    one(
        "the pool is text",
        3,
        "pool",
        "ranks",
        more={"max_total_num_tokens": "4096", "internal_states": []},
        drop=("dp_size",),
    ),
    one("the context is nowhere", 3, "context", "pool", max_model_len=None, pools=(2048,)),
    one("the context follows from the limit where the pool does not bind", 0, max_model_len=None),
    one(
        "the context is the argument where /v1/models does not answer",
        1,
        "pool",
        pools=(1024,),
        context_argument=2048,
        faults=Faults(paths=("/v1/models",), status=404),
    ),
    one("two statements of the context", 3, "context", context_argument=1536, pools=(16384,)),
    one(
        "the limit contradicts the pool",
        1,
        "pool",
        pools=(1600,),
        more={"max_req_input_len": 2042},
        also_undecided=("consistency",),
    ),
    one("the limit does not fit the context", 3, "consistency", more={"max_req_input_len": 3000}),
    # Ranks.
    one("every rank holds the context", 0, pools=(4096, 4096, 4096, 4096)),
    one("one rank is smaller than the context", 1, "pool", pools=(4096, 4096, 1024, 4096), limit=1017),
    one("ranks differ and all are large enough", 0, pools=(4096, 3200)),
    one("a rank is missing and nothing else shows it", 3, "ranks", pools=(4096, 4096), more={"dp_size": 3}),
    one(
        "rank pools of an old release come from nowhere",
        1,
        "version",
        version="0.5.0",
        pools=(4096, 4096),
        also_undecided=("ranks",),
    ),
    one("ranks missing in the document stand in /v1/loads", 0, pools=(4096, 4096), drop=("internal_states",)),
    one("attention ranks of 0.5.22 multiply", 3, "ranks", more={"dp_size": 1, "attn_dp_size": 8}),
    # Context parallelism and sharded pages.
    one(
        "0.5.19 multiplies its rows by dcp",
        1,
        "version",
        version="0.5.19",
        pools=(2048,),
        more={"dcp_size": 2, "max_req_input_len": 2042},
    ),
    one("0.5.22 reports the product already", 1, "pool", pools=(2048,), more={"dcp_size": 2}),
    one(
        "0.5.21 may be either",
        1,
        "version",
        version="0.5.21",
        pools=(2048,),
        more={"dcp_size": 2},
        also_undecided=("pool",),
    ),
    one(
        "sharded pages over context parallelism multiply by its width",
        0,
        pools=(1024,),
        more={"enable_kv_cache_sharding": True, "attn_cp_size": 4, "max_req_input_len": 2042},
    ),
    one(
        "sharded pages may or may not spread over tensor parallelism",
        3,
        "pool",
        pools=(1024,),
        more={"enable_kv_cache_sharding": True, "tp_size": 8, "max_req_input_len": 2042},
        says="up to 8 times",
    ),
    one(
        "sharded pages that cannot be enough",
        1,
        "pool",
        pools=(512,),
        more={"enable_kv_cache_sharding": True, "tp_size": 2, "max_req_input_len": 1018},
    ),
    one(
        "sharded pages of unknown width",
        3,
        "pool",
        pools=(1024,),
        drop=("tp_size",),
        more={"enable_kv_cache_sharding": True, "max_req_input_len": 2042},
        says="not shown",
    ),
    one(
        "sharded pages and a limit that binds",
        1,
        "pool",
        pools=(1024,),
        context=8192,
        more={"enable_kv_cache_sharding": True, "tp_size": 8, "max_req_input_len": 4090},
        limit=4089,
    ),
    one(
        "a diffusion model takes a block off the limit",
        0,
        more={"dllm_algorithm": "LowConfidence", "max_req_input_len": 2010},
        limit=2009,
    ),
    one(
        "a sliding-window pool that binds",
        1,
        "pool",
        more={"max_req_input_len": 1018, "internal_states": SLIDING},
        limit=1017,
    ),
    one(
        "a sliding-window pool gives no context away",
        3,
        "context",
        "pool",
        max_model_len=None,
        more={"max_req_input_len": 1018, "internal_states": SLIDING},
    ),
    one(
        "a sparse host pool gives no context away",
        3,
        "context",
        "pool",
        max_model_len=None,
        more={"enable_hisparse": True},
    ),
    # The front's limit.
    one("the front's limit is the longest prompt that is served", 0, arguments=("{prefill}", "--edge-limit", "2041")),
    one(
        "the front's limit is one too high",
        1,
        "edge-limit",
        arguments=("{prefill}", "--edge-limit", "2042"),
        says="lower it to 2,041",
    ),
    one(
        "without max_req_input_len the limit follows from context and pool",
        0,
        drop=("max_req_input_len",),
        arguments=("{prefill}", "--edge-limit", "2041"),
        limit=2041,
    ),
    one(
        "a diffusion model without max_req_input_len has a limit that nobody knows",
        3,
        "edge-limit",
        drop=("max_req_input_len",),
        more={"dllm_algorithm": "LowConfidence"},
        arguments=("{prefill}", "--edge-limit", "100"),
    ),
    # Truncation.
    one("one server that cuts is told of", 0, auto_truncate=True, says="cut without a word"),
    two("a pair that cuts", 1, "auto-truncate", auto_truncate=True),
    two("a pair that does not say whether it cuts", 3, "auto-truncate", drop=("allow_auto_truncate", "launch_command")),
    two("the command line says that it does not cut", 0, drop=("allow_auto_truncate",)),
    two(
        "the command line says that it cuts",
        1,
        "auto-truncate",
        drop=("allow_auto_truncate",),
        more={"launch_command": "--model-path org/toy --allow-auto"},
    ),
    two(
        "a file of arguments may say it",
        3,
        "auto-truncate",
        drop=("allow_auto_truncate",),
        more={"launch_command": "--config engine.yaml"},
    ),
    # Pairs.
    two("a pair in order", 0),
    two("the page size differs", 1, "agree-page-size", decode={"page_size": 32}),
    two("the KV dtype differs", 1, "agree-kv-cache-dtype", decode={"kv_cache_dtype": "bfloat16"}),
    two("bf16 is bfloat16", 0, kv_cache_dtype="bf16", decode={"kv_cache_dtype": "bfloat16"}),
    two("both KV dtypes are auto", 0, kv_cache_dtype="auto"),
    two("the KV dtype is auto on one side", 3, "agree-kv-cache-dtype", decode={"kv_cache_dtype": "auto"}),
    two("the KV dtype is missing on one side", 3, "agree-kv-cache-dtype", decode={"drop": ("kv_cache_dtype",)}),
    two("the context differs", 1, "agree-context", "decode-pool", decode={"context": 1024}),
    two("decode is smaller than what prefill accepts", 1, "pool", "decode-pool", decode={"pools": (1024,)}),
    two("the model differs", 1, "agree-model", decode={"model": "org/other"}),
    two("one model from two folders", 0, decode={"model": "/mnt/weights/toy"}),
    two("one model from a cache", 0, decode={"model": "/hub/models--org--toy/snapshots/0a1b2c"}),
    two("a rollout in progress", 1, "version", "agree-version", decode={"version": "0.5.19"}),
    two("the version is missing on one side", 3, "version", "agree-version", decode={"drop": ("version",)}),
    two("the transfer backend differs", 1, "agree-transfer-backend", decode={"backend": "nixl"}),
    two("a fake transfer backend", 1, "transfer-backend", backend="fake"),
    two("the roles are swapped", 1, "role", arguments=("--prefill", "{decode}", "--decode", "{prefill}")),
    two("a pair behind positions", 0, arguments=("{prefill}", "{decode}")),
    two("only half of the pair is shown", 0, arguments=("--prefill", "{prefill}"), says="no decode worker"),
    two("decode is down", 3, "answer", decode_faults=Faults(slam=99)),
    two(
        "decode is down and prefill exposed",
        1,
        "version",
        version="0.5.19",
        decode_faults=Faults(slam=99),
        also_undecided=("answer",),
    ),
    # Trouble.
    one("a slow answer is an answer", 0, faults=Faults(delay=0.3)),
    one("numbers of a size that nothing has", 3, "pool", more={"max_total_num_tokens": 10**400, "internal_states": []}),
    one(
        "ranks with names that are none",
        3,
        "ranks",
        more={"dp_size": 2},
        faults=Faults(paths=("/v1/loads",), body=b'{"loads": [{"dp_rank": [1], "max_total_num_tokens": 1e999}, 7]}'),
    ),
    one(
        "nobody answers in time",
        3,
        "answer",
        faults=Faults(half_open=True),
        arguments=("{prefill}", "--timeout", "0.3"),
    ),
    one("the answer drips", 3, "answer", faults=Faults(drip=0.05), arguments=("{prefill}", "--timeout", "0.4")),
    one("500", 3, "answer", faults=Faults(status=500), says="HTTP 500"),
    one("503 while starting", 3, "answer", faults=Faults(status=503)),
    one("a huge answer", 3, "answer", faults=Faults(huge=17 * 1024 * 1024), says="larger than"),
    one("an answer that is no JSON", 3, "answer", faults=Faults(body=b"<html>"), says="not JSON"),
    one("JSON that is something else", 3, "answer", faults=Faults(body=b'{"hello": 1}')),
    one("JSON that is a list", 3, "answer", faults=Faults(body=b"[]")),
    one("JSON nested without end", 3, "answer", faults=Faults(body=b"[" * 200_000)),
    one("a number of ten thousand digits", 3, "answer", faults=Faults(body=b'{"version": ' + b"9" * 10_000 + b"}")),
    one("the answer is cut off", 3, "answer", faults=Faults(cut=True)),
    one("no HTTP at all", 3, "answer", faults=Faults(garbage=True)),
    one("an answer compressed unasked", 3, "answer", faults=Faults(gzip=True), says="compressed"),
    one("a redirect to another host", 3, "answer", faults=Faults(redirect="http://127.0.0.2:9"), says="another host"),
    one("a redirect without end", 3, "answer", faults=Faults(redirect="{self}"), says="redirects"),
    one("a token is asked for", 3, "answer", faults=Faults(token="sesame"), says="token"),
    one("the first answer is an error", 3, "answer", faults=Faults(status_once=500)),
    one("a connection that is slammed is not tried again unasked", 3, "answer", faults=Faults(slam=1)),
    # What undecided counts as.
    one("undecided counts as pass", 0, faults=Faults(status=500), arguments=("{prefill}", "--unknown", "pass")),
    one("undecided counts as fail", 1, faults=Faults(status=500), arguments=("{prefill}", "--unknown", "fail")),
    one("a failure stays one", 1, "version", version="0.5.19", arguments=("{prefill}", "--unknown", "pass")),
    # Usage.
    one("no worker", 2, arguments=()),
    one("a password in the URL", 2, arguments=("http://user:hunter2@127.0.0.1:9",)),
    one("no scheme", 2, arguments=("127.0.0.1:30000",)),
    one("a file that is not there", 2, arguments=("missing.json",)),
    one("another scheme", 2, arguments=("ftp://127.0.0.1/x",)),
    one("a token file that is not there", 2, arguments=("{prefill}", "--token-file", "missing")),
    one("a token variable that is not set", 2, arguments=("{prefill}", "--token-env", "NOT_SET_ANYWHERE")),
    one("a wait that is no number", 2, arguments=("{prefill}", "--wait", "soon")),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gate_decides(row: Row) -> None:
    faults = row.faults
    cluster = Cluster(replace(row.engine), replace(row.decode) if row.decode is not None else None)
    with served(cluster, prefill=faults, decode=row.decode_faults) as where:
        if faults is not None and faults.redirect == "{self}":
            faults.redirect = where.prefill.url
        arguments = words(row.arguments, where)
        done = run("gate", *FAST, *arguments, "--format", "json")
        shown = run("gate", *FAST, *arguments) if row.says else None
    if row.code == 2:
        assert (done.code, done.report, done.err.count("\n")) == (2, {}, 1)
        return
    assert (done.code, done.failed(), done.undecided()) == (
        row.code,
        set(row.failed),
        set(row.undecided) or ({"answer"} if "--unknown" in row.arguments and not row.failed else set()),
    )
    assert done.report["exit_code"] == row.code
    if row.limit is not None:
        assert done.report["front_limit_tokens"] == row.limit
    if shown is not None:
        assert row.says in shown.out


def test_a_gate_prints_the_limit_to_configure_at_the_front() -> None:
    with served(Cluster(replace(PREFILL), replace(DECODE, pools=(3072,)))) as where:
        done = run("gate", *words(PAIR, where))
    assert "limit to configure at the front: 2,041 prompt tokens" in done.out


def test_saved_documents_are_as_good_as_the_engine(tmp_path: Path) -> None:
    engine = replace(GOOD, version="0.5.19", pools=(1024,))
    side_by_side = tmp_path / "engine.json"
    side_by_side.write_text(json.dumps(engine.server_info()) + "\n" + json.dumps(engine.models()), encoding="utf-8")
    bundle = tmp_path / "bundle.json"
    bundle.write_text(json.dumps({"info": engine.server_info(), "models": engine.models()}), encoding="utf-8")
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(engine.server_info()), encoding="utf-8")
    for path, more in ((side_by_side, ()), (bundle, ()), (alone, ("--context-length", "2,048"))):
        done = run("gate", str(path), *more, "--format", "json")
        assert (done.code, done.failed(), done.undecided()) == (1, {"version", "pool"}, set())
    done = run("gate", str(alone), "--format", "json")
    assert (done.code, done.failed(), done.undecided()) == (1, {"version"}, {"context", "pool"})


@pytest.mark.parametrize(
    "text", ["", "{}", "[1, 2]", "not json", '{"max_total_num_tokens": 1} trailing', "[" * 100_000]
)
def test_a_file_that_is_no_document_is_undecided(tmp_path: Path, text: str) -> None:
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8")
    assert run("gate", str(path)).code == 3


def test_waiting_tries_connection_failures_again() -> None:
    with served(Cluster(replace(GOOD)), prefill=Faults(slam=2)) as where:
        done = run("gate", where.prefill.url, "--wait", "5", "--interval", "0.05", "--format", "json")
    assert done.code == 0
    assert "waiting" in done.err


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_waiting_takes_an_http_answer_for_an_answer(status: int) -> None:
    with served(Cluster(replace(GOOD)), prefill=Faults(status=status)) as where:
        done = run("gate", where.prefill.url, "--wait", "30", "--interval", "0.05", "--format", "json")
        assert (done.code, len(where.prefill.seen)) == (3, 3 if status == 404 else 2)


def test_waiting_ends_when_time_is_up() -> None:
    with served(Cluster(replace(GOOD)), prefill=Faults(slam=10_000)) as where:
        done = run("gate", where.prefill.url, "--wait", "0.3", "--interval", "0.05", "--format", "json")
    assert (done.code, done.undecided()) == (3, {"answer"})


def test_waiting_goes_on_until_the_rollout_is_through(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = replace(DECODE, version="0.5.21"), replace(DECODE)
    cluster = Cluster(replace(PREFILL), old)
    asked = []
    original = Engine.server_info

    def rolling(engine: Engine) -> dict[str, object]:
        asked.append(engine.mode)
        if asked.count("decode") == 3:
            cluster.decode = new
        return original(cluster.decode if engine.mode == "decode" and cluster.decode is not None else engine)

    monkeypatch.setattr(Engine, "server_info", rolling)
    with served(cluster) as where:
        done = run("gate", *words(PAIR, where), "--wait", "5", "--interval", "0.05", "--format", "json")
    assert (done.code, asked.count("decode")) == (0, 3)
    assert "do not agree yet" in done.err


def test_a_failure_that_no_rollout_explains_is_not_waited_for() -> None:
    with served(Cluster(replace(GOOD, version="0.5.19"))) as where:
        done = run("gate", where.prefill.url, "--wait", "30", "--interval", "1", "--format", "json")
        assert (done.code, len(where.prefill.seen)) == (1, 2)


@pytest.mark.parametrize("source", ["env", "default", "file"])
def test_a_token_is_sent_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    token = "sesame-4711"
    arguments: tuple[str, ...] = ()
    if source == "env":
        monkeypatch.setenv("MY_TOKEN", token)
        arguments = ("--token-env", "MY_TOKEN")
    elif source == "default":
        monkeypatch.setenv("AUDITOR_TOKEN", token)
    else:
        (tmp_path / "token").write_text(token + "\n", encoding="utf-8")
        arguments = ("--token-file", str(tmp_path / "token"))
    with served(Cluster(replace(GOOD)), prefill=Faults(token=token)) as where:
        done = run("gate", where.prefill.url, *arguments, "--format", "json")
        shown = run("gate", where.prefill.url, *arguments)
    assert (done.code, shown.code) == (0, 0)
    assert token not in done.out + done.err + shown.out + shown.err


def test_a_token_does_not_follow_a_redirect_to_another_host() -> None:
    with serve(Cluster(replace(GOOD))) as other, served(
        Cluster(replace(GOOD)), prefill=Faults(redirect=other.url)
    ) as where:  # fmt: skip
        assert run("gate", where.prefill.url).code == 3
        assert other.seen == []


@pytest.mark.parametrize("url", [
    "http://exa mple:1", "http://a..b", "http://-", "http://h:99999", "http://\u2603.net", "http://xn--/", "http://%zz",
    "http://[::1", "http://", "http:///x", "http://1.1.1.1.1", "http://a:b:c", "http://127.0.0.1:0",
    "http://" + "a" * 300,
    "http://127.0.0.1:1/%00", "http://127.0.0.1:1/a b", "HTTP://127.0.0.1:1", "http://127.0.0.1:1/\x00", "://",
    "http:/x",
])  # fmt: skip
def test_any_url_is_an_address_or_one_line(url: str) -> None:
    done = run("gate", url, "--timeout", "2")
    assert done.code in (2, 3)
    assert (done.code == 2) == (done.err.count("\n") == 1)


@pytest.mark.parametrize(
    "location", ["http://", "//[::1", "\u2603", "http://127.0.0.1:1:1/", "?", "", "/\x7f", "http://%zz"]
)
def test_a_redirect_to_anything_is_an_answer_or_none(location: str) -> None:
    faults = Faults(paths=("/server_info",), status=302, headers={"location": location})
    with served(Cluster(replace(GOOD)), prefill=faults) as where:
        done = run("gate", where.prefill.url, "--timeout", "2")
    # The snowman is a page of the same host, which does not exist: the old name of the document is tried then.
    assert done.code == (0 if location == "\u2603" else 3)


def test_a_redirect_on_the_same_host_is_followed() -> None:
    faults = Faults(paths=("/server_info",), redirect="")
    with served(Cluster(replace(GOOD)), prefill=faults) as where:
        faults.redirect = where.prefill.url + "/get_server_info?"
        assert run("gate", where.prefill.url).code == 0


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Cluster(replace(GOOD))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert run("gate", "http://engine.test:30000").code == 0
        assert [request.headers["host"] for request in proxy.seen] == ["engine.test:30000"] * 2


def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:1")
    done = run("gate", "http://127.0.0.1:9")
    assert (done.code, done.err.count("\n"), "hunter2" in done.err) == (2, 1, False)


def test_every_address_of_a_name_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(2, 1, 6, "", ("127.0.0.1", 0)), (2, 1, 6, "", ("127.0.0.2", 0)), (2, 1, 6, "", ("127.0.0.1", 0))]

    async def resolve(_: object, name: str, port: int, **options: object) -> list[object]:
        return list(addresses) if name == "prefill.test" else []

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
    with serve(Cluster(replace(GOOD))) as worker:
        port = worker.url.rsplit(":", 1)[1]
        done = run("gate", f"http://prefill.test:{port}", "--all-addresses", "--format", "json", "--timeout", "2")
        gone = run("gate", f"http://gone.test:{port}", "--all-addresses", "--format", "json", "--timeout", "2")
    named = {one["subject"] for one in done.report["results"] if one["id"] == "answer"}
    assert {one["name"] for one in done.report["workers"]} == {f"http://prefill.test:{port} [127.0.0.1]"}
    assert (done.code, named) == (3, {f"http://prefill.test:{port} [127.0.0.2]"})
    assert {request.headers["host"] for request in worker.seen} == {f"prefill.test:{port}"}
    assert (gone.code, "does not resolve" in gone.out) == (3, True)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, with its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl on this machine: the TLS tests need it to make a certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serve(Cluster(replace(GOOD)), tls=(cert, key)) as worker:
        assert worker.url.startswith("https://")
        refused = run("gate", worker.url, "--format", "json")
        trusted = run("gate", worker.url, "--ca-file", str(cert), "--format", "json")
        other_name = run(
            "gate", worker.url.replace("127.0.0.1", "localhost"), "--ca-file", str(cert), "--format", "json"
        )
        nothing = run("gate", worker.url, "--ca-file", str(tmp_path / "missing.pem"))
        plain = run("gate", worker.url.replace("https:", "http:"), "--format", "json", "--timeout", "2")
    assert (refused.code, "not trusted" in refused.out) == (3, True)
    assert trusted.code == 0
    assert (other_name.code, other_name.undecided()) == (3, {"answer"})
    assert (nothing.code, nothing.err.count("\n")) == (2, 1)
    assert plain.code == 3


def test_the_report_goes_to_a_file_whole(tmp_path: Path) -> None:
    with served(Cluster(replace(GOOD))) as where:
        done = run("gate", where.prefill.url, "--format", "json", "--output", str(tmp_path / "gate.json"))
        assert (done.code, done.out) == (0, "")
        assert json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))["verdict"] == "pass"
        refused = run("gate", where.prefill.url, "--output", str(tmp_path / "no" / "folder"))
        assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_what_a_worker_sends_cannot_steer_the_terminal() -> None:
    engine = replace(GOOD, more={"version": "0.5.22\x1b[2J\x1b]0;owned\x07", "model_path": "a\nb"})
    with served(Cluster(engine)) as where:
        done = run("gate", where.prefill.url)
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
