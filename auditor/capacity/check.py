"""Whether the catalogues agree with themselves: `python -m auditor.capacity.check`, for whoever changes a data file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor.capacity.accelerators import find_gpu
from auditor.capacity.catalog import find_model
from auditor.capacity.spec import LaunchSpec
from auditor.capacity.weights import weights_per_gpu

_HERE = Path(__file__).resolve().parent
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[Bb](?![\w.])")
_ACTIVE = re.compile(r"\d+B-\d+E")  # the number of active parameters, and of experts
_MEMORY = re.compile(r"(?<![\d.])(\d+)gb(?![a-z0-9])")
QUANTIZATIONS = frozenset({"bf16", "fp8", "nvfp4", "mxfp4", "int4", "w4afp8"})


def problems() -> list[str]:
    """One line for each figure that contradicts another."""
    return [*_models(_read("models.json")["models"]), *_gpus(_read("gpus.json")["gpus"])]


def _read(name: str) -> Mapping[str, Any]:
    return dict(json.loads((_HERE / name).read_text(encoding="utf-8")))


def _models(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if list(entries) != sorted(entries):
        yield "models.json: the ids are not sorted"
    for name, entry in entries.items():
        if not entry.get("source"):
            yield f"{name}: no source"
        found = find_model(name)
        if found is None or found.id != name:
            yield f"{name}: not found under its own id"
            continue
        shape = found.shape
        if shape.quantization not in QUANTIZATIONS:
            yield f"{name}: quantization `{shape.quantization}`"
        if shape.full_layers + shape.swa_layers + shape.linear_layers > shape.layers:
            yield f"{name}: more full, window and linear layers than layers"
        if shape.context is not None and not 512 <= shape.context <= 20_000_000:
            yield f"{name}: a context of {shape.context} tokens"
        if not shape.kv_lora_rank and (shape.kv_heads < 1 or not 32 <= shape.head_dim <= 576):
            yield f"{name}: {shape.kv_heads} KV heads of width {shape.head_dim}"
        yield from _sizes(name, entry)


def _sizes(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """The count of the widths against the size in the name, the stated total and the published size."""
    found = find_model(name)
    counted = found.shape.parameters.total / 1e9 if found else 0.0
    if not found or not counted:
        return
    stated = [] if _ACTIVE.search(name) else [float(number) for number in _SIZE.findall(name)]
    total = entry.get("total_params_b") or (max(stated) if stated else None)
    if total and not 0.7 <= counted / total <= (1.35 if total > 2 else 1.8):
        yield f"{name}: {counted:.1f} billion parameters counted, {total:g} stated"
    published = found.shape.checkpoint_bytes
    if published is None:
        return
    loaded = weights_per_gpu(LaunchSpec(found.shape, memory=1e15))
    if loaded is not None and not 0.8 * loaded.low <= published <= 1.25 * loaded.high:
        yield f"{name}: published weights of {published / 2**30:.1f} GiB against {loaded.expected / 2**30:.1f} counted"


def _gpus(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for name, entry in entries.items():
        if not entry.get("source"):
            yield f"{name}: no source"
        memory = entry["memory_mib"] / 1024
        least = entry.get("smallest_mib", entry["memory_mib"]) / 1024
        for alias in (name, *entry["aliases"]):
            word = alias.lower()
            if owners.setdefault(word, name) != name:
                yield f"{name}: the alias `{alias}` belongs to {owners[word]}"
            found = find_gpu(alias)
            if found is None or found.name != name:
                yield f"{name}: the alias `{alias}` leads to {found.name if found else 'nothing'}"
            sizes = [] if "gh200" in word else [int(number) for number in _MEMORY.findall(word)]  # that is the host's
            if sizes and not any(0.85 * least <= size <= 1.1 * memory + 1 for size in sizes):
                yield f"{name}: the alias `{alias}` names another memory than {memory:.0f} GiB"


def main() -> int:
    """Print what contradicts; 1 when anything does."""
    found = problems()
    for line in found:
        print(line)
    print(f"{len(found)} contradictions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
