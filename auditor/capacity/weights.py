"""Bytes of weights on one accelerator: parameters by part, the quantization of each part, how each is spread.

Bytes per parameter: 4-bit block formats carry their scales (NVFP4 one fp8 scale a 16 values, MXFP4 one byte a 32,
int4 group formats about 2 bytes a 128 and zero points); fp8 block scales are below a thousandth. Quantized checkpoints
leave embeddings, norms and, in the 4-bit expert formats, attention in 16 bits.
"""

from __future__ import annotations

import math

from auditor.capacity.allocation import slack
from auditor.capacity.interval import Interval, exact, hull
from auditor.capacity.spec import LaunchSpec
from auditor.model.records import replace

EXPERT_BYTES = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.5625, "w4afp8": 0.52}
# Scales that Marlin's repacking left beside its own up to 0.5.15: 4 bytes for 32 values (`mxfp4_marlin_moe.py`,
# `marlin_utils_fp4.py`). DeepSeek-V4-Pro so weighs 125.65 GiB on each of eight H200 (SemiAnalysisAI/InferenceX#2128).
LOADED_SCALES = 4 / 32
# attention and dense layers: the low and the high reading, since requants differ in what they leave alone
OTHER_BYTES = {
    "bf16": (2.0, 2.0),
    "fp8": (1.0, 1.1),
    "nvfp4": (0.5625, 2.0),
    "mxfp4": (2.0, 2.0),
    "int4": (0.55, 2.0),
    "w4afp8": (1.0, 2.0),
}


