"""Do the workers agree? Prefill and decode must be of one kind, or pages of one mean something else to the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.live.outcome import Result
from auditor.live.server_info import Worker


def together(workers: Sequence[Worker], all_answered: bool) -> Iterator[Result]:
    """Every check that needs more than one worker."""
    yield from agreement(workers)
    prefill = [worker for worker in workers if worker.role == "prefill"]
    decode = [worker for worker in workers if worker.role == "decode"]
    if bool(prefill) != bool(decode) and all_answered:
        missing = "decode" if prefill else "prefill"
        yield Result("pair", "note", f"no {missing} worker was given: the two roles cannot be compared")
    if prefill and decode:
        yield _decode_pool(prefill, decode)


def agreement(workers: Sequence[Worker]) -> Iterator[Result]:
    """The figures that all workers must share. A `fail` here may be a rollout in progress."""
    if len(workers) < 2:
        return
    pairs = any(worker.role in ("prefill", "decode") for worker in workers)
    yield _same("version", "version", [(worker, worker.version) for worker in workers])
    yield _same("context", "context length", [(worker, worker.context) for worker in workers])
    yield _same("model", "model", [(worker, _model(worker)) for worker in workers])
    if pairs:
        yield _same("page-size", "page size", [(worker, worker.page_size) for worker in workers])
        yield _dtype(workers)
        backends = [(worker, worker.transfer_backend) for worker in workers]
        if any(backend is not None for _, backend in backends):
            yield _same("transfer-backend", "transfer backend", backends)


def _same(key: str, words: str, values: Sequence[tuple[Worker, int | str | None]]) -> Result:
    name = f"agree-{key}"
    known = sorted({value for _, value in values if value is not None}, key=str)
    if len(known) > 1:
        shown = "; ".join(f"{_show(value)} on {_names(values, value)}" for value in known)
        return Result(name, "fail", f"the {words} differs: {shown}", data={"values": list(known)})
    missing = [worker.name for worker, value in values if value is None]
    if missing:
        return Result(name, "undecided", f"the {words} is not shown by {', '.join(missing)}")
    return Result(name, "pass", f"one {words}: {_show(known[0])}", data={"values": list(known)})


def _dtype(workers: Sequence[Worker]) -> Result:
    names = {"bf16": "bfloat16"}
    values = [(worker, names.get(worker.kv_cache_dtype or "", worker.kv_cache_dtype)) for worker in workers]
    known = {value for _, value in values if value is not None}
    if "auto" in known and len(known) > 1 and len(known - {"auto"}) == 1:
        # `auto` is decided by model and GPU; releases before 0.5.19 may report the word and not what became of it.
        other = next(iter(known - {"auto"}))
        return Result("agree-kv-cache-dtype", "undecided", f"the KV dtype is auto on one worker and {other} on another")
    return _same("kv-cache-dtype", "KV dtype", values)


def _decode_pool(prefill: Sequence[Worker], decode: Sequence[Worker]) -> Result:
    limits = [worker.largest_prompt for worker in prefill]
    pools = [worker.largest_prompt for worker in decode]
    if any(value is None for value in (*limits, *pools)):
        return Result("decode-pool", "undecided", "the limits of prefill and decode cannot be compared: one is unknown")
    accepted = max(value for value in limits if value is not None)
    held = min(value for value in pools if value is not None)
    data = {"prefill_largest_prompt": accepted, "decode_largest_prompt": held}
    if held < accepted:
        text = f"decode serves prompts up to {held:,} tokens, prefill accepts {accepted:,}"
        return Result("decode-pool", "fail", text, data=data)
    return Result(
        "decode-pool", "pass", f"decode holds every prompt that prefill accepts ({accepted:,} tokens)", data=data
    )


def _model(worker: Worker) -> str | None:
    """What the model is called, wherever its files lie: `org/name`, a folder or a cache snapshot give `name`."""
    path = worker.model or worker.served_model
    if path is None:
        return None
    for part in path.replace("\\", "/").split("/"):
        if part.startswith("models--"):
            return part.split("--")[-1].lower()
    return path.rstrip("/\\").replace("\\", "/").split("/")[-1].lower() or None


def _names(values: Sequence[tuple[Worker, int | str | None]], wanted: int | str) -> str:
    return ", ".join(worker.name for worker, value in values if value == wanted)


def _show(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else short(value)


def short(text: str) -> str:
    """Text from a worker, cut to what a message can hold."""
    return text if len(text) <= 80 else text[:77] + "..."
