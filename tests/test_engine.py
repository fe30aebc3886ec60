"""The test engine does what the engine does: pages keep what stood in them, and each release has its own guards."""

from __future__ import annotations

from array import array

import pytest

from auditor.model.records import replace
from tests.engine import Cluster, Engine, Faults
from tests.engine.pages import PagePool
from tests.engine.toy import Tokenizer, generate

PREFILL = Engine(mode="prefill", context=3072, pools=(2048,))
DECODE = Engine(mode="decode", context=3072, pools=(6144,))
TENANT = "patient 4711 has a fever. "


def cluster(version: str, prefill: int = 2048, decode: int = 6144, **changes: object) -> Cluster:
    return Cluster(
        replace(PREFILL, version=version, pools=(prefill,), **changes),  # type: ignore[arg-type]
        replace(DECODE, version=version, pools=(decode,), **changes),  # type: ignore[arg-type]
    )


def fill(where: Cluster) -> None:
    """A tenant's prompts in every page of decode."""
    ids = where.tokenizer.encode(TENANT * 200)[:2000]
    for _ in range(4):
        assert where.complete(ids, 4).status == 200


def test_pages_keep_what_stood_in_them() -> None:
    pool = PagePool(64, 16)
    first = pool.reserve(32)
    assert first is not None
    pool.write(first, list(range(1, 33)))
    pool.release(first)
    again = pool.reserve(64)
    assert again is not None
    assert sorted(number for number in pool.read(again, 64) if number) == list(range(1, 33))


def test_a_pool_gives_no_more_pages_than_it_has() -> None:
    pool = PagePool(64, 16)
    assert pool.reserve(65) is None
    assert pool.reserve(64) is not None
    assert (pool.reserve(1), pool.available) == (None, 0)


@pytest.mark.parametrize(("reuse", "pages"), [("fifo", [2, 3]), ("sorted", [0, 1])])
def test_which_free_pages_come_first(reuse: str, pages: list[int]) -> None:
    pool = PagePool(64, 16, reuse)
    first = pool.reserve(32)
    assert first is not None
    pool.release(first)
    assert pool.reserve(32) == pages


def test_the_model_goes_on_as_the_text_went_on_before() -> None:
    tokenizer = Tokenizer()
    seen = array("i", tokenizer.encode("the code is 4711. and the code is"))
    assert tokenizer.decode(generate(seen, 4)) == " 4711"
    assert tokenizer.decode(tokenizer.encode("Any text, 12 signs!\n")) == "Any text, 12 signs!\n"


@pytest.mark.parametrize("version", ["0.5.11", "0.5.19"])
def test_before_0_5_20_a_refused_prompt_reads_the_pages_of_others(version: str) -> None:
    where = cluster(version)
    fill(where)
    done = where.complete(where.tokenizer.encode("x " * 3000)[:2042], 40)
    assert (done.status, TENANT.strip() in done.text) == (200, True)


@pytest.mark.parametrize("version", ["0.5.20", "0.5.21", "0.5.22", "0.5.23"])
def test_from_0_5_20_on_it_is_refused(version: str) -> None:
    where = cluster(version)
    fill(where)
    done = where.complete(where.tokenizer.encode("x " * 3000)[:2042], 40)
    assert (done.status, "patient" in done.text) == (400, False)
    assert where.decode is not None
    assert where.decode.pool.available == where.decode.pool.pages


def test_where_both_roles_refuse_0_5_19_answers_with_nothing() -> None:
    done = cluster("0.5.19", 2048, 2048).complete([5] * 2042, 16)
    assert (done.status, done.text) == (200, "")


@pytest.mark.parametrize("version", ["0.5.19", "0.5.22"])
def test_the_longest_prompt_that_is_served_is_min_of_context_and_pool_less_seven(version: str) -> None:
    where = cluster(version, 2048, 2048)
    ids = where.tokenizer.encode(TENANT * 300)
    assert "patient" in where.complete(ids[:2041], 40).text
    assert "patient" not in where.complete(ids[:2042], 40).text


def test_roles_that_cut_at_different_lengths_leak_on_the_newest_release() -> None:
    where = cluster("0.5.23", auto_truncate=True)
    fill(where)
    done = where.complete(where.tokenizer.encode("x " * 4000)[:3000], 40)
    assert (done.status, "patient" in done.text) == (200, True)


def test_a_short_transfer_shows_what_stood_there() -> None:
    where = cluster("0.5.22")
    fill(where)
    where.faults = Faults(short_transfer=8)
    done = where.complete(where.tokenizer.encode("x " * 2000)[:1800], 40)
    assert (done.status, "patient" in done.text) == (200, True)


@pytest.mark.parametrize(
    ("version", "has"),
    [("0.4.6.post5", set()), ("0.5.3", {"token_capacity"}), ("0.5.20", {"token_capacity", "launch_command"}),
     ("0.5.22", {"token_capacity", "launch_command", "attn_dp_size"})],
)  # fmt: skip
def test_the_document_has_the_shape_of_its_version(version: str, has: set[str]) -> None:
    document = replace(PREFILL, version=version).server_info()
    states = document["internal_states"]
    assert isinstance(states, list)
    found = {key for key in ("launch_command", "attn_dp_size") if key in document}
    found |= set(states[0].get("memory_usage", {})) & {"token_capacity"}
    assert found == has
