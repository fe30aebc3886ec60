"""A launch as files state it -> what the estimate is asked about, or the words for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.capacity.accelerators import Gpu
from auditor.capacity.catalog import find_model, requantized
from auditor.capacity.shapes import ModelShape
from auditor.capacity.spec import LaunchSpec, version_of
from auditor.model.facts import EngineLaunch, Unresolved
from auditor.model.records import dataclass

INTEGERS: Mapping[str, str] = {
    "tp-size": "tp",
    "pp-size": "pp",
    "dp-size": "dp",
    "ep-size": "ep",
    "context-length": "context",
    "max-total-tokens": "max_total_tokens",
    "chunked-prefill-size": "chunked_prefill_size",
    "max-prefill-tokens": "max_prefill_tokens",
    "max-running-requests": "max_running_requests",
    "cuda-graph-max-bs-decode": "cuda_graph_max_bs",
    "page-size": "page_size",
    "dcp-size": "dcp",
}
FLOATS: Mapping[str, str] = {
    "mem-fraction-static": "fraction",
    "swa-full-tokens-ratio": "swa_full_tokens_ratio",
    "mamba-full-memory-ratio": "mamba_full_memory_ratio",
    "cpu-offload-gb": "cpu_offload_gb",
}
TEXTS: Mapping[str, str] = {
    "kv-cache-dtype": "kv_dtype",
    "quantization": "quantization",
    "speculative-algorithm": "speculative",
    "attention-backend": "attention_backend",
}
SWITCHES: Mapping[str, str] = {
    "enable-dp-attention": "dp_attention",
    "disable-radix-cache": "disable_radix_cache",
    "disable-hybrid-swa-memory": "disable_hybrid_swa_memory",
}
QUANTIZATIONS: Mapping[str, str] = {
    "fp8": "fp8", "modelopt": "fp8", "modelopt_fp8": "fp8", "w8a8_fp8": "fp8", "w8a8_int8": "fp8",
    "blockwise_int8": "fp8", "modelopt_fp4": "nvfp4", "petit_nvfp4": "nvfp4", "mxfp4": "mxfp4", "quark": "mxfp4",
    "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4", "moe_wna16": "int4",
    "w4afp8": "w4afp8", "compressed-tensors": "",
}  # fmt: skip
"""The engine's words for a quantization -> ours; an empty one says nothing of the bytes."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the files say of one launch: the options of the estimate, and the flags that keep it from being made, by an
    unset variable or by an effect that is not modelled."""

    shape: ModelShape
    given: Mapping[str, Any]
    open: tuple[str, ...] = ()

    def on(self, gpu: Gpu) -> LaunchSpec:
        """The launch on this accelerator."""
        return LaunchSpec(
            shape=self.shape,
            memory=gpu.memory,
            vendor=gpu.vendor,
            capability=gpu.capability,
            unified=gpu.unified,
            smallest=gpu.smallest,
            **self.given,
        )


NOT_MODELLED = (
    "attn-cp-size", "enable-dsa-cache-layer-split", "enable-kv-cache-sharding", "enable-hisparse",
    "enable-unified-memory",
)  # fmt: skip
"""Options that spread or replace the KV pool in ways that the estimate does not know."""


def shape_named(launch: EngineLaunch) -> ModelShape | None:
    """The architecture of a launch's model: by its path or id, else by the name that it is served under."""
    shapes = shapes_named(launch)
    return shapes[0] if shapes else None


def shapes_named(launch: EngineLaunch) -> tuple[ModelShape, ...]:
    """What the model of a launch can be: the catalogue's entry for its id or path. The name that it is served under
    tells the architecture only, so every common quantization of it stands beside it."""
    if isinstance(launch.model, str) and launch.model:
        found = find_model(launch.model)
        if found is not None:
            return (found.shape,)
    served = launch.flags.get("served-model-name")
    found = find_model(served.value) if served is not None and isinstance(served.value, str) else None
    if found is None:
        return ()
    words = ("fp8", "nvfp4", "int4") if found.shape.quantization == "bf16" else ("nvfp4", "int4")
    others = tuple(requantized(found.shape, word) for word in words if word != found.shape.quantization)
    return (found.shape, *others)


def known_of(launch: EngineLaunch, shape: ModelShape, version: str | None) -> Known:
    """The options of a launch that move the pool."""
    given: dict[str, Any] = {}
    unset = []
    for names, kinds in ((INTEGERS, (int,)), (FLOATS, (int, float)), (TEXTS, (str,)), (SWITCHES, (bool,))):
        for flag_name, field in names.items():
            flag = launch.flags.get(flag_name)
            if flag is None:
                continue
            if isinstance(flag.value, Unresolved):
                unset.append(flag_name)
            elif isinstance(flag.value, kinds) and (bool in kinds or not isinstance(flag.value, bool)):
                given[field] = flag.value
    for name in ("tp", "pp", "dp", "dcp"):
        if given.get(name, 1) < 1:
            del given[name]
    word = given.get("quantization")
    if word is not None:
        # a checkpoint that is quantized already: the flag only names the kernel
        own = shape.quantization in ("nvfp4", "mxfp4", "int4", "w4afp8")
        given["quantization"] = None if own else QUANTIZATIONS.get(word) or None
    for name in NOT_MODELLED:
        flag = launch.flags.get(name)
        if flag is not None and (isinstance(flag.value, bool) or flag.value != 1):
            unset.append(name)
    fraction = given.get("fraction")
    if fraction is not None and not 0 < fraction < 1:
        del given["fraction"]
        unset.append("mem-fraction-static")
    drafted = launch.flags.get("speculative-draft-model-path")
    found = find_model(drafted.value) if drafted is not None and isinstance(drafted.value, str) else None
    backend = launch.flags.get("moe-a2a-backend")
    return Known(
        shape,
        {
            **given,
            "role": launch.role if launch.role in ("prefill", "decode") else None,
            "nodes": launch.nodes,
            "deepep": backend is not None and backend.value == "deepep",
            "draft": found.shape if found is not None else None,
            "version": version_of(version),
        },
        tuple(unset),
    )
