"""The KV pool of a launch, by interval arithmetic, every step named.

budget = M0 * f - weights - extras;  tokens = floor_page(budget / cell), capped by `--max-total-tokens`
(`mem_cache/kv_cache_configurator.py`; `profile_max_num_token` before 0.5.11), where M0 is the memory free before the
weights are loaded, f the static fraction, cell the bytes per token.
"""

from __future__ import annotations

import math
from typing import Literal

from auditor.capacity.cell import cell_bytes
from auditor.capacity.fraction import SAMPLED, static_fraction, workspace
from auditor.capacity.interval import Interval, hull
from auditor.capacity.spec import LaunchSpec
from auditor.capacity.states import SLOTS, after_states
from auditor.capacity.weights import weights_per_gpu
from auditor.model.records import dataclass, replace

GIB = 2**30
ADMISSION_MARGIN = 7  # managers/tp_worker.py and utils.py: the longest accepted prompt is min(context, pool) - 7
HEADROOM = 1.25
HIGHEST = 0.95  # the highest fraction that public start-ups with full cards use
Word = Literal["covers", "low-headroom", "straddles", "below", "unknown"]


@dataclass(frozen=True, slots=True)
class PoolEstimate:
    """Tokens of the pool (per data-parallel rank), and the numbers that they come from, in bytes. `refused` says why
    no engine starts with these options, whatever the memory holds; `hosted` is what all weights would take where they
    do not fit and the experts are taken to stay on the host; `starts`: the expected reading leaves a pool."""

    tokens: Interval
    free: Interval
    fraction: Interval
    fraction_source: str
    weights: Interval
    cell: Interval
    budget: Interval
    assumptions: tuple[str, ...]
    capped: bool = False
    refused: str | None = None
    hosted: Interval | None = None
    starts: bool = True


