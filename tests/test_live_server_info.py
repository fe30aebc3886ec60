"""What a worker's documents mean: any JSON is read without a crash, and more capacity is never worse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.live.capacity import capacity_of, release
from auditor.live.gate import Criteria, judge
from auditor.live.outcome import Result, exit_code, verdict
from auditor.live.server_info import Documents, kind_of, read_worker
from auditor.live.targets import Observation, Target
from auditor.model.records import replace
from tests.engine import Engine

KEYS = sorted(
    {
        *Engine(version="0.5.22").server_info(),
        *("attn_dp_size", "dcp_size", "enable_kv_cache_sharding", "loads", "data", "dllm_algorithm", "memory_usage"),
        *("token_capacity", "max_model_len", "id", "dp_rank"),
    }
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(10**400),
    st.sampled_from(["prefill", "decode", "null", "0.5.22", "auto", "0.0.0.dev0"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=14)


def judged(documents: Documents, context_length: int | None = None) -> tuple[Result, ...]:
    seen = Observation(Target("unknown", "worker", None), documents)
    return judge([(seen, read_worker("worker", "unknown", documents, context_length))], Criteria())


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, st.none() | DOCUMENTS, st.none() | DOCUMENTS)
def test_any_document_is_judged_and_none_of_these_passes_by_accident(
    info: dict[str, Any], models: dict[str, Any] | None, loads: dict[str, Any] | None
) -> None:
    kind_of(info)
    results = judged(Documents(info, models, loads))
    if verdict(results) == "pass":
        worker = read_worker("worker", "unknown", Documents(info, models, loads))
        assert worker.version is not None
        assert worker.capacity.low is not None
        assert worker.context is not None
        assert worker.capacity.low >= 1.25 * worker.context


@settings(max_examples=80, deadline=None)
@given(
    st.integers(64, 1 << 21),
    st.integers(64, 1 << 21),
    st.integers(1, 8),
    st.sampled_from(["0.5.19", "0.5.21", "0.5.22"]),
)
def test_the_capacity_interval_holds_what_the_engine_admits(rows: int, context: int, dcp: int, version: str) -> None:
    """An engine of each release, as it computes its limit from the rows of one rank."""
    capacity = rows * dcp
    reported = rows * dcp if release(version) == (0, 5, 22) else rows
    limit = min(context, capacity) - 6
    found = capacity_of(
        reported=reported,
        smallest=reported,
        first_limit=limit,
        context=context,
        dcp=dcp,
        shards=(1, 1),
        version=version,
    )
    assert found.low is not None
    assert found.high is not None
    assert found.conflict is None
    assert found.low <= max(capacity, min(context, capacity)) <= max(found.high, capacity)
    assert min(found.low, context) <= min(capacity, context) <= max(min(found.high, context), min(capacity, context))
    if capacity < context:
        assert (found.low, found.high) == (capacity, capacity)


@settings(max_examples=100, deadline=None)
@given(st.integers(1024, 1 << 20), st.integers(0, 1 << 20))
def test_a_larger_pool_is_never_worse(pool: int, more: int) -> None:
    order = {"fail": 0, "undecided": 1, "pass": 2}
    verdicts = []
    for size in (pool, pool + more):
        engine = Engine(version="0.5.22", context=131_072, pools=(size,))
        verdicts.append(order[verdict(judged(Documents(engine.server_info(), engine.models())))])
    assert verdicts[0] <= verdicts[1]


@pytest.mark.parametrize("key", [
    "version", "max_total_num_tokens", "max_req_input_len", "dp_size", "internal_states", "page_size", "kv_cache_dtype",
    "allow_auto_truncate", "disaggregation_mode", "model_path", "served_model_name", "disaggregation_transfer_backend",
])  # fmt: skip
def test_a_missing_field_never_turns_a_failure_into_a_pass(key: str) -> None:
    engine = Engine(version="0.5.19", context=131_072, pools=(65_536,))
    full = verdict(judged(Documents(engine.server_info(), engine.models())))
    less = verdict(judged(Documents(replace(engine, drop=(key,)).server_info(), engine.models())))
    assert (full, less in ("fail", "undecided")) == ("fail", True)


@pytest.mark.parametrize(
    ("outcome", "unknown", "code"),
    [("pass", None, 0), ("fail", None, 1), ("undecided", None, 3), ("undecided", "pass", 0), ("undecided", "fail", 1),
     ("fail", "pass", 1), ("pass", "fail", 0)],
)  # fmt: skip
def test_exit_codes_of_the_contract(outcome: Any, unknown: Any, code: int) -> None:
    assert exit_code(outcome, unknown) == code


def test_nothing_that_passed_is_undecided() -> None:
    assert verdict([]) == "undecided"
    assert verdict([Result("a", "note", "n")]) == "undecided"
    assert verdict([Result("a", "note", "n"), Result("b", "pass", "p")]) == "pass"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.5.22", (0, 5, 22)), ("0.5.19.post1", (0, 5, 19)), ("0.5.22rc1", (0, 5, 22)), ("main", None), (None, None)],
)
def test_leading_numbers_of_a_version(version: str | None, numbers: tuple[int, ...] | None) -> None:
    assert release(version) == numbers