def weights_per_gpu(spec: LaunchSpec) -> Interval | None:
    """Bytes on one accelerator after loading, draft model and repacked copies included; `None` when neither a parameter
    count nor a published size is known."""
    shape, parts = spec.shape, spec.shape.parameters
    if not parts.total and shape.checkpoint_bytes is None:
        return None
    quantization = spec.quantization or shape.quantization
    expert = EXPERT_BYTES.get(quantization, 2.0)
    low, high = OTHER_BYTES.get(quantization, (2.0, 2.0))
    moe = parts.experts > 0
    if quantization == "mxfp4" and spec.vendor == "amd":
        low = 1.0  # AMD's exports of one model have its attention in 16 bits or in fp8 (`MXFP4-AttnFP8`)
    if _plain(spec, quantization) and quantization == "fp8":
        high = 1.01  # every matrix but the head; block scales are a thousandth
    if quantization in ("nvfp4", "int4") and not moe:
        low, high = expert, expert * 1.25  # a dense model is quantized throughout but for its head
    if shape.linear_layers and not moe and quantization in ("nvfp4", "int4"):
        # requants of dense linear-attention hybrids leave these layers in anything from 4 to 16 bits: public indices
        # of one and the same 27 B model sum up to 20 and 28 GiB
        mixer = hull(expert, 2.0, expected=1.2)
    elif moe and quantization == "nvfp4":
        # of 23 published recipes for models with experts 16 leave attention in 16 bits, 6 in about 8, one in 4
        mixer = hull(low, high, expected=high)
    else:
        mixer = None
    usual = low if quantization in ("fp8", "bf16") or not moe else high if quantization == "mxfp4" else (low + high) / 2
    other = hull(low, high, expected=usual)
    spread = spec.tp * spec.pp  # experts are split over all ranks, by tensor or by expert parallelism
    attention_spread = spec.attention_ranks * spec.pp
    replicated_embedding = spec.dp_attention and spec.dp > 1
    embedding = parts.embedding * 2.0 / spec.tp
    if replicated_embedding:
        # the input embedding stands whole on each attention rank, the head stays split (`enable_dp_lm_head` is off)
        embedding = parts.embedding * (1.0 / spec.attention_ranks + 1.0 / spec.tp)
    experts = exact(parts.experts * expert / spread)
    host = _on_host(spec)
    if shape.expert_bytes is not None and quantization == shape.quantization:
        least, most = shape.expert_bytes
        native = spec.vendor == "nvidia" and spec.capability is not None and spec.capability >= 9
        native = native and shape.family == "compressed"
        version = spec.version or (0,)
        marlin = native and (spec.capability or 0.0) >= 12 and version >= (0, 5, 13)  # the default there
        kept = native and version >= ((0, 5, 16) if marlin else (0, 5, 19))  # arg_groups: deepseek_v4.py
        # before Hopper no release up to 0.5.23 has kernels for them: they are widened (sgl-project/sglang#40566)
        early = shape.family == "compressed" and spec.vendor == "nvidia" and (spec.capability or 9.0) < 9
        experts = exact(least) if kept else exact(most) if early else hull(least, most, expected=most)
        if marlin and not kept:
            experts = exact(least + LOADED_SCALES)
        experts = experts * (parts.experts / spread)
    if quantization in ("nvfp4", "mxfp4") and shape.expert_width:
        # block-scaled kernels take whole tiles of 128 columns; whether the rank's share is padded depends on the kernel
        share = shape.expert_width / (1 if spec.ep and spec.ep > 1 else spec.tp)
        experts = hull(experts, experts * (math.ceil(share / 128) * 128 / share), expected=experts.expected)
    if moe and not parts.embedding and quantization in ("nvfp4", "mxfp4", "int4", "w4afp8"):
        # only the total is known: between all of it and nine tenths of it are experts, the rest stays in 16 bits
        experts = hull(experts, experts * (0.9 + 0.1 * 2.0 / expert), expected=experts.expected * 1.1)
    experts = experts * host
    settled = dict(shape.part_bytes) if quantization == shape.quantization else {}
    if quantization == shape.quantization or EXPERT_BYTES.get(quantization, 2.0) < 1:
        settled.update(dict.fromkeys(shape.left_alone, 2.0))  # an fp8 flag on 16-bit weights would quantize them too
    of_attention, of_state, of_dense = (
        exact(settled[part]) if part in settled else spare
        for part, spare in (("attention", mixer or other), ("state", mixer or other), ("dense", other))
    )
    ranks = spec.attention_ranks
    heads = max(1.0 / ranks, 1.0 / max(1, shape.kv_heads))  # each rank has a key head of its own, or the same as others
    split = (parts.attention - parts.whole - parts.key_value) / ranks + parts.key_value * heads + parts.whole
    if parts.idle and (spec.version is None or spec.version >= (0, 5, 19)):
        built = hull(split - parts.idle, split) if spec.version is None else exact(split - parts.idle)
    else:
        built = exact(split)
    attention = of_attention * built * (1 / spec.pp) + of_state * (parts.state / attention_spread)
    dense = of_dense * (parts.dense / spread)
    if replicated_embedding and moe and (spec.deepep or spec.ep or spec.version is None):
        # shared experts and the first dense layers: split like the others, whole on each rank with all-to-all backends
        whole = of_dense * (parts.dense / attention_spread)
        wide = (spec.ep or 1) > 8  # more than one machine: nothing but an all-to-all backend serves that
        dense = whole if spec.deepep else hull(dense, whole, expected=(whole if wide else dense).expected)
    vision = parts.vision * 2.0 / spec.tp
    replicated = parts.replicated * 2.0 / spec.pp
    total = attention + dense + experts + (embedding + vision + replicated) + _table(spec, quantization)
    published = shape.checkpoint_bytes if quantization == shape.quantization and host.low == 1.0 else None
    if _plain(spec, quantization) and published is not None and published > 0.95 * parts.total * expert:
        published = None  # all matrices are counted; files of tied embeddings hold them twice
    if published is not None and shape.draft_layers and parts.embedding:
        # the published files hold the draft layers, which stay on disk without speculative decoding
        published -= parts.draft * shape.draft_layers * (2.0 if quantization in ("bf16", "int4", "nvfp4") else expert)
    loading = _loading(spec, quantization)
    counted = parts.experts * expert + of_attention.expected * parts.attention
    counted += of_state.expected * parts.state + of_dense.expected * parts.dense
    counted += (parts.embedding + parts.vision + parts.replicated) * 2.0
    share = total.expected / counted if parts.embedding and counted else 1 / spread  # more than that of an even split
    total = total * loading
    if published is not None and not replicated_embedding:
        # a published size can hold tied embeddings twice; the count can miss what it does not know
        counted_by_part = parts.embedding > 0
        whole = loading * (published * share)
        total = hull(total, whole) if counted_by_part and whole.expected > total.expected else whole
    elif published is not None and parts.total:
        total = total * min(max(published / counted, 0.9), 1.15)
    total = total + shape.rotary_bytes
    if _plain(spec, quantization):
        total = total + slack(spec, expert) + (UNIFIED_LOADING if spec.unified else CUDA_LOADING) * 2**30
    if shape.kv_lora_rank and shape.family in ("mla", "dsa"):
        # absorbed copies of kv_b in 16 bits (models/deepseek_v2.py: w_kc, w_vc)
        absorbed = shape.layers * shape.heads * shape.kv_lora_rank * (shape.nope_dim + shape.v_head_dim) * 2.0
        total = total + absorbed / attention_spread
    if _leaves_copies(spec, quantization):
        repacked = experts + of_attention * built * (1 / spec.pp) + dense
        total = total + hull(0.0, repacked, expected=repacked.expected / 2)
    total = total + _drafter(spec, quantization)
    return (total - spec.cpu_offload_gb * 2**30).at_least(0.0)


