"""A launch as a file states it, as the question that the estimate answers; what is missing is named, never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.capacity.catalog import Gpu, find_gpu, find_model
from auditor.capacity.pool import PoolEstimate, Word, estimate_pool, verdict
from auditor.capacity.shapes import ModelShape, shape_of
from auditor.capacity.spec import LaunchSpec, version_of
from auditor.model.facts import EngineLaunch, FactSet, Flag, ModelConfig, Unresolved

# The field of `LaunchSpec` that each option fills, by canonical name.
INTEGERS = {
    "tp-size": "tp", "pp-size": "pp", "dp-size": "dp", "ep-size": "ep", "nnodes": "nodes", "dcp-size": "dcp",
    "context-length": "context", "max-total-tokens": "max_total_tokens",
    "chunked-prefill-size": "chunked_prefill_size", "max-prefill-tokens": "max_prefill_tokens",
    "max-running-requests": "max_running_requests", "cuda-graph-max-bs-decode": "cuda_graph_max_bs",
    "page-size": "page_size",
}  # fmt: skip
FLOATS = {
    "mem-fraction-static": "fraction", "swa-full-tokens-ratio": "swa_full_tokens_ratio",
    "mamba-full-memory-ratio": "mamba_full_memory_ratio", "cpu-offload-gb": "cpu_offload_gb",
}  # fmt: skip
TEXTS = {
    "kv-cache-dtype": "kv_dtype", "quantization": "quantization", "disaggregation-mode": "role",
    "speculative-algorithm": "speculative",
}  # fmt: skip
SWITCHES = {
    "enable-dp-attention": "dp_attention", "disable-radix-cache": "disable_radix_cache",
    "disable-hybrid-swa-memory": "disable_hybrid_swa_memory",
}  # fmt: skip
# What `--quantization` says of the weights; the flag on a checkpoint that is quantized already only names the kernel.
QUANTIZATIONS = {
    "fp8": "fp8", "modelopt": "fp8", "modelopt_fp8": "fp8", "w8a8_fp8": "fp8", "w8a8_int8": "fp8",
    "blockwise_int8": "fp8", "modelopt_fp4": "nvfp4", "petit_nvfp4": "nvfp4", "mxfp4": "mxfp4", "quark": "mxfp4",
    "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4", "moe_wna16": "int4",
    "w4afp8": "w4afp8", "compressed-tensors": "",
}  # fmt: skip
PACKED = ("nvfp4", "mxfp4", "int4", "w4afp8")


@dataclass(frozen=True, slots=True)
class LaunchPool:
    """The pool of one launch: `estimate` is `None` where `missing` says what is not known; `context` in tokens with
    where it comes from (`flag`, `model`)."""

    word: Word
    estimate: PoolEstimate | None
    context: int | None
    context_source: str | None
    missing: tuple[str, ...] = ()


def pool_of(launch: EngineLaunch, version: str | None, models: Sequence[ModelConfig] = ()) -> LaunchPool:
    """The estimate for one launch. Never raises: a launch that says too little has the word `unknown`."""
    missing: list[str] = []
    shape = _shape(launch, models, missing)
    gpu = _gpu(launch, missing)
    given = _given(launch.flags, missing)
    context = given.get("context") or (shape.context if shape else None)
    source = "flag" if given.get("context") else "model" if context else None
    if shape is None or gpu is None or missing:
        return LaunchPool("unknown", None, context, source, tuple(missing))
    if shape.family == "compressed" and shape.token_bytes is None:
        return LaunchPool("unknown", None, context, source, ("the KV bytes per token of this compressed attention",))
    quantization = QUANTIZATIONS.get(given.get("quantization") or "", given.get("quantization")) or None
    given["quantization"] = None if shape.quantization in PACKED else quantization
    if launch.nodes is not None:
        given.setdefault("nodes", launch.nodes)
    backend = launch.flags.get("moe-a2a-backend")
    spec = LaunchSpec(
        shape=shape,
        memory=gpu.memory,
        vendor=gpu.vendor,
        capability=gpu.capability,
        unified=gpu.unified,
        smallest=gpu.smallest,
        deepep=backend is not None and backend.value == "deepep",
        version=version_of(version),
        **given,
    )
    estimate = estimate_pool(spec)
    missing_context = () if context else ("the context length: neither a flag nor the model's configuration gives it",)
    return LaunchPool(verdict(estimate.tokens, context), estimate, context, source, missing_context)


def engine_version(launch: EngineLaunch, facts: FactSet) -> str | None:
    """The engine's version where the tree says it: by the image of the launch, else by the one pin of its file."""
    from auditor.launch.images import image_verdict, is_watched
    from auditor.launch.versions import package_verdict

    if launch.image is not None and is_watched(launch.image):
        return image_verdict(launch.image).version
    path = launch.span.path
    found = {package_verdict(fact).version for fact in facts.packages if fact.span.path == path}
    return found.pop() if len(found) == 1 else None


def _shape(launch: EngineLaunch, models: Sequence[ModelConfig], missing: list[str]) -> ModelShape | None:
    if launch.model is None or isinstance(launch.model, Unresolved):
        name = f": `{launch.model.text}` is not set in the tree" if launch.model is not None else ""
        missing.append(f"the model{name}")
        return None
    name = str(launch.model)
    folder = name.strip("./").rstrip("/")
    for model in models:
        if folder and (model.model == name or model.span.path.rpartition("/")[0].endswith(folder)):
            shape = shape_of(model.values)
            if shape is not None:
                return shape
    found = find_model(name)
    if found is None:
        missing.append(f"the architecture of `{name}`: not in the catalogue")
        return None
    return found.shape


def _gpu(launch: EngineLaunch, missing: list[str]) -> Gpu | None:
    if launch.gpu is None or not launch.gpu.type:
        missing.append('the GPU: nothing in the tree names it (`gpu = "..."` in the configuration does)')
        return None
    gpu = find_gpu(launch.gpu.type)
    if gpu is None:
        missing.append(f"the memory of `{launch.gpu.type}`: not in the catalogue")
    return gpu


def _given(flags: Mapping[str, Flag], missing: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for table, kind in ((INTEGERS, int), (FLOATS, (int, float)), (TEXTS, str)):
        for name, field in table.items():
            flag = flags.get(name)
            if flag is None:
                continue
            if isinstance(flag.value, Unresolved):
                missing.append(f"--{name}: `{flag.value.text}` is not set in the tree")
            elif isinstance(flag.value, kind) and not isinstance(flag.value, bool):
                given[field] = flag.value
    for name, field in SWITCHES.items():
        flag = flags.get(name)
        if flag is not None and flag.value is not False:
            given[field] = True
    return given
