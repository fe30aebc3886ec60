"""`auditor latency` over generated logs: what raises the alarm, what does not, and what cannot be decided."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.live.latency import Cells, size
from auditor.live.latency_fields import Fields
from auditor.live.latency_log import Tally, samples
from auditor.model.records import dataclass
from tests.live import run
from tests.logs import engine, exported, gateway, requests

POOL_LIMIT = 681_274
SLOW = 3000


def over_the_limit(length: int) -> bool:
    return length >= POOL_LIMIT


def log(make: Callable[..., str] = gateway, count: int = 3000, **how: object) -> list[str]:
    return [make(length, seconds) for length, seconds in requests(count, **how)]  # type: ignore[arg-type]


def at(length: int, seconds: float, count: int = 30, **more: object) -> list[str]:
    """Requests of one length and one time."""
    return [gateway(length, seconds, **more) for _ in range(count)]


def without(key: str, lines: Sequence[str]) -> list[str]:
    return [json.dumps({name: value for name, value in json.loads(line).items() if name != key}) for line in lines]


def queued(count: int, low: float, high: float) -> list[str]:
    """Everything stands in a queue of up to ten seconds."""
    pick = random.Random(3)
    lines = []
    for length in (1024, 2048, 16384, 32768):
        lines += [gateway(length, length / 20_000 + pick.uniform(low, high)) for _ in range(count)]
    return lines


@dataclass(frozen=True)
class Row:
    """One log, one command line, one verdict. `failed`: the ids of all failures; `said`: words of the report."""

    name: str
    code: int
    lines: Callable[[], list[str]]
    failed: frozenset[str] = frozenset()
    arguments: Sequence[str] = ()
    said: str = ""


FAST = frozenset({"faster-than-shorter"})
ROWS = (
    # The signal.
    Row("prefill grows with length", 0, log),
    Row("prompts over the limit skip their prefill", 1, lambda: log(leaks=over_the_limit), FAST),
    Row("one in five of them does", 1, lambda: log(count=6000, leaks=over_the_limit, share=0.2), FAST),
    Row("one in a hundred does, and cache hits are told", 1,
        lambda: log() + [gateway(700_000, 0.04) for _ in range(3)], frozenset({"stray"})),
    Row("two single ones say nothing", 0, lambda: log() + [gateway(700_000, 0.04) for _ in range(2)]),
    Row("the engine's own log", 1, lambda: log(engine, leaks=over_the_limit), FAST, said="the engine's own count"),
    Row("the engine's metrics file", 1, lambda: log(exported, leaks=over_the_limit), FAST),
    Row("faster than any prefill can be", 1, lambda: at(100, 0.1) + at(65536, 5.0) + [gateway(65536, 0.5)],
        frozenset({"rate"}), ("--max-rate", "100000")),
    Row("as fast as can be", 0, lambda: at(100, 0.1) + at(65536, 5.0), arguments=("--max-rate", "100000")),
    # No signal.
    Row("a queue is no signal", 0, lambda: queued(60, 0.0, 10.0)),
    Row("the same time at every length is not faster", 0, lambda: at(512, 0.1) + at(16384, 0.1)),
    Row("a little faster is noise", 0, lambda: at(512, 0.1) + at(16384, 0.095)),
    Row("a fifth faster is not", 1, lambda: at(512, 0.1) + at(16384, 0.08), FAST),
    Row("short prompts are not judged", 3, lambda: at(512, 0.1) + at(2048, 0.05)),
    Row("what is long is for the user to say", 1, lambda: at(512, 0.1) + at(2048, 0.05), FAST, ("--long-from", "2048")),
    Row("models are kept apart", 0,
        lambda: at(512, 2.0, model="big") + at(8192, 9.0, model="big") + at(512, 0.1, model="small")
        + at(8192, 0.9, model="small")),
    # Cache hits and zeros.
    Row("cache hits are told apart", 0, lambda: log() + at(700_000, 0.05, 400, cached_tokens=699_000)),
    Row("a small part from the cache is no hit", 1, lambda: log() + at(700_000, 0.05, 400, cached_tokens=512), FAST),
    Row("a log that does not tell cache hits says so", 1,
        lambda: without("cached_tokens", log(leaks=over_the_limit)), FAST, said="does not tell cache hits apart"),
    Row("nothing but cache hits", 3, lambda: at(512, 0.1) + at(65536, 0.05, cached_tokens=65000), said="cache hits"),
    Row("zeros are no times", 0, lambda: log() + at(700_000, 0.0, 400), said="zero time"),
    Row("failed requests are no answers", 0, lambda: log() + at(700_000, 0.02, 400, status=400), said="failed request"),
    Row("requests that the log calls errors", 0, lambda: log() + at(700_000, 0.02, 400, status="error")),
    Row("refused prompts in the engine's log", 0, lambda: log(engine) + [
        engine(700_000, 0.02, finish_reason={"type": "abort", "status_code": 400}) for _ in range(400)]),
    Row("errors by name", 0, lambda: log() + at(700_000, 0.02, 400, error={"message": "too long"})),
    Row("an error that is none", 1, lambda: log() + at(700_000, 0.02, 400, error=None), FAST),
    Row("time in the queue is taken off", 1,
        lambda: at(8192, 0.5, queue_time_ms=0) + at(65536, 2.1, queue_time_ms=2000.0), FAST),
    # Too little.
    Row("an empty log", 3, list),
    Row("too few long ones", 3, lambda: at(512, 0.1) + at(65536, 0.01, 19)),
    Row("just enough", 1, lambda: at(512, 0.1) + at(65536, 0.01, 20), FAST),
    Row("fewer will do when asked", 1, lambda: at(512, 0.1, 5) + at(65536, 0.01, 5), FAST, ("--min-samples", "5")),
    Row("long ones with nothing to compare", 3, lambda: at(65536, 0.01), said="nothing to compare with"),
    Row("undecided counts as fail", 1, list, arguments=("--unknown", "fail")),
    Row("undecided counts as pass", 0, list, arguments=("--unknown", "pass")),
    # Broken and mixed lines.
    Row("truncated lines", 1, lambda: [*log(leaks=over_the_limit), gateway(1, 1.0)[:40]], FAST, said="1 not JSON"),
    Row("lines of every kind", 1, lambda: ["INFO started", "", "[1, 2]", "{}", '{"a": ', "null", "\x00\xff", "9" * 5000,
        '{"prompt_tokens": "many", "ttft": null}', *log(leaks=over_the_limit)], FAST),
    Row("nothing but other lines", 3, lambda: ["INFO started"] * 500, said="name the fields"),
    Row("impossible figures", 0, lambda: [*log(), gateway(-5, 1.0), gateway(9000, -1.0),
        '{"ttft": NaN, "prompt_len": 9000}',
        '{"ttft": 1e999, "prompt_len": 9000}', '{"ttft": 1, "prompt_len": 1e300}'], said="5 impossible figures"),
    Row("nested without end", 0, lambda: [*log(), '{"a":' * 100_000]),
    Row("a log prefix in front", 1, lambda: [f"[2026-10-01 10:00:00] {line}" for line
        in log(leaks=over_the_limit)], FAST),
    Row("wrapped by the container", 1, lambda: [json.dumps({"log": line + "\n", "stream": "stdout"})
        for line in log(leaks=over_the_limit)], FAST),
    # Fields.
    Row("fields named by hand", 1, lambda: [json.dumps({"a": {"n": length, "t": seconds * 1e6}})
        for length, seconds in requests(SLOW, leaks=over_the_limit)], FAST,
        ("--field", "length=a.n", "--field", "ttft=a.t", "--unit", "us")),
    Row("the length counted from what was sent", 1, lambda: [json.dumps({"ids": [1] * (length // 500), "ttft": seconds})
        for length, seconds in requests(SLOW, leaks=over_the_limit)], FAST,
        ("--field", "length=len:ids", "--long-from", "64")),
    Row("keys that hold dots", 1, lambda: [json.dumps({"attributes": {"gen_ai.usage.input_tokens": length,
        "gen_ai.latency.time_to_first_token": seconds}})
        for length, seconds in requests(SLOW, leaks=over_the_limit)], FAST),
    Row("JSON inside a text", 1, lambda: [json.dumps({"request": json.dumps({"n": length}), "ttft": seconds})
        for length, seconds in requests(SLOW, leaks=over_the_limit)], FAST, ("--field", "length=request.n")),
    # Usage.
    Row("an unknown field", 2, log, arguments=("--field", "speed=x")),
    Row("a field without a place", 2, log, arguments=("--field", "ttft")),
    Row("a picture of another kind", 2, log, arguments=("--plot", "chart.png")),
    Row("a baseline that is none", 2, log, arguments=("--baseline", "{log}")),
    Row("a log that is not there", 2, log, arguments=("missing.log",)),
    Row("a folder", 2, log, arguments=(".",)),
    Row("a share over one", 2, log, arguments=("--cache-share", "2")),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_latency_decides(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    path.write_bytes("\n".join(row.lines()).encode("utf-8", "replace"))
    arguments = [word.replace("{log}", str(path)) for word in row.arguments]
    done = run("latency", str(path), *arguments, "--format", "json")
    if row.code == 2:
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        return
    assert (done.code, done.failed(), done.report["exit_code"]) == (row.code, set(row.failed), row.code)
    if row.said:
        assert row.said in run("latency", str(path), *arguments).out


def test_a_baseline_is_written_and_compared(tmp_path: Path) -> None:
    before, now, later, base = (tmp_path / name for name in ("before", "now", "later", "base.json"))
    before.write_text("\n".join(at(65536, 4.0)), encoding="utf-8")
    now.write_text("\n".join(at(65536, 3.0)), encoding="utf-8")
    later.write_text("\n".join(at(65536, 0.2)), encoding="utf-8")
    assert run("latency", str(before), "--write-baseline", str(base)).code == 3
    assert json.loads(base.read_text(encoding="utf-8"))["buckets"] == [
        {"group": "glm", "from": 65536, "count": 30, "p5": 4.039, "p50": 4.039, "p95": 4.039}
    ]
    assert run("latency", str(now), "--baseline", str(base)).code == 0
    assert run("latency", str(now), "--baseline", str(base), "--baseline-ratio", "0.8").code == 1
    done = run("latency", str(later), "--baseline", str(base), "--format", "json")
    assert (done.code, done.failed()) == (1, {"faster-than-baseline"})


def test_a_log_that_raises_the_alarm_never_becomes_the_baseline(tmp_path: Path) -> None:
    path, base = tmp_path / "log", tmp_path / "base.json"
    path.write_text("\n".join(log(leaks=over_the_limit)), encoding="utf-8")
    done = run("latency", str(path), "--write-baseline", str(base))
    assert (done.code, base.exists(), "not written" in done.err) == (1, False, True)


def test_packed_logs_standard_input_and_several_files_are_one_log(tmp_path: Path) -> None:
    lines = log(leaks=over_the_limit)
    whole, packed, rest = tmp_path / "whole", tmp_path / "packed.gz", tmp_path / "rest"
    whole.write_text("\n".join(lines), encoding="utf-8")
    packed.write_bytes(gzip.compress("\n".join(lines[:2000]).encode()))
    rest.write_text("\r\n".join(lines[2000:]), encoding="utf-8")
    expected = run("latency", str(whole), "--format", "json").report["buckets"]
    assert run("latency", str(packed), str(rest), "--format", "json").report["buckets"] == expected
    piped = subprocess.run(
        [sys.executable, "-m", "auditor", "latency", "-", "--format", "json"],
        input=whole.read_bytes(), capture_output=True, check=False,
    )  # fmt: skip
    assert (piped.returncode, json.loads(piped.stdout)["buckets"]) == (1, expected)


def test_a_packed_log_that_breaks_off_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    data = gzip.compress("\n".join(log(leaks=over_the_limit)).encode())
    path.write_bytes(data[: len(data) * 9 // 10])
    done = run("latency", str(path), "--format", "json")
    assert (done.code, done.status("truncated")) == (1, {"note"})


def test_a_line_without_end_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.write(("\n".join(log(count=500)) + "\n").encode())
        for _ in range(20):
            stream.write(b"x" * (1 << 20))
        stream.write(("\n" + "\n".join(log(count=500, seed=2))).encode())
    done = run("latency", str(path), "--format", "json")
    assert done.report["lines"] == {"read": 1001, "samples": 1000, "left_out": {"line too long": 1}}


def test_the_chart_is_the_same_bytes_twice_and_valid_xml(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(log(leaks=over_the_limit)), encoding="utf-8")
    charts = []
    for name in ("a.svg", "b.svg"):
        done = run("latency", str(path), "--plot", str(tmp_path / name))
        assert done.code == 1
        charts.append((tmp_path / name).read_text(encoding="utf-8"))
    root = ElementTree.fromstring(charts[0])
    words = [element.text or "" for element in root.iter() if element.tag.endswith("title")]
    assert charts[0] == charts[1]
    assert [text for text in words if text.endswith("too fast")] == [words[-1]]
    assert "<- too fast" in run("latency", str(path)).out


def test_the_terminal_shows_a_row_for_each_length(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(at(512, 0.1) + at(16384, 0.9)), encoding="utf-8")
    lines = run("latency", str(path)).out.splitlines()
    assert [line.split()[:4] for line in lines[3:5]] == [
        ["glm", "512-1k", "30", "99.6"],
        ["glm", "16k-32k", "30", "897"],
    ]


def test_latency_needs_no_network_module(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(at(512, 0.1)), encoding="utf-8")
    code = (
        "import sys\nfrom auditor.cli import main\nmain(['latency', sys.argv[1]])\n"
        "sys.exit(repr([m for m in ('httpx', 'ssl', 'asyncio') if m in sys.modules]) if 'httpx' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=300), st.sampled_from([0.05, 0.5, 0.95]))
def test_a_quantile_is_right_to_one_per_cent(times: list[float], share: float) -> None:
    cells = Cells()
    for one in times:
        cells.add(one)
    exact = sorted(times)[max(math.ceil(share * len(times)), 1) - 1]
    assert abs(cells.quantile(share) - exact) <= 0.0101 * exact


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_are_lines(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b"\n".join(parts))
    tally = Tally()
    found = list(samples([str(path)], Fields({}), tally))
    assert tally.lines == len(found) + sum(tally.reasons.values())


@pytest.mark.parametrize(
    ("tokens", "text"), [(64, "64"), (1024, "1k"), (65536, "64k"), (1 << 20, "1M"), (3 << 20, "3M")]
)
def test_sizes_in_short(tokens: int, text: str) -> None:
    assert size(tokens) == text