DRAFT_LOADED = (0, 5, 14)  # the first sampled release that loads the draft before it sizes the pool
HEADLESS = ("NGRAM", "NONE", "DFLASH", "DSPARK", "STANDALONE")  # algorithms whose draft shares no embedding


def _drafter(spec: LaunchSpec, quantization: str) -> Interval:
    """Bytes of the draft at the time when the pool is sized. A draft that shares the model's embedding and head has its
    own in 16 bits until the pool stands (sgl-project/sglang#36452, #37155, open in 0.5.23): 5.5 GiB for Qwen3.6-27B, of
    which 4.7 are these. Exports of 4 bits leave the draft layer in 8 or 16."""
    if not spec.speculative and spec.draft is None:
        return exact(0.0)
    shape, parts, algorithm = spec.shape, spec.shape.parameters, str(spec.speculative or "").upper()
    if algorithm in ("NGRAM", "NONE"):
        return exact(0.0)
    if spec.draft is not None:
        own = weights_per_gpu(replace(spec, shape=spec.draft, draft=None, speculative=None, quantization=None))
        draft = own if own is not None else exact(0.0)
    else:
        layers = max(1, shape.draft_layers) * (parts.draft or 0.01 * parts.total) / spec.tp
        least = EXPERT_BYTES.get(quantization, 2.0)
        draft = hull(0.5 * least, 2.0, expected=max(least, 1.0)) * layers
    if algorithm not in HEADLESS and parts.embedding:
        tables = parts.embedding * 2.0 / spec.tp
        draft = draft + (
            tables if spec.draft is None and shape.draft_layers else hull(0.0, tables, expected=tables / 2)
        )
    if spec.version is None:
        return hull(0.0, draft, expected=draft.expected)
    if spec.version >= DRAFT_LOADED:
        return draft
    return exact(0.0) if spec.version <= (0, 5, 11) else hull(0.0, draft)


COLLECTED = (0, 5, 19)  # the first sampled release that collects garbage before it measures what is free


def _leaves_copies(spec: LaunchSpec, quantization: str) -> bool:
    """Whether what was repacked at load may still be there when the free memory is measured. Until 0.5.19 nothing
    collected the reference cycles of loading (sgl-project/sglang#36583), and wrappers that load through the loaders of
    their parts keep up to all of their int4 layers so: 5.3 GiB a rank of Devstral-Small-2 in AWQ, 1.8 and 2.4 of Gemma
    4 12B and 26B."""
    early = spec.version is None or spec.version < COLLECTED
    return early and quantization == "int4" and spec.shape.nested_loader and spec.shape.vision_size is not None


