"""What prefill and decode of one deployment have to agree on."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.checks.launches import (
    image_place,
    number,
    pairs,
    related,
    span_of,
    switched_on,
    text,
    version_of,
)
from auditor.model.facts import EngineLaunch, FactSet, Flag, Related, Unresolved
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass

Said = tuple[str, ...] | None
_BFLOAT = {"bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Params:
    """`replicated` are words in names of models whose KV cache is not split over the tensor-parallel ranks: their roles
    may differ in size, `unless` one of these words stands there too. `without_draft` are speculative algorithms that
    keep no draft KV."""

    replicated: tuple[str, ...] = ()
    unless: tuple[str, ...] = ("distill",)
    without_draft: tuple[str, ...] = ("NGRAM",)


@dataclass(frozen=True, slots=True)
class Difference:
    """One key on which a pair disagrees: what either says, the flags to show, and how sure it is."""

    key: str
    outcome: str
    prefill: str
    decode: str
    flags: tuple[str, ...]


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each key of a decode launch on which all of its prefill launches differ from it."""
    told = set()
    for pair in pairs(facts):
        found = [{difference.key: difference for difference in _differences(prefill, pair.decode, params)}
                 for prefill in pair.prefills]  # fmt: skip
        for key, difference in found[0].items():
            if not all(key in other for other in found):
                continue
            match = _match(difference, pair.prefills[0], pair.decode)
            if (match.span, key) not in told:  # one text that stands for several variants says it once
                told.add((match.span, key))
                yield match


def _match(difference: Difference, prefill: EngineLaunch, decode: EngineLaunch) -> Match:
    properties: dict[str, JsonValue] = {
        "key": difference.key,
        "prefill": difference.prefill,
        "decode": difference.decode,
    }
    return Match(
        outcome=difference.outcome,
        span=span_of(decode, *difference.flags),
        subject=difference.key,
        scope=decode.scope,
        values=properties,
        properties=properties,
        related=related([prefill], f"prefill: {difference.prefill}", *difference.flags),
    )


def _differences(prefill: EngineLaunch, decode: EngineLaunch, params: Params) -> Iterator[Difference]:
    for key in ("page-size", "context-length"):
        mine, other = number(decode.flags.get(key)), number(prefill.flags.get(key))
        if mine is not None and other is not None and mine != other:
            yield Difference(key, "differs", f"{key} {other}", f"{key} {mine}", (key,))
    kinds = _kv_type(prefill), _kv_type(decode)
    if None not in kinds and kinds[0] != kinds[1] and set(kinds) != {"auto", "bfloat16"}:
        key = "kv-cache-dtype"
        yield Difference(key, "differs", f"{key} {kinds[0]}", f"{key} {kinds[1]}", (key,))
    key = "max-total-tokens"
    mine, other = number(decode.flags.get(key)), number(prefill.flags.get(key))
    if mine is not None and other is not None and other != mine:
        yield Difference("pool", "may-differ", f"{key} {other}", f"{key} {mine}", (key,))
    yield from _speculative(prefill, decode, params)
    yield from _ranks(prefill, decode, params)


def _kv_type(launch: EngineLaunch) -> str | None:
    flag = launch.flags.get("kv-cache-dtype")
    if flag is None:
        return "auto"
    said = text(flag)
    return _BFLOAT.get(said, said) if said is not None else None


def _speculative(prefill: EngineLaunch, decode: EngineLaunch, params: Params) -> Iterator[Difference]:
    key = "speculative-algorithm"
    flags = prefill.flags.get(key), decode.flags.get(key)
    if any(flag is not None and isinstance(flag.value, Unresolved) for flag in flags):
        return
    words = [_algorithm(flag) for flag in flags]
    if words[0] != words[1] and not set(words) & {word.upper() for word in params.without_draft}:
        said = [word or f"no {key}" for word in words]
        # recent engines let decode alone speculate with some models: only two algorithms are certain to disagree
        yield Difference("speculative", "differs" if all(words) else "may-differ", said[0], said[1], (key,))


def _algorithm(flag: Flag | None) -> str:
    word = str(flag.value).upper() if flag is not None else ""
    return {"NEXTN": "EAGLE", "MTP": "EAGLE"}.get(word, word)  # other names of one algorithm in the engine's parser


def _ranks(prefill: EngineLaunch, decode: EngineLaunch, params: Params) -> Iterator[Difference]:
    sizes = [_attention_ranks(launch) for launch in (prefill, decode)]
    if None not in sizes and sizes[0] != sizes[1]:
        if _replicated(prefill, params) or _replicated(decode, params):
            return
        said = [f"attention over {size} {'rank' if size == 1 else 'ranks'}" for size in sizes]
        yield Difference("tp-size", "may-differ", said[0], said[1], ("tp-size", "dp-size"))


def _replicated(launch: EngineLaunch, params: Params) -> bool:
    """Whether each rank holds the whole KV cache: the model's attention is known to, or its name says so."""
    from auditor.capacity.launch import shape_named

    shape = shape_named(launch)
    if shape is not None:
        return shape.kv_lora_rank > 0 or shape.family == "compressed"
    served = launch.flags.get("served-model-name")
    names = [name.lower() for name in (launch.model, served.value if served else None) if isinstance(name, str)]
    return any(
        word in name and not any(other in name for other in params.unless)
        for name in names
        for word in params.replicated
    )


def _attention_ranks(launch: EngineLaunch) -> int | None:
    """Tensor-parallel size of the attention: under data-parallel attention each rank group holds whole heads."""
    sizes = []
    for name in ("tp-size", "dp-size"):
        flag = launch.flags.get(name)
        value = 1 if flag is None else number(flag)
        if value is None:
            return None
        sizes.append(value)
    attention = launch.flags.get("attn-dp-size")
    if attention is not None:
        given = number(attention)
        return None if given is None else max(1, sizes[0] // given)
    return max(1, sizes[0] // sizes[1]) if switched_on(launch.flags.get("enable-dp-attention")) else sizes[0]


CHECK = Check(
    name="role-agreement",
    params=Params,
    outcomes=("differs", "may-differ"),
    fields=("key", "prefill", "decode"),
    run=run,
    whole_tree=True,
)


@dataclass(frozen=True, slots=True)
class SkewParams:
    """No parameters."""


def skew(facts: FactSet, params: SkewParams) -> Iterator[Match]:
    """One match for each decode launch whose engine version differs from that of all of its prefill launches."""
    for pair in pairs(facts):
        mine = version_of(pair.decode, facts)
        others = [version_of(prefill, facts) for prefill in pair.prefills]
        other = others[0]
        if mine is None or other is None or None in others or mine in others:
            continue
        place, partner = image_place(pair.decode, facts), image_place(pair.prefills[0], facts)
        yield Match(
            outcome="skew",
            span=place.span if place is not None else span_of(pair.decode),
            subject="version",
            scope=pair.decode.scope,
            values={"prefill": other, "decode": mine},
            properties={"prefill": other, "decode": mine},
            related=(
                Related(
                    partner.span if partner is not None else span_of(pair.prefills[0]), f"prefill runs sglang {other}"
                ),
            ),
        )


SKEW = Check(
    name="role-versions",
    params=SkewParams,
    outcomes=("skew",),
    fields=("prefill", "decode"),
    run=skew,
    whole_tree=True,
)
