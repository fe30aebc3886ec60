"""The gate: is the engine that runs one that can keep its tenants apart? Pure judgement over `Worker`s."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from auditor.launch.versions import FIXED, guard_story
from auditor.live.agreement import agreement, short, together
from auditor.live.options import HEADROOM
from auditor.live.outcome import Result, Status
from auditor.live.server_info import Worker
from auditor.live.targets import Observation
from auditor.model.facts import Role
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass

PLACEHOLDER = Version("0.0.1.dev0")  # source builds without tags call themselves 0.0.0.dev0


@dataclass(frozen=True, slots=True)
class Criteria:
    """What is asked of the workers. `headroom` times the context must fit in the pool; `edge_limit` is the longest
    prompt, in tokens, that the front lets through."""

    minimum_version: str = FIXED
    headroom: float = HEADROOM
    edge_limit: int | None = None


def judge(seen: Sequence[tuple[Observation, Worker]], criteria: Criteria) -> tuple[Result, ...]:
    """Every check over every worker, worker by worker, then over all together."""
    results: list[Result] = []
    understood: list[Worker] = []
    for observation, worker in seen:
        if observation.documents.server_info is None:
            reason = "; ".join(observation.problems) or "no document"
            results.append(Result("answer", "undecided", f"no server document: {reason}", worker.name))
            continue
        results.extend(Result("answer", "note", problem, worker.name) for problem in observation.problems)
        understood.append(worker)
        results.extend(_worker(observation.target.role, worker, criteria))
    results.extend(together(understood, len(understood) == len(seen)))
    return tuple(results)


def front_limit(workers: Sequence[Worker]) -> int | None:
    """The longest prompt that every worker serves: what to configure at the front. `None` when one is unknown."""
    lengths = [worker.largest_prompt for worker in workers]
    if not lengths or any(length is None for length in lengths):
        return None
    return min(length for length in lengths if length is not None)


def agree(seen: Sequence[tuple[Observation, Worker]]) -> bool:
    """Whether nothing is left that a rollout in progress would explain: all answer and no two differ."""
    workers = [worker for observation, worker in seen if observation.documents.server_info is not None]
    return len(workers) == len(seen) and not any(result.status == "fail" for result in agreement(workers))


def _worker(asked: Role, worker: Worker, criteria: Criteria) -> Iterator[Result]:
    yield from _role(asked, worker)
    yield _version(worker, criteria.minimum_version)
    yield from _context(worker)
    yield _ranks(worker)
    yield _pool(worker, criteria.headroom)
    yield _edge(worker, criteria.edge_limit)
    yield _truncation(worker)
    yield from _backend(worker)


def _role(asked: Role, worker: Worker) -> Iterator[Result]:
    if asked == "unknown":
        if worker.stated_role == "unknown":
            yield Result("role", "note", "the document does not say whether this is prefill or decode", worker.name)
    elif worker.stated_role == "unknown":
        yield Result("role", "undecided", f"given as {asked}; the document has no disaggregation_mode", worker.name)
    elif asked != worker.stated_role:
        yield Result("role", "fail", f"given as {asked}, but it runs as {worker.stated_role}", worker.name)
    else:
        yield Result("role", "pass", f"runs as {asked}", worker.name)


def _version(worker: Worker, minimum: str) -> Result:
    if worker.version is None:
        return Result("version", "undecided", "the document has no version", worker.name)
    data = {"version": worker.version, "minimum": minimum}
    try:
        version = Version(worker.version)
    except InvalidVersion:
        return Result("version", "undecided", f"`{short(worker.version)}` is no version number", worker.name, data)
    if version < PLACEHOLDER:
        text = f"`{short(worker.version)}` is what a build without version tags calls itself; its commit would decide"
        return Result("version", "undecided", text, worker.name, data)
    if version >= Version(minimum):
        return Result("version", "pass", f"sglang {version}, at least {minimum}", worker.name, data)
    kind = " (a pre-release)" if version.is_prerelease and version.base_version == Version(minimum).public else ""
    story = f": it {guard_story(str(version))}" if version < Version(FIXED) else ""
    return Result("version", "fail", f"sglang {version}{kind} is below {minimum}{story}", worker.name, data)


def _context(worker: Worker) -> Iterator[Result]:
    if worker.capacity.conflict is not None:
        text = f"the document contradicts itself: {worker.capacity.conflict}"
        yield Result("consistency", "undecided", text, worker.name)
    if not worker.contexts:
        text = "no context length: neither /v1/models nor the document gives it (or state it with --context-length)"
        yield Result("context", "undecided", text, worker.name)
        return
    if len({tokens for _, tokens in worker.contexts}) > 1:
        shown = ", ".join(f"{tokens:,} ({source})" for source, tokens in worker.contexts)
        yield Result("context", "undecided", f"the context length is stated differently: {shown}", worker.name)


def _ranks(worker: Worker) -> Result:
    expected = worker.expected_ranks
    shown = [pool for pool in worker.ranks if pool is not None]
    data: dict[str, JsonValue] = {"ranks": list(worker.ranks), "expected": expected}
    if expected is None:
        return Result(
            "ranks", "undecided", "the document does not say how many data-parallel ranks there are", worker.name, data
        )
    # A single rank needs no list of its own: the figures at the top are its figures.
    if expected > 1 and len(shown) < expected:
        text = f"the pool of {len(shown)} of {expected} data-parallel ranks is shown; the others are unknown"
        return Result("ranks", "undecided", text, worker.name, data)
    if len(set(shown)) > 1:
        text = f"{expected} ranks with pools from {min(shown):,} to {max(shown):,} tokens; the smallest one counts"
        return Result("ranks", "note", text, worker.name, data)
    return Result("ranks", "pass", f"{expected} data-parallel rank{'s' if expected > 1 else ''}", worker.name, data)


def _pool(worker: Worker, headroom: float) -> Result:
    low, high, context = worker.capacity.low, worker.capacity.high, worker.context
    data = {"low": low, "high": high, "context": context, "headroom": headroom, "source": worker.capacity.source}
    if low is None:
        return Result("pool", "undecided", f"KV pool unknown: {worker.capacity.source}", worker.name, data)
    if context is None:
        return Result(
            "pool", "undecided", f"KV pool of {low:,} tokens; the context length is unknown", worker.name, data
        )
    needed = math.ceil(context * headroom)
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}" if high is not None else f"at least {low:,}"
    if high is not None and high < context:
        band = context - (high - 6)
        text = (
            f"the KV pool holds {size} tokens, fewer than one prompt of the {context:,} token context: "
            f"{band:,} prompt lengths pass the front and are refused inside"
        )
        return Result("pool", "fail", text, worker.name, data)
    if low >= needed:
        return Result(
            "pool",
            "pass",
            f"the KV pool holds {size} tokens, {low / context:.2f}x the {context:,} token "
            f"context (asked: {headroom:g}x)",
            worker.name,
            data,
        )
    if high is not None and high < needed:
        text = (
            f"the KV pool holds {size} tokens, {high / context:.2f}x the {context:,} token context; "
            f"{headroom:g}x is asked ({needed:,})"
        )
        return Result("pool", "fail", text, worker.name, data)
    text = (
        f"the KV pool holds {size} tokens, {needed:,} are asked ({headroom:g}x {context:,}): {worker.capacity.source}"
    )
    return Result("pool", "undecided", text, worker.name, data)


def _edge(worker: Worker, edge_limit: int | None) -> Result:
    largest = worker.largest_prompt
    data = {"largest_prompt": largest, "edge_limit": edge_limit}
    if largest is None:
        status: Status = "note" if edge_limit is None else "undecided"
        return Result(
            "edge-limit",
            status,
            "the longest prompt that is served is unknown: no max_req_input_len",
            worker.name,
            data,
        )
    if edge_limit is None:
        return Result(
            "edge-limit", "note", f"the longest prompt that is served has {largest:,} tokens", worker.name, data
        )
    if edge_limit <= largest:
        return Result(
            "edge-limit",
            "pass",
            f"the front lets {edge_limit:,} tokens through, {largest:,} are served",
            worker.name,
            data,
        )
    text = f"the front lets {edge_limit:,} tokens through, only {largest:,} are served: lower it to {largest:,}"
    return Result("edge-limit", "fail", text, worker.name, data)


def _truncation(worker: Worker) -> Result:
    paired = worker.role in ("prefill", "decode")
    if worker.auto_truncate is None:
        status: Status = "undecided" if paired else "note"
        return Result("auto-truncate", status, "the document has no allow_auto_truncate", worker.name)
    if not worker.auto_truncate:
        return Result("auto-truncate", "pass", "long prompts are refused, not cut", worker.name)
    if paired:
        text = (
            "--allow-auto-truncate is on: each role cuts a long prompt to its own limit, and decode then reads pages "
            "that prefill never sent; no release up to 0.5.23 compares the two"
        )
        return Result("auto-truncate", "fail", text, worker.name)
    text = "--allow-auto-truncate is on: a long prompt is cut without a word and answered with 200"
    return Result("auto-truncate", "note", text, worker.name)


def _backend(worker: Worker) -> Iterator[Result]:
    if worker.role in ("prefill", "decode") and worker.transfer_backend == "fake":
        text = "the transfer backend is `fake`: decode works on pages that nobody wrote"
        yield Result("transfer-backend", "fail", text, worker.name)
