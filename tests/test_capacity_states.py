"""What linear-attention states leave of the budget, by release and by what the launch says of its requests."""

from __future__ import annotations

import pytest

from auditor.capacity.catalog import find_model
from auditor.capacity.interval import exact
from auditor.capacity.spec import LaunchSpec
from auditor.capacity.states import after_states, state_bytes

GIB = 2**30


def spec(**given: object) -> LaunchSpec:
    found = find_model("Qwen/Qwen3.6-27B")
    assert found is not None
    return LaunchSpec(found.shape, memory=80 * GIB, **given)  # type: ignore[arg-type]


def test_a_state_is_as_large_as_a_start_up_logs_it() -> None:
    # 154 slots and one of padding take 0.43 GiB of convolution and 21.80 GiB of recurrent state
    assert state_bytes(spec()) == pytest.approx(22.23 * GIB / 155, rel=0.005)
    assert state_bytes(spec(tp=4)) == state_bytes(spec()) / 4
    assert state_bytes(spec(pp=2)) == state_bytes(spec()) / 2


def test_states_take_whole_slots_of_their_share() -> None:
    left, state = after_states(spec(), exact(20.0 * GIB)), state_bytes(spec())
    assert (left.low, left.high) == pytest.approx((20 * GIB / 1.9, 20 * GIB / 1.9 + state))
    slots = int(20 * GIB * 0.9 / 1.9 / state)
    assert left.low <= 20 * GIB - slots * state <= left.high
    assert after_states(spec(mamba_full_memory_ratio=0.25), exact(20.0 * GIB)).low == 16 * GIB


def test_without_the_radix_cache_each_running_request_has_one() -> None:
    asked = spec(disable_radix_cache=True, max_running_requests=32)
    assert after_states(asked, exact(20.0 * GIB)).expected == 20 * GIB - 33 * state_bytes(asked)
    drafted = spec(disable_radix_cache=True, max_running_requests=16, speculative="EAGLE", draft_tokens=4)
    assert after_states(drafted, exact(20.0 * GIB)).expected == 20 * GIB - 17 * 5 * state_bytes(asked)


def test_up_to_0_5_11_draft_states_are_taken_first() -> None:
    given = {"speculative": "EAGLE", "draft_tokens": 4, "max_running_requests": 8}
    early = after_states(spec(version=(0, 5, 9), **given), exact(20.0 * GIB))
    assert early.low == pytest.approx((20 * GIB - 8 * 4 * state_bytes(spec())) / 1.9)
    unlimited = after_states(spec(version=(0, 5, 9), speculative="EAGLE", draft_tokens=4), exact(20.0 * GIB))
    assert unlimited.high == state_bytes(spec())  # 48 requests of 4 draft tokens want 28 GiB


def test_from_0_5_14_a_limit_on_requests_gives_draft_states_to_the_pool() -> None:
    budget, state = exact(30.0 * GIB), state_bytes(spec())
    given = {"version": (0, 5, 19), "speculative": "EAGLE", "draft_tokens": 4}
    free, few = after_states(spec(**given), budget), after_states(spec(**given, max_running_requests=4), budget)
    part = 30 * GIB * 0.9 / 1.9
    slots = (part - 5 * state) // (state * (1 + 4 / 3))  # three slots a request; four and five leave other numbers
    assert few.low <= 30 * GIB - (slots + 1) * state - 5 * 4 * state <= few.high
    assert free.low == pytest.approx(30 * GIB / 1.9, rel=0.06)
    usual = after_states(spec(**given, max_running_requests=48), budget)
    assert few.low > usual.high == pytest.approx(30 * GIB / 1.9, rel=0.09)
    assert (free.low, free.high > few.high) == (usual.low, True)  # no flag known: anything down to one request


def test_stated_slots_are_what_the_states_take() -> None:
    # mamba_pool.per_dp_shard: K slots and one of padding, whatever the ratio says
    asked, state = spec(mamba_slots=8, mamba_full_memory_ratio=0.5), state_bytes(spec())
    assert after_states(asked, exact(20.0 * GIB)).expected == 20 * GIB - 9 * state
    given = {"version": (0, 5, 19), "speculative": "EAGLE", "draft_tokens": 4, "max_running_requests": 4}
    drafted = after_states(spec(mamba_slots=48, **given), exact(30.0 * GIB))
    assert drafted.low == drafted.high == 30 * GIB - (48 + 1 + 4 * (4 + 1)) * state


def test_a_narrow_state_type_halves_the_recurrent_part() -> None:
    # 48 layers of 48 value heads of 128 x 128 in 32 bits; the inputs of the convolutions stay in 16
    whole, half = state_bytes(spec()), state_bytes(spec(mamba_dtype="bfloat16"))
    assert whole - half == 48 * 48 * 128 * 128 * 2
