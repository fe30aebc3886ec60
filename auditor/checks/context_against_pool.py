"""The context length of a launch against its KV pool: by the cap where there is one, else by the estimate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from auditor.checks.base import Above, Check, Match
from auditor.checks.launches import SERVING, number, span_of, version_of
from auditor.model.facts import EngineLaunch, FactSet, Related, Unresolved
from auditor.model.findings import JsonValue, Level
from auditor.model.records import dataclass, replace

if TYPE_CHECKING:
    from auditor.capacity.accelerators import Gpu
    from auditor.capacity.launch import Known
    from auditor.capacity.pool import PoolEstimate
    from auditor.capacity.shapes import ModelShape

MARGIN = 7  # the longest prompt that is served is min(context, pool) - 7: see edge_limit.py
# One worker for both phases transfers nothing: what does not fit there is an outage for that client and no leak.
ALONE: dict[str, Level | None] = {"below": "warning", "straddles": "note", "low-headroom": None, "unknown": None}
CHOICE = 6  # alternatives that a file states; more are the whole catalogue, because none is stated
NAME_IT = (
    "Say `gpu` under `[tool.auditor]`, or name the accelerator beside the launch; `auditor capacity` shows the pool on"
    " each. Let the front refuse prompts longer than min(context, pool) - 7 tokens."
)


@dataclass(frozen=True, slots=True)
class Params:
    """`headroom` is how many context windows the pool has to hold."""

    headroom: Annotated[float, Above(0)] = 1.25


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each launch whose pool does not, or may not, hold the window that it offers."""
    for launch in facts.launches:
        match = certain(launch)
        if match is None and launch.entrypoint in SERVING:
            match = estimated(launch, facts, params)
        if match is not None:
            yield match


def certain(launch: EngineLaunch) -> Match | None:
    """`--max-total-tokens` under the context: no estimate is needed to know that the pool is too small. The context is
    the flag's, else the model's own where the catalogue knows it."""
    flag, cap = launch.flags.get("context-length"), launch.flags.get("max-total-tokens")
    limit = number(cap)
    if cap is None or limit is None:
        return None
    window = number(flag) if flag is not None else _own(launch)
    if window is None or limit >= window:
        return None
    place = flag.span if flag is not None else cap.span
    says = f"the front accepts prompts up to the context of {window} tokens"
    capped = f"the KV pool is capped at {limit} tokens"
    return Match(
        outcome="cap-below-context",
        span=place,
        subject="context-length",
        scope=launch.scope,
        values={"cap": limit, "context": window, "longest": limit - MARGIN, "band": window - limit + 6},
        properties={"context": window, "pool": limit, "longest_accepted": limit - MARGIN, "role": launch.role},
        related=(Related(cap.span, f"{capped} here"),) if flag is not None else (),
        flow=(Related(place, says), Related(cap.span, capped)),
        # the model's own window, on a worker that transfers nothing
        level="warning" if flag is None and launch.role not in ("prefill", "decode") else None,
    )


def _own(launch: EngineLaunch) -> int | None:
    if launch.entrypoint not in SERVING:
        return None
    from auditor.capacity.launch import shape_named

    shape = shape_named(launch)
    return shape.context if shape is not None else None


def estimated(launch: EngineLaunch, facts: FactSet, params: Params) -> Match | None:
    """The verdict of the estimate. Without a known accelerator only what holds on all of them is said for certain."""
    from auditor.capacity.accelerators import gpus, gpus_named
    from auditor.capacity.launch import known_of, model_named
    from auditor.capacity.spec import version_of as numbers_of

    flag = launch.flags.get("context-length")
    if flag is not None and number(flag) is None:
        return None  # the window itself is a variable: there is nothing to compare
    shapes, notes = _from_tree(launch, facts), tuple[str, ...]()
    if not shapes:
        named = model_named(launch)
        shapes, notes = named.shapes, named.notes
    version = version_of(launch, facts)
    context = number(flag) or (shapes[0].context_at(numbers_of(version)) if shapes else None)
    if context is None:
        return None
    if not shapes:
        what = launch.model if isinstance(launch.model, str) else "its model"
        return _unknown(launch, context, f"the architecture of `{what}` is in no catalogue and no file")
    if not shapes[0].priced:
        return _unknown(launch, context, "there is no public figure for the KV bytes of this model's attention")
    known = [known_of(launch, shape, version) for shape in shapes]
    if known[0].open:
        name = known[0].open[0]
        missing = f"the effect of `--{name}` on the pool"
        if isinstance(launch.flags[name].value, Unresolved):
            missing = f"`--{name}` is a variable that no file sets"
        elif name == "mem-fraction-static":
            missing = f"`--{name} {launch.flags[name].value}` is no share between 0 and 1"
        return _unknown(launch, context, missing)
    asked = launch.gpu.type if launch.gpu is not None else None
    cards = gpus_named(asked) if asked else ()
    match = _judged(launch, known, cards or tuple(gpus().values()), context, params)
    return _noted(match, launch, notes) if match is not None else None


def _noted(match: Match, launch: EngineLaunch, notes: tuple[str, ...]) -> Match:
    """The match with where model and weights were read among its assumptions, and the place of what was said."""
    listed = match.properties.get("assumptions")
    if not notes or not isinstance(listed, list):
        return match
    said = launch.precision
    place = (Related(said.span, "what the weights are said to be"),) if said is not None else ()
    properties = {**match.properties, "assumptions": [*notes, *listed]}
    return replace(match, properties=properties, related=(*match.related, *place))


