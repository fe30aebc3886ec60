"""The terminal view of a capacity estimate: a bar of the memory, a bar of context against pool, the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, TextIO

GIB = 2**30
WIDTH = 60


def write_capacity(rows: Sequence[dict[str, Any]], stream: TextIO) -> None:
    """One launch in full, or one line for each accelerator."""
    if len(rows) == 1:
        _one(rows[0], stream)
        return
    stream.write(f"{rows[0]['model']}, context {_tokens(rows[0]['context_tokens'])}\n")
    if rows[0]["missing"] and rows[0]["pool_tokens"] is None:
        stream.write(f"unknown: {rows[0]['missing'][0]}\n")
        return
    if rows[0].get("refused"):
        stream.write(f"the engine would not start: {rows[0]['refused']}\n")
        return
    idle = [row for row in rows if _refuses(row)]
    for row in rows:
        pool = row["pool_tokens"]
        text = f"{pool['low']:>12,} to {pool['high']:>12,} tokens" if pool else " " * 36
        if row not in idle:
            stream.write(f"  {row['gpu']:<22} {text}  {row['verdict']}\n")
    if idle:
        least = min(_all_weights(row)["low"] for row in idle)
        names = ", ".join(row["gpu"] for row in idle)
        text = f"{_gib(least)} of weights an accelerator do not fit, and the engine would not start: {names}"
        stream.write(fill(text, 100, initial_indent="  ", subsequent_indent="    ") + "\n")


def _all_weights(row: dict[str, Any]) -> dict[str, int]:
    """All weights of one rank, those too that the host is taken to keep."""
    parts = row["breakdown"]
    return dict(parts.get("all_weights_bytes_per_gpu") or parts["weights_bytes_per_gpu_interval"])


def _refuses(row: dict[str, Any]) -> bool:
    """Whether the weights alone keep the engine from starting."""
    return any(line.startswith("the weights do not fit") for line in row["assumptions"])


def _one(row: dict[str, Any], stream: TextIO) -> None:
    name = f"{row['model']} on {row['gpu'] or 'an accelerator of the given memory'}"
    if row.get("refused"):
        stream.write(f"{name}: the engine would not start, {row['refused']}\n\n")
    else:
        stream.write(f"{name}: {row['verdict']}\n\n")
    for line in row["missing"] if not row.get("refused") else ():
        stream.write(f"  missing: {line}\n")
    pool, parts = row["pool_tokens"], row["breakdown"]
    if pool is None or parts is None:
        return
    total = parts["gpu_memory_bytes"]
    weights, cache = parts["weights_bytes_per_gpu"], parts["kv_pool_bytes_per_gpu"]
    stream.write("  memory of one accelerator\n")
    stream.write(f"  [{_bar(((weights, 'W'), (cache, 'K'), (total - weights - cache, '.')), total)}]\n")
    if "all_weights_bytes_per_gpu" in parts:
        every = _gib(_all_weights(row)["expected"])
        stream.write(f"  W weights {_gib(weights)} without the experts: {every} with them, and they do not fit\n\n")
    elif weights > total:
        stream.write(f"  W weights {_gib(weights)}, of {_gib(total)}: they do not fit\n\n")
    else:
        stream.write(
            f"  W weights {_gib(weights)}   K KV pool {_gib(cache)}   . reserve {_gib(total - weights - cache)}"
            f"   of {_gib(total)}\n\n"
        )
    context = row["context_tokens"]
    if context:
        top = max(context, pool["high"])
        stream.write("  context against pool\n")
        owner = ", the model's own" if row["context_source"] == "model" else ""
        stream.write(f"  context [{_bar(((context, '='), (top - context, ' ')), top)}] {_tokens(context)}{owner}\n")
        sure, maybe = pool["low"], pool["high"] - pool["low"]
        stream.write(f"  pool    [{_bar(((sure, '='), (maybe, '~'), (top - pool['high'], ' ')), top)}] ")
        stream.write(f"{pool['low']:,} to {pool['high']:,} (expected {pool['expected']:,})\n\n")
    free = parts["free_before_load_bytes"]
    cell = parts["kv_bytes_per_token_per_gpu_interval"]
    lines = [
        ("free before loading", f"{_range(free)}"),
        ("x static fraction", f"{_fraction(parts)} ({parts['mem_fraction_source']})"),
        ("- weights", _range(parts["weights_bytes_per_gpu_interval"])),
        ("= KV pool", _range(parts["kv_pool_bytes_per_gpu_interval"])),
        (
            "/ bytes per token",
            f"{cell['low']:,} to {cell['high']:,}" if cell["low"] != cell["high"] else f"{cell['low']:,}",
        ),
        ("= tokens", f"{pool['low']:,} to {pool['high']:,}, expected {pool['expected']:,}"),
        ("longest prompt served", f"{row['longest_admitted_tokens']:,} (expected; min(context, pool) - 7)"),
    ]
    for name, text in lines:
        stream.write(f"  {name:<24}{text}\n")
    if row["assumptions"]:
        stream.write("\n  assumed\n")
        for line in row["assumptions"]:
            stream.write(f"  - {line}\n")
    if row.get("remedies"):
        stream.write("\n  what would make it fit\n")
        for one in row["remedies"]:
            tokens = one["pool_tokens"]
            if one["works"]:
                stream.write(f"  + {one['change']:<34} {tokens['low']:,} to {tokens['high']:,}: {one['verdict']}\n")
            else:
                stream.write(f"  - {one['change']}\n")


def _fraction(parts: dict[str, Any]) -> str:
    ends = parts["mem_fraction_static_interval"]
    if ends["low"] == ends["high"]:
        return f"{ends['low']:.3f}"
    return f"{ends['low']:.3f} to {ends['high']:.3f}, expected {ends['expected']:.3f}"


def _bar(parts: Sequence[tuple[float, str]], total: float) -> str:
    text = ""
    done = 0.0
    for size, sign in parts:
        done += max(size, 0)
        text += sign * max(0, round(WIDTH * done / total) - len(text)) if total else ""
    return text[:WIDTH].ljust(WIDTH)


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def _range(ends: dict[str, int]) -> str:
    return f"{_gib(ends['low'])} to {_gib(ends['high'])}, expected {_gib(ends['expected'])}"


def _tokens(value: int | None) -> str:
    return f"{value:,} tokens" if value else "unknown"