# GiB beside the tensors of a dense model and the slack of their segments: kernels and workspaces. Logged are 0.00 to
# 0.16 (Llama-3.1-8B, MiniCPM5-1B, Qwen2.5 and Qwen3 of nine sizes on one and four cards), on memory shared with the
# host 0.25 to 0.27.
CUDA_LOADING = Interval(0.0, 0.02, 0.2)
UNIFIED_LOADING = Interval(0.0, 0.15, 0.5)


def _plain(spec: LaunchSpec, quantization: str) -> bool:
    """Whether the weights are those of a dense text model on CUDA whose layers are all of one width."""
    plain = spec.shape.dense_width > 0 and spec.shape.vision_size is None and spec.vendor == "nvidia"
    return plain and quantization in ("bf16", "fp8")


def _loading(spec: LaunchSpec, quantization: str) -> Interval:
    """What loading adds to the tensors: scales, padding to tile sizes, buffers of kernels and allocators. Logged `mem
    usage` over the count: 16 bits on one device 1.000 to 1.010 (Llama-3.1-8B, Qwen3-8B, Qwen2.5-7B), on several 1.00 to
    1.027; quantized 0.996 to 1.03 (GLM-5, DeepSeek-R1 in FP4, Gemma 4, Qwen3), compressed attention 1.03 to 1.055
    (DeepSeek-V4-Flash in both widths); on AMD, whose kernels shuffle and pad, 1.005 to 1.035 (GLM-5-FP8, Kimi-K2.5)."""
    if _plain(spec, quantization):
        return Interval(0.998, 1.0, 1.002 if quantization == "bf16" else 1.005)  # the rest is told in bytes
    if spec.vendor == "amd":
        return Interval(0.99, 1.02, 1.06)
    if quantization != "bf16":
        return Interval(0.99, 1.02, 1.07) if spec.shape.family == "compressed" else Interval(0.99, 1.01, 1.045)
    return Interval(0.99, 1.005, 1.02) if spec.gpus == 1 else Interval(0.99, 1.01, 1.04)


def _on_host(spec: LaunchSpec) -> Interval:
    """The share of the routed experts that the accelerators hold: the first `--kt-num-gpu-experts` of each layer where
    ktransformers computes the others on the host (`layers/moe/kt_ep_wrapper.py`)."""
    if spec.gpu_experts is None:
        return exact(1.0)
    if not spec.shape.expert_count:
        return exact(0.0) if not spec.gpu_experts else hull(0.0, 1.0)
    return exact(min(1.0, spec.gpu_experts / spec.shape.expert_count))


def _table(spec: LaunchSpec, quantization: str) -> Interval:
    """Bytes of n-gram tables on one rank: 8-bit in checkpoints of 8 bits and less, split over the ranks. CUDA keeps
    them in pinned host memory unless told otherwise (`arg_groups/model_overrides/qwen4_exp.py`); on memory shared with
    the host that takes as much, and nothing where `--ple-offload-backend file` leaves them on disk."""
    if not spec.shape.table_elements or spec.table == "disk" or (spec.table == "host" and not spec.unified):
        return exact(0.0)
    table = _table_bytes(spec, quantization)
    if spec.table is not None or spec.vendor != "nvidia":
        return table
    if spec.unified:
        return hull(0.0, table, expected=table.expected)
    return hull(0.0, table, expected=0.0) if spec.version is None else exact(0.0)


def _table_bytes(spec: LaunchSpec, quantization: str) -> Interval:
    narrow = hull(1.0, 2.0, expected=1.0) if quantization == "int4" else exact(1.0)
    return (exact(2.0) if quantization == "bf16" else narrow) * (spec.shape.table_elements / spec.tp)