def _from_tree(launch: EngineLaunch, facts: FactSet) -> tuple[ModelShape, ...]:
    """The shape of the configuration that the tree or the settings give under the launch's own name for its model."""
    config = next((model for model in facts.models if model.model is not None and model.model == launch.model), None)
    if config is None:
        return ()
    from auditor.capacity.shapes import shape_of

    shape = shape_of(config.values)
    return (shape,) if shape is not None else ()


def _judged(
    launch: EngineLaunch, known: list[Known], cards: tuple[Gpu, ...], context: int, params: Params
) -> Match | None:
    """One verdict over all that the accelerator and the weights can be, where weights and states leave a pool: where
    they do not, the engine would not start, so something else stands there than what was assumed."""
    from auditor.capacity.pool import estimate_pool, verdict

    found = [
        (verdict(estimate.tokens, context, params.headroom), card, estimate)
        for card in cards
        for one in known
        for estimate in (estimate_pool(one.on(card)),)
        if estimate.starts and estimate.hosted is None and estimate.tokens.high > 0
    ]
    if not found:
        return _unknown(launch, context, "weights and states leave no pool as the files state it: no engine starts so")
    words = {word for word, _, _ in found}
    word, card, estimate = found[0]
    if len(words) == 1:
        if word in ("covers", "unknown"):
            return None
        if estimate.capped and estimate.tokens.low >= _cap(launch, context):
            return None  # a cap that holds the context is what the operator asked for
        if len(found) == 1:
            return _match(word, launch, context, params, card.name, estimate)
        if word == "below":
            most = max((estimate for _, _, estimate in found), key=lambda estimate: estimate.tokens.high)
            names = [card.name for card in cards]
            where = " or ".join(names) if len(names) <= CHOICE else "any accelerator"
            return _match(word, launch, context, params, where, most)
    if not words & {"below", "straddles"}:
        return None  # the window fits on all, with more or less to spare
    if len(cards) == 1:
        return _unknown(launch, context, f"the quantization of the weights, which decides it on {card.name}")
    asked = launch.gpu.type if launch.gpu is not None else None
    named = f"`{asked}` is no accelerator of the catalogue" if asked else "no file names the accelerator"
    if len(cards) <= CHOICE:
        named = f"it runs on {' or '.join(card.name for card in cards)}"
    missing = f"{named}, and the context fits on some that load the model only"
    return _unknown(launch, context, missing, None if asked else NAME_IT)


def _cap(launch: EngineLaunch, context: int) -> float:
    """The least pool that a cap at or above the context leaves: the cap, rounded down to a page."""
    page = number(launch.flags.get("page-size")) or 1
    return context // page * page


def _unknown(launch: EngineLaunch, context: int, missing: str, remedy: str | None = None) -> Match | None:
    """A note, where a leak could follow and somebody chose the window; a cap at or above it is a choice as well."""
    if launch.role not in ("prefill", "decode") or "context-length" not in launch.flags:
        return None
    if number(launch.flags.get("max-total-tokens")) is not None:
        return None
    return Match(
        outcome="unknown",
        span=span_of(launch, "context-length"),
        subject="context-length",
        scope=launch.scope,
        values={"context": context, "missing": missing},
        properties={"context": context, "missing": missing, "role": launch.role},
        remedy=remedy,
    )


def _match(
    word: str, launch: EngineLaunch, context: int, params: Params, gpu: str, estimate: PoolEstimate
) -> Match | None:
    alone = launch.role not in ("prefill", "decode")
    level = ALONE[word] if alone else None
    if alone and level is None:
        return None
    low, expected, high = (int(getattr(estimate.tokens, end)) for end in ("low", "expected", "high"))
    if word == "straddles" and low == 0:
        level = "note"  # an interval that begins at nothing says little
    properties: dict[str, JsonValue] = {
        "context": context,
        "gpu": gpu,
        "role": launch.role,
        "pool": {"low": low, "expected": expected, "high": high},
        "longest_accepted": max(0, min(expected, context) - MARGIN),
        "mem_fraction_static": round(estimate.fraction.expected, 4),
        "mem_fraction_source": estimate.fraction_source,
        "kv_bytes_per_token": int(estimate.cell.expected),
        "weights_bytes_per_gpu": int(estimate.weights.expected),
        "assumptions": list(estimate.assumptions),
    }
    values: dict[str, JsonValue] = {
        "context": context,
        "gpu": gpu,
        "headroom": params.headroom,
        "pool": f"{low} to {high} tokens" if low != high else f"{high} tokens",
        "low": low,
        "high": high,
    }
    shown = []
    fraction = launch.flags.get("mem-fraction-static")
    if fraction is not None:
        shown.append(Related(fraction.span, "the share of GPU memory for weights and pool"))
    if launch.gpu is not None and launch.gpu.span is not None:
        shown.append(Related(launch.gpu.span, f"runs on {gpu}"))
    return Match(
        outcome=word,
        span=span_of(launch, "context-length", "mem-fraction-static", "model-path"),
        subject="context-length",
        scope=launch.scope,
        values=values,
        properties=properties,
        related=tuple(shown),
        confidence="medium",
        level=level,
    )


CHECK = Check(
    name="context-against-pool",
    params=Params,
    outcomes=("cap-below-context", "below", "straddles", "low-headroom", "unknown"),
    fields=("cap", "context", "longest", "band", "pool", "low", "high", "gpu", "headroom", "missing"),
    run=run,
)