def free_before_load(spec: LaunchSpec) -> Interval:
    """M0: what the driver reports less the contexts of CUDA or HIP and of the collectives. Public logs show 0.75 to
    1.15 GiB on one CUDA device (growing with the card), about 2 GiB with eight ranks, and 4 to 10 GiB on two
    to eight AMD ranks; on memory shared with the host, what the host leaves."""
    total = spec.memory / GIB
    if spec.unified:
        # public start-ups on one and the same device: 111 to 113 GiB free of 120 in five, 41 and 47 beside other work
        return hull(total * 0.33, total * 0.985, expected=total * 0.935) * GIB
    ranks = min(spec.tp * spec.pp // max(1, spec.nodes or 1) or 1, 8)
    context = 0.65 + 0.0055 * total
    smallest = spec.smallest / GIB if spec.smallest else None
    if spec.vendor not in ("nvidia", "amd"):
        # npu-smi shows 3.1 to 3.4 GB in use on idle Ascend devices (vllm-project/vllm-ascend issue 2534)
        low = (total if smallest is None else smallest) - 4.5
        return (Interval(low, max(low, total - 3.0), max(low, total - 0.5)) * GIB).at_least(1.0)
    if spec.vendor == "amd":
        collective = Interval(1.6, 6.0, 9.6) if ranks > 1 else Interval(0, 0, 0)
        return ((Interval(total - 1.5, total - 0.9, total - 0.4) - collective) * GIB).at_least(1.0)
    collective = (
        Interval(0.1, 0.6, 1.2) if 1 < ranks < 8 else Interval(0.4, 0.9, 1.8) if ranks >= 8 else Interval(0, 0, 0)
    )
    if spec.ep and spec.ep > 8:
        collective = collective + Interval(0.2, 1.0, 1.8)  # NVSHMEM and all-to-all buffers of wide expert parallelism
    least, usual, most = (held / GIB for held in spec.held)
    # a GeForce that also shows a desktop has 0.3 GiB and more in use before anything starts; machines with several of
    # them show none in public logs
    low = (total if smallest is None else smallest) - context - max(0.35, usual + 0.35, most if spec.gpus == 1 else 0.0)
    bare = Interval(low, total - context - usual, total - context - least + 0.3)
    return ((bare - collective) * GIB).at_least(1.0)


def estimate_pool(spec: LaunchSpec) -> PoolEstimate:
    """The pool of one data-parallel rank. Never raises; a launch whose weights do not fit has a pool of 0."""
    free = free_before_load(spec)
    loaded = weights_per_gpu(spec)
    whole = _without_experts(spec, loaded, free)
    if whole is not None:
        hosted, loaded = loaded, whole
    else:
        hosted = None
    weights = loaded if loaded is not None else Interval(0.0, free.expected * 0.5, free.high)
    fraction, source = static_fraction(spec, weights.low / free.high)
    cell = cell_bytes(spec)
    if spec.fraction is None and fraction.low * free.low <= weights.high and weights.low < HIGHEST * free.high:
        # under the heuristic the engine would refuse to start on some reading: what runs then has a fraction from
        # elsewhere, of which only the ends are known
        needed = weights.expected / free.expected
        middle = fraction.expected if fraction.expected > needed else (min(needed, HIGHEST) + HIGHEST) / 2
        fraction = hull(fraction, HIGHEST, expected=middle)
        source = f"{source}, or given elsewhere: the weights may leave nothing under it"
    budget = free * fraction - weights
    full = hosted is not None or weights.low > HIGHEST * free.high
    assumptions = (*_assumptions(spec), *_refusals(spec, full, hosted is not None))
    if loaded is None:
        assumptions = (*assumptions, "neither parameters nor published size known: the upper bound is all that holds")
    if spec.shape.vision_size is not None and (spec.version is None or spec.version >= (0, 5, 19)):
        extra = 100 * 2**20 if spec.version is not None else 0
        budget = budget - Interval(0, extra, 1124 * 2**20)
    budget = budget.at_least(0.0)
    starts = budget.expected > 0.0
    if not starts and budget.high > 0.0:
        # an engine that leaves nothing does not start: what runs has one of the readings that leave something
        budget = Interval(budget.low, (budget.low + budget.high) / 2, budget.high)
    before = budget
    if spec.shape.linear_layers:
        budget = after_states(spec, budget)
    raw = budget / cell
    page = spec.page_size or 1
    wider = _otherwise_set(spec, before, raw.high)
    if spec.context is not None and raw.high < spec.context <= wider:
        raw = Interval(raw.low, raw.expected, wider)
        assumptions = (*assumptions, f"the context asks for more than the default {_shares(spec)}: it may be set")
    if hosted is not None:
        raw = Interval(0.0, raw.expected, raw.high)  # some experts may be on the accelerators
    tokens = Interval(*(math.floor(value / page) * page for value in (raw.low, raw.expected, raw.high)))
    tokens = Interval(*(value * max(1, spec.dcp) for value in (tokens.low, tokens.expected, tokens.high)))
    capped = spec.max_total_tokens is not None and tokens.high >= spec.max_total_tokens
    if spec.max_total_tokens is not None:
        tokens = tokens.at_most(spec.max_total_tokens // page * page)
    return PoolEstimate(
        tokens, free, fraction, source, weights, cell, budget, assumptions, capped, _refused(spec), hosted, starts
    )


def _shares(spec: LaunchSpec) -> str:
    return "share of the states leaves" if spec.shape.linear_layers else "--swa-full-tokens-ratio leaves"


def _otherwise_set(spec: LaunchSpec, budget: Interval, most: float) -> float:
    """The tokens that the least share of the window pool or of the states would leave where a context is asked for that
    the default share cannot hold, and nothing says that the share is the default: one window, or one request's slots.
    Public launches of such contexts state it (`--swa-full-tokens-ratio 0.0625` makes 565,446 tokens of 102,094)."""
    if not spec.options_open or spec.context is None:
        return most
    if spec.shape.family == "swa" and spec.shape.window and spec.swa_full_tokens_ratio is None:
        least = replace(spec, swa_full_tokens_ratio=spec.shape.window / spec.context)
        return budget.high / cell_bytes(least).low if not spec.disable_hybrid_swa_memory else most
    stated = spec.mamba_slots or spec.mamba_full_memory_ratio is not None or spec.disable_radix_cache
    if spec.shape.linear_layers and not stated:
        return after_states(replace(spec, mamba_slots=SLOTS[0] * max(1, spec.dp)), budget).high / cell_bytes(spec).low
    return most


def _without_experts(spec: LaunchSpec, loaded: Interval | None, free: Interval) -> Interval | None:
    """The weights without the experts, where those keep all from fitting: such a model starts only with its experts on
    the host (`--kt-weight-path`), which is often set apart from the rest of the launch. `None` where all may fit."""
    if loaded is None or spec.gpu_experts is not None or not spec.shape.parameters.experts:
        return None
    if loaded.low <= HIGHEST * free.high:
        return None
    rest = weights_per_gpu(replace(spec, gpu_experts=0))
    return rest if rest is not None and rest.expected < HIGHEST * free.expected else None


def _assumptions(spec: LaunchSpec) -> tuple[str, ...]:
    said = []
    if spec.version is None:
        said.append("engine version not given: all heuristics from 0.4.6 to 0.5.23 are in the interval")
    elif spec.version[:3] > SAMPLED[-1]:
        later, last = (".".join(map(str, numbers)) for numbers in (spec.version, SAMPLED[-1]))
        said.append(
            f"engine version {later} is later than {last}, the last that was looked at: taken to do as that one"
        )
    if spec.fraction is None:
        said.append("no --mem-fraction-static: the engine's own heuristic")
    if spec.kv_dtype in (None, "auto"):
        said.append("KV cache type auto: follows the checkpoint")
    if spec.shape.family == "swa" and spec.swa_full_tokens_ratio is None:
        said.append("sliding-window pool at the default ratio of 0.8")
    if spec.shape.linear_layers and not spec.disable_radix_cache:
        said.append("linear-attention states take 0.9 / 1.9 of the budget, the default ratio")
    if spec.smallest:
        said.append(f"the name stands for {spec.smallest / GIB:.0f} GiB too: both are in the interval")
    if spec.shape.table_elements and spec.table is None:
        said.append("where the n-gram table is, nothing says: CUDA keeps it in host memory by default from 0.5.20 on")
    if spec.unified:
        said.append("memory shared with the host or other containers: what is free before loading depends on them")
    if spec.draft is not None:
        said.append("the draft model keeps its own rows for each token")
    elif spec.speculative:
        said.append("draft weights counted as one layer of the model")
    if spec.dp_attention and spec.dp > 1:
        said.append(f"the pool is that of one of {spec.dp} data-parallel ranks; a request lives in one")
    elif spec.dp > 1:
        said.append(f"the pool is that of one of {spec.dp} replicas of {spec.gpus} accelerators")
    kept = workspace(spec)
    if kept.low < 1:
        may = "may keep" if kept.high == 1 else "keeps"
        said.append(f"the aiter backend {may} 15 % of the fraction, as it does for contexts above 8,192")
    return tuple(said)


def _refused(spec: LaunchSpec) -> str | None:
    """What the engine's own start-up asserts: `nnodes` and `dp_size` in `server_args.py` of 0.4.6, later in
    `arg_groups/validation_hook.py` and `parallel_hook.py`."""
    if spec.nodes and spec.gpus % spec.nodes:
        return f"{spec.gpus} ranks are no multiple of {spec.nodes} nodes"
    if spec.dp_attention and spec.dp > 1 and spec.tp % spec.dp:
        return f"--tp-size {spec.tp} is no multiple of --dp-size {spec.dp}, which data-parallel attention splits it by"
    heads, ranks = spec.shape.heads, spec.attention_ranks
    return f"{heads} attention heads are no multiple of {ranks} ranks" if heads and heads % ranks else None


def _refusals(spec: LaunchSpec, full: bool, hosted: bool) -> tuple[str, ...]:
    """Reasons for which the engine would not start as asked, which an estimate of its pool has to name."""
    said = []
    own = spec.shape.context_at(spec.version)
    if full:
        kept = " unless the host keeps the experts (ktransformers), as this estimate takes it" if hosted else ""
        said.append(f"the weights do not fit: the engine would not start{kept}")
    refused = _refused(spec)
    if refused is not None:
        said.append(f"{refused}: the engine would not start")
    if spec.context is not None and own is not None and spec.context > own:
        said.append(
            f"the context is above the model's own {own:,}: the engine refuses it unless"
            " SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN is set"
        )
    return tuple(said)


def verdict(tokens: Interval, context: int | None, headroom: float = HEADROOM) -> Word:
    """How the pool stands to the window, as the contract defines the words."""
    if context is None:
        return "unknown"
    if tokens.high < context:
        return "below"
    if tokens.low < context:
        return "straddles"
    return "covers" if tokens.low >= headroom * context else "low-headroom"


def longest_admitted(tokens: float, context: int | None) -> int:
    """The longest prompt that the scheduler serves: min(context, pool) - 7."""
    limit = tokens if context is None else min(tokens, context)
    return max(0, int(limit) - ADMISSION_MARGIN)
