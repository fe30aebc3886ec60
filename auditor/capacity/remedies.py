"""What would make a launch fit its context: each answer is tried by the same estimator before it is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.capacity.accelerators import Gpu
from auditor.capacity.pool import HIGHEST, PoolEstimate, Word, estimate_pool, verdict
from auditor.capacity.spec import LaunchSpec
from auditor.model.records import dataclass, replace

GOOD = ("covers", "low-headroom")
MOST_GPUS = 64


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, and what the estimate says of the launch with it; `works` is whether the pool then holds the
    context on every reading."""

    change: str
    verdict: Word
    pool: PoolEstimate
    works: bool


def remedies(spec: LaunchSpec, context: int, headroom: float, cards: Iterable[Gpu]) -> Iterator[Remedy]:
    """Lower context, higher fraction, smaller KV elements, more accelerators, larger ones; nothing for a launch whose
    pool covers its context already."""
    estimate = estimate_pool(spec)
    if verdict(estimate.tokens, context, headroom) == "covers":
        return
    yield from _lower_context(spec, estimate, context, headroom)
    if spec.max_total_tokens is not None and spec.max_total_tokens < headroom * context:
        yield from _tried(
            f"no --max-total-tokens {spec.max_total_tokens}", replace(spec, max_total_tokens=None), context, headroom
        )
    yield _higher_fraction(spec, context, headroom)
    if estimate.cell.low == estimate.cell.high and spec.kv_dtype not in ("fp8_e4m3", "fp8_e5m2"):
        yield from _tried("--kv-cache-dtype fp8_e4m3", replace(spec, kv_dtype="fp8_e4m3"), context, headroom)
    if spec.shape.family == "swa" and not spec.disable_hybrid_swa_memory:
        yield from _smaller_window_pool(spec, context, headroom)
    yield from _more_gpus(spec, context, headroom)
    yield from _other_gpu(spec, context, headroom, cards)


def _tried(change: str, spec: LaunchSpec, context: int, headroom: float) -> Iterator[Remedy]:
    """The change, if it is of use."""
    estimate = estimate_pool(spec)
    word = verdict(estimate.tokens, context, headroom)
    if word in GOOD:
        yield Remedy(change, word, estimate, True)


def _smaller_window_pool(spec: LaunchSpec, context: int, headroom: float) -> Iterator[Remedy]:
    """The largest halved ratio that is of use and leaves the window pool ten windows, the least that public launches
    of long contexts keep (`--swa-full-tokens-ratio 0.03` on a pool of about 600,000 tokens with a window of 1,024)."""
    for ratio in (0.5, 0.25, 0.125, 0.0625, 0.03125):
        if ratio >= (spec.swa_full_tokens_ratio or 0.8) or ratio * context < 10 * spec.shape.window:
            continue
        found = next(
            _tried(f"--swa-full-tokens-ratio {ratio}", replace(spec, swa_full_tokens_ratio=ratio), context, headroom),
            None,
        )
        if found is not None:
            yield found
            return


def _lower_context(spec: LaunchSpec, estimate: PoolEstimate, context: int, headroom: float) -> Iterator[Remedy]:
    length = int(estimate.tokens.low / headroom) // 1024 * 1024
    if 0 < length < context:
        if spec.options_open:
            estimate = estimate_pool(replace(spec, context=length))  # what this context asks of options left open
        yield Remedy(f"--context-length {length}", verdict(estimate.tokens, length, headroom), estimate, True)


def _higher_fraction(spec: LaunchSpec, context: int, headroom: float) -> Remedy:
    """The lowest fraction in hundredths with which the pool holds the context, or that there is none. Above 0.95 no
    room is left for activations; what 1.0 would give tells whether the memory is too small at all."""
    first = round((spec.fraction or 0.5) * 100) + 1
    for hundredths in range(first, round(HIGHEST * 100) + 1):
        changed = replace(spec, fraction=hundredths / 100)
        estimate = estimate_pool(changed)
        word = verdict(estimate.tokens, context, headroom)
        if word in GOOD:
            return Remedy(f"--mem-fraction-static {hundredths / 100:.2f}", word, estimate, True)
    whole = estimate_pool(replace(spec, fraction=1.0, max_total_tokens=None))
    if whole.tokens.high < context:
        reason = f"no fraction: all memory that the weights leave holds {whole.tokens.high:,.0f} tokens at most"
    else:
        reason = f"no fraction up to {HIGHEST} is sure to do it"
    return Remedy(reason, verdict(whole.tokens, context, headroom), whole, False)


def _more_gpus(spec: LaunchSpec, context: int, headroom: float) -> Iterator[Remedy]:
    """Twice the ranks, and twice again; data-parallel attention keeps the ranks of each of its groups."""
    ranks = spec.tp * 2
    while ranks * spec.pp <= MOST_GPUS:
        spread = spec.dp_attention and spec.dp > 1
        grown = ranks // spec.tp
        changed = replace(
            spec,
            tp=ranks,
            dp=spec.dp * grown if spread else spec.dp,
            ep=spec.ep * grown if spec.ep and spec.ep > 1 else spec.ep,
            nodes=-(-ranks * spec.pp // 8) if ranks * spec.pp > 8 else spec.nodes,
        )
        estimate = estimate_pool(changed)
        word = verdict(estimate.tokens, context, headroom)
        if word in GOOD:
            flags = f"--tp-size {ranks}" + (f" --dp-size {changed.dp}" if spread else "")
            yield Remedy(flags, word, estimate, True)
            return
        ranks *= 2


def _other_gpu(spec: LaunchSpec, context: int, headroom: float, cards: Iterable[Gpu]) -> Iterator[Remedy]:
    """The smallest accelerator of the same vendor with more memory that does it."""
    larger = [card for card in cards if card.memory > spec.memory and card.vendor == spec.vendor and not card.unified]
    for card in sorted(larger, key=lambda card: card.memory):
        changed = replace(
            spec,
            memory=card.memory,
            capability=card.capability,
            unified=card.unified,
            smallest=card.smallest,
            held=card.held,
        )
        estimate = estimate_pool(changed)
        word = verdict(estimate.tokens, context, headroom)
        if word in GOOD:
            yield Remedy(f"{card.name} instead", word, estimate, True)
            return
