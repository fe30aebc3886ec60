"""How many tokens of one request a running engine can hold, from what it reports: an interval, with how it was found.

`max_total_num_tokens` is one rank's pool. Decode context parallelism (`dcp_size`) and sharded KV pages widen what one
request may use: 0.5.19 reports the rows of the rank and multiplies by `dcp_size` at admission, 0.5.22 the product;
sharded pages (0.5.22) are multiplied at admission only: by the attention context-parallel width, or without one by the
attention tensor-parallel width for latent attention and not at all for the rest. Read in `managers/tp_worker.py` and
`model_executor/model_runner.py` of those releases; 0.5.20 and 0.5.21 may be either and give an interval.
"""

from __future__ import annotations

from auditor.model.records import dataclass

# The first refused prompt length is min(context, capacity) - 6: `tp_worker.py` takes one token off for the request and
# five for its output, and the scheduler refuses `len >= max_req_input_len`. So min - 7 is the longest that is served.
REFUSED_BELOW_CAPACITY = 6
ROWS_REPORTED_UNTIL = (0, 5, 19)
PRODUCT_REPORTED_FROM = (0, 5, 22)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Between `low` and `high` tokens; `high` is `None` when nothing bounds it, `low` when nothing is known.
    `conflict` says in words which two statements cannot both be true."""

    low: int | None
    high: int | None
    source: str
    conflict: str | None = None


def capacity_of(
    *,
    reported: int | None,
    smallest: int | None,
    first_limit: int | None,
    context: int | None,
    dcp: int,
    shards: tuple[int, int | None],
    version: str | None,
) -> Capacity:
    """The tokens that one request may use, on the rank that holds the fewest.

    `reported` is the pool of the first rank, `smallest` that of the smallest one. `first_limit` is the engine's own
    admission limit (`max_req_input_len`) on the first rank, min(context, capacity) - 6: where it lies below the context
    it gives the capacity to the token.
    """
    if smallest is None:
        return Capacity(None, None, "no pool size in the document")
    low, high, source = _widened(smallest, dcp, shards, version)
    if first_limit is None or context is None or reported is None:
        return Capacity(low, high, source)
    bound = first_limit + REFUSED_BELOW_CAPACITY
    _, first_high, _ = _widened(reported, dcp, shards, version)
    if bound > context:
        conflict = f"max_req_input_len {first_limit} does not fit the context length {context}"
        return Capacity(low, high, source, conflict)
    if first_high is not None and bound > first_high:
        conflict = f"max_req_input_len {first_limit} does not fit the pool of {reported} tokens"
        return Capacity(low, high, source, conflict)
    if bound == context:
        # Admission says only that the capacity reaches the context; that helps where the report leaves it open.
        return Capacity(low if low == high else max(low, context), high, source)
    exact = min(bound, low) if low == high else bound
    return Capacity(exact, exact, "max_req_input_len + 6" if exact == bound else source)


def release(version: str | None) -> tuple[int, ...] | None:
    """The leading numbers of a version, `None` when it has none."""
    if version is None:
        return None
    numbers: list[int] = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers) or None


def _widened(
    reported: int, dcp: int, shards: tuple[int, int | None], version: str | None
) -> tuple[int, int | None, str]:
    fewest, most = shards
    if most is None:
        return reported, None, "max_total_num_tokens; KV sharding is on and widens it by a width that is not shown"
    if fewest != most:
        text = f"max_total_num_tokens, which KV sharding may widen up to {most} times"
        return reported * fewest, reported * most, text
    if most > 1:
        return reported * most, reported * most, f"max_total_num_tokens x {most} KV shards"
    if dcp <= 1:
        return reported, reported, "max_total_num_tokens"
    numbers = release(version)
    if numbers is not None and numbers >= PRODUCT_REPORTED_FROM:
        return reported, reported, "max_total_num_tokens, dcp_size included"
    if numbers is not None and numbers <= ROWS_REPORTED_UNTIL:
        return reported * dcp, reported * dcp, f"max_total_num_tokens x dcp_size {dcp}"
    return reported, reported * dcp, f"max_total_num_tokens, with or without dcp_size {dcp}"
