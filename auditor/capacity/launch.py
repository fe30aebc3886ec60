"""A launch as files state it -> what the estimate is asked about, or the words for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.capacity.accelerators import Gpu
from auditor.capacity.catalog import find_model, quantization_word, requantized
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
    "kt-num-gpu-experts": "gpu_experts",
    "speculative-num-draft-tokens": "draft_tokens",
    "max-mamba-cache-size": "mamba_slots",
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
    "mamba-ssm-dtype": "mamba_dtype",
}
SWITCHES: Mapping[str, str] = {
    "enable-dp-attention": "dp_attention",
    "disable-radix-cache": "disable_radix_cache",
    "disable-hybrid-swa-memory": "disable_hybrid_swa_memory",
    "enable-hierarchical-cache": "hierarchical_cache",
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
            held=gpu.held,
            **self.given,
        )


NOT_MODELLED = (
    "attn-cp-size", "enable-dsa-cache-layer-split", "enable-kv-cache-sharding", "enable-hisparse",
    "enable-unified-memory",
)  # fmt: skip
"""Options that spread or replace the KV pool in ways that the estimate does not know."""


PRECISIONS: Mapping[str, tuple[str, ...]] = {
    "fp8": ("fp8",), "fp8_e4m3": ("fp8",), "int8": ("fp8",), "w8a8": ("fp8",), "mxfp8": ("fp8",),
    "fp4": ("nvfp4", "mxfp4"), "nvfp4": ("nvfp4",), "mxfp4": ("mxfp4",), "int4": ("int4",), "w4a16": ("int4",),
    "awq": ("int4",), "gptq": ("int4",), "w4afp8": ("w4afp8",),
    "bf16": ("bf16",), "bfloat16": ("bf16",), "fp16": ("bf16",), "float16": ("bf16",), "half": ("bf16",),
}  # fmt: skip
"""Words that documents have for the weights of a model -> ours; `fp4` is either of the two 4-bit floats."""
FOUR_BITS = frozenset({"nvfp4", "mxfp4", "int4", "w4afp8"})


@dataclass(frozen=True, slots=True)
class Named:
    """What the model of a launch can be, the likeliest first, and where that was read when it was not the path."""

    shapes: tuple[ModelShape, ...] = ()
    notes: tuple[str, ...] = ()


def shape_named(launch: EngineLaunch) -> ModelShape | None:
    """The architecture of a launch's model: by its path or id, else by the name that it is served under."""
    shapes = model_named(launch).shapes
    return shapes[0] if shapes else None


def model_named(launch: EngineLaunch) -> Named:
    """The catalogue's entry for the id or path of a launch's model, else for the name that it is served under; that one
    tells the architecture only, so every common quantization of it stands beside it. What `--quantization` or the
    document around the launch says of the weights decides between them."""
    served = launch.flags.get("served-model-name")
    name = launch.model if isinstance(launch.model, str) else ""
    found = find_model(name) if name else None
    notes: tuple[str, ...] = ()
    alias = found is None
    if found is None and served is not None and isinstance(served.value, str):
        name = served.value
        found = find_model(name)
        notes = (f"the model is read from `--served-model-name {name}`",)
    if found is None:
        return Named()
    shape = found.shape
    said, where = _weights_said(launch, alias=alias)
    if said:
        if _agrees(shape, said):
            return Named((shape,), (*notes, where))
        others = tuple(requantized(shape, word) for word in said)
        both = quantization_word(name.rpartition("/")[2]) is not None  # the name says otherwise
        return Named((shape, *others) if both else others, (*notes, where))
    if not alias:
        return Named((shape,))
    words = ("fp8", "nvfp4", "int4") if shape.quantization == "bf16" else ("nvfp4", "int4")
    others = tuple(requantized(shape, word) for word in words if word != shape.quantization)
    return Named((shape, *others), notes)


def _weights_said(launch: EngineLaunch, *, alias: bool) -> tuple[tuple[str, ...], str]:
    """The quantizations that something beside the name states, and where. The flag counts where the name is an alias:
    the engine refuses a checkpoint of another type, and a 16-bit one becomes what the flag says."""
    flag, stated = launch.flags.get("quantization"), launch.precision
    if alias and flag is not None and isinstance(flag.value, str) and QUANTIZATIONS.get(flag.value):
        return (QUANTIZATIONS[flag.value],), f"the weights are read from `--quantization {flag.value}`"
    if stated is not None and isinstance(stated.value, str):
        words = PRECISIONS.get(stated.value.lower(), ())
        return words, f"the weights are read from `{stated.name}: {stated.value}` beside the launch"
    return (), ""


def _agrees(shape: ModelShape, said: tuple[str, ...]) -> bool:
    """Whether the catalogued checkpoint itself is what is said: of that type, or with experts of that width."""
    if shape.quantization in said:
        return True
    # bytes a parameter: of the 4-bit formats with their scales all have less than 0.6
    return shape.expert_bytes is not None and shape.expert_bytes[0] < 0.6 and not FOUR_BITS.isdisjoint(said)


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
        own = shape.quantization in FOUR_BITS
        given["quantization"] = None if own else QUANTIZATIONS.get(word) or None
    for name in NOT_MODELLED:
        flag = launch.flags.get(name)
        if flag is not None and (isinstance(flag.value, bool) or flag.value != 1):
            unset.append(name)
    fraction = given.get("fraction")
    if fraction is not None and not 0 < fraction < 1:
        del given["fraction"]
        unset.append("mem-fraction-static")
    if any(name in launch.flags for name in ("kt-weight-path", "kt-method", "kt-amx-weight-path", "kt-cpuinfer")):
        given.setdefault("gpu_experts", 0)  # ktransformers: the host computes all experts that no flag keeps back
    given["table"] = _table(launch)
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


def _table(launch: EngineLaunch) -> str | None:
    """Where the n-gram table of a model is told to be; a file is read in place of a copy in memory."""
    if "no-ple-offload-embedding" in launch.flags:
        return "accelerator"
    backend = launch.flags.get("ple-offload-backend")
    if backend is not None and backend.value == "file":
        return "disk"
    return "host" if "ple-offload-embedding" in launch.flags else None
