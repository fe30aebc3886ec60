"""What the states of linear-attention layers leave of the budget for the KV pool.

Source: `handle_max_mamba_cache` of `model_runner_kv_cache_mixin.py` (0.5.9 to 0.5.14) and of
`mem_cache/kv_cache_configurator.py` (0.5.17 to 0.5.23).
"""

from __future__ import annotations

from auditor.capacity.interval import Interval, hull
from auditor.capacity.spec import LaunchSpec

RATIO = 0.9  # `mamba_full_memory_ratio`: states over KV
RUNNING = 48  # requests that speculative decoding allows unless told otherwise (`speculative_hook.py`)
JOINT = (0, 5, 14)  # the first sampled release that takes draft states out of the states' share
SLOTS = (
    3,
    4,
    5,
)  # state slots of a running request: three, and one or two to track prefixes (`_calculate_mamba_ratio`)
DRAFTED = (2, 4, 6)  # draft tokens of a step where no flag says: fewest, usual (three steps, one branch), many


def after_states(spec: LaunchSpec, budget: Interval) -> Interval:
    """Bytes that are left for the KV pool. A stated number of slots is what the states take; without the radix cache
    the running requests have one each; else the states take r / (1 + r) of the budget in whole slots, so that what they
    leave over is added to the pool."""
    state = state_bytes(spec)
    if spec.mamba_slots:
        return (budget - _stated(spec, max(1, spec.mamba_slots // _replicas(spec)))).at_least(0.0)
    if spec.max_running_requests and spec.disable_radix_cache:
        running = max(1, spec.max_running_requests // _replicas(spec))
        drafts = [0] if not _drafts(spec) else [spec.draft_tokens] if spec.draft_tokens else DRAFTED
        needs = [state * (running + 1) * (1 + tokens) for tokens in drafts]
        return (budget - hull(*needs, expected=sorted(needs)[len(needs) // 2])).at_least(0.0)
    ratio = RATIO if spec.mamba_full_memory_ratio is None else spec.mamba_full_memory_ratio
    share = 1 / (1 + ratio)
    if not _drafts(spec):
        whole = budget.expected * share
        return Interval(budget.low * share, min(budget.expected, whole + state / 2), budget.high * share + state)
    if spec.version is not None and spec.version < JOINT and spec.version <= (0, 5, 11):
        return _drafts_first(spec, budget, share)
    return _drafts_inside(spec, budget, share)


def _stated(spec: LaunchSpec, slots: int) -> Interval:
    """Bytes of a stated number of slots with one of padding, and of the draft states of the requests that they allow:
    up to 0.5.11 of all that may run."""
    state = state_bytes(spec)
    if not _drafts(spec):
        return Interval(slots * state, (slots + 1) * state, (slots + 1) * state)
    running = max(1, (spec.max_running_requests or RUNNING) // _replicas(spec))
    first = spec.version is not None and spec.version <= (0, 5, 11)
    needs = [
        state * (slots + 1 + tokens * (running if first else min(running, slots // each) + 1))
        for tokens, each in _choices(spec)
    ]
    return hull(*needs, expected=sorted(needs)[len(needs) // 2])


def state_bytes(spec: LaunchSpec) -> float:
    """One request's state on one rank of the fullest pipeline stage; `--mamba-ssm-dtype` decides the width of its
    recurrent part, as `mamba2_state_dtype` of `configs/mamba_utils.py` has it."""
    layers = spec.shape.linear_layers
    fullest = -(-layers // spec.pp) / layers if layers else 1.0
    whole = spec.shape.state_bytes
    if spec.mamba_dtype in ("bfloat16", "float16"):
        whole = spec.shape.conv_bytes + (whole - spec.shape.conv_bytes) / 2
    return whole / spec.attention_ranks * fullest


def _drafts(spec: LaunchSpec) -> bool:
    return bool(spec.speculative) and str(spec.speculative).upper() not in ("NONE", "NGRAM")


def _replicas(spec: LaunchSpec) -> int:
    return spec.dp if spec.dp_attention else 1


def _drafts_first(spec: LaunchSpec, budget: Interval, share: float) -> Interval:
    """Up to 0.5.11 the states of all draft tokens of all running requests are taken off before the budget is split."""
    running = max(1, (spec.max_running_requests or RUNNING) // _replicas(spec))
    counts = [spec.draft_tokens] if spec.draft_tokens else DRAFTED
    taken = [state_bytes(spec) * running * tokens for tokens in counts]
    rest = (budget - hull(*taken, expected=sorted(taken)[len(taken) // 2])).at_least(0.0)
    return Interval(rest.low * share, rest.expected * share, rest.high * share + state_bytes(spec))


def _drafts_inside(spec: LaunchSpec, budget: Interval, share: float) -> Interval:
    """From 0.5.14 on slots and draft states share the states' part; the limit on the running requests leaves what their
    draft states do not need to the pool. Where no flag is known to limit them, the high end has one request."""
    asked = spec.max_running_requests
    usual, most, least = (
        sorted(_left(spec, end, share, running, tokens, slots) for tokens, slots in _choices(spec))
        for end, running in (
            (budget.expected, asked or RUNNING), (budget.high, asked or 1), (budget.low, asked or RUNNING)
        )
    )  # fmt: skip
    return Interval(least[0], min(max(usual[len(usual) // 2], least[0]), most[-1]), most[-1])


def _choices(spec: LaunchSpec) -> list[tuple[int, int]]:
    slots = (1,) if spec.disable_radix_cache else SLOTS
    return [(tokens, count) for tokens in ([spec.draft_tokens] if spec.draft_tokens else DRAFTED) for count in slots]


def _left(spec: LaunchSpec, budget: float, share: float, running: int, tokens: int, slots: int) -> float:
    state = state_bytes(spec)
    part = budget * (1 - share)
    count = (part - state * (1 + tokens)) // (state * (1 + tokens / slots)) if state else 0
    if count <= 0:
        return budget * share  # the engine would refuse: nothing tells how it was started instead
    capped = min(max(1, running // _replicas(spec)), count // slots)
    return max(budget - (count + 1) * state - (capped + 1) * tokens * state, budget * share)
