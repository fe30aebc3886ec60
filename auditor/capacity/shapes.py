"""What a model configuration says about KV cache and weights: layers, heads, states, parameters by part.

One reading serves the catalogue, which keeps the relevant keys of public config files, and a `config.json` of the tree.
Key names are those of the transformers library; the order of look-ups follows the engine's own (`model_config.py`:
`get_total_num_kv_heads`, `_derive_context_length`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from auditor.capacity.checkpoint import kv_scheme_of, quantization_of, text_config
from auditor.capacity.parameters import (
    Parameters,
    compressed_layers,
    count,
    expert_count,
    index_layers,
    layer_pattern,
    table_elements,
)
from auditor.model.records import dataclass

Family = Literal["gqa", "mla", "dsa", "swa", "linear", "compressed"]
CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
TOWER_DEPTH = ("num_hidden_layers", "vt_num_hidden_layers")  # the latter becomes the former in configs/kimi_k25.py
TOWER_WIDTH = ("hidden_size", "vt_hidden_size")
KV_HEAD_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Everything that the pool arithmetic needs of a model. Layer counts are of the whole model; `state_bytes` is one
    request's linear-attention state over all layers before tensor parallelism, with its recurrent part in 32 bits, and
    `conv_bytes` the part of it that keeps inputs of convolutions; `token_bytes` is a measured KV size per
    token where no formula is known; `checkpoint_bytes` the size of the published weights; `vision_size` the depth and
    width of a vision tower as the engine's memory heuristic reads them; `since` the first sampled engine release that
    knows the architecture; `expert_width` the inner width of one routed expert. `part_bytes` holds the bytes of a
    parameter of those parts that the checkpoint's own quantization settles, `expert_bytes` the least and most that one
    of an expert takes after loading where release and kernels decide it, `kv_scheme` the type of KV elements that the
    checkpoint prescribes (`fp8`, `none`, or `None` where that is not known). `compressed` counts the layers that keep
    one row for 4 and for 128 tokens, `index_pool` the tokens of one index row, `index_elements` what the indices of
    block-sparse attention keep of a token over all layers, `early_context` the window that releases before 0.5.11
    derive where it is another one; `expert_count` the routed experts of a layer, `table_elements` those of n-gram
    tables, `left_alone` the parts that every published quantization leaves in 16 bits, `nested_loader`
    whether its multimodal wrapper hands tensors on to the loaders of its parts, `rotary_bytes` the
    tables of rotary angles that each rank keeps; `hidden` the model's width and `dense_width` the inner one of its
    layers where they are plain ones."""

    family: Family
    layers: int
    full_layers: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    context: int | None
    quantization: str
    parameters: Parameters
    kv_lora_rank: int = 0
    rope_dim: int = 0
    nope_dim: int = 0
    heads: int = 0
    index_dim: int = 0
    index_layers: int = 0
    swa_layers: int = 0
    swa_kv_heads: int = 0
    swa_head_dim: int = 0
    swa_v_head_dim: int = 0
    window: int = 0
    linear_layers: int = 0
    state_bytes: float = 0.0
    conv_bytes: float = 0.0
    token_bytes: float | None = None
    checkpoint_bytes: float | None = None
    draft_layers: int = 0
    vision_size: tuple[int, int] | None = None
    since: tuple[int, ...] | None = None
    expert_width: int = 0
    part_bytes: tuple[tuple[str, float], ...] = ()
    kv_scheme: str | None = None
    expert_bytes: tuple[float, float] | None = None
    compressed: tuple[int, int] = (0, 0)
    index_pool: int = 1
    index_elements: int = 0
    early_context: int | None = None
    expert_count: int = 0
    table_elements: float = 0.0
    left_alone: tuple[str, ...] = ()
    nested_loader: bool = False
    rotary_bytes: float = 0.0
    hidden: int = 0
    dense_width: int = 0

    def context_at(self, version: tuple[int, ...] | None) -> int | None:
        """The context that a release derives: before 0.5.11, on transformers 4, Gemma 3 has the rope factor of its full
        layers beside its length, and the engine multiplies them."""
        early = version is not None and version < (0, 5, 11)
        return self.early_context if early and self.early_context is not None else self.context

    @property
    def priced(self) -> bool:
        """Whether the bytes of a token are known: of compressed attention only by its layers or a measured figure."""
        return self.family != "compressed" or self.token_bytes is not None or any(self.compressed)


def context_of(config: Mapping[str, Any], early: bool = False) -> int | None:
    """The derived context length: the first key that is set, times the rope factor unless the configuration keeps the
    original length beside it or scales the llama3 way (`hf_transformers_utils.py:get_context_length`); `early` as
    releases before 0.5.11 derive it."""
    text = text_config(config)
    base = next((text[key] for key in CONTEXT_KEYS if isinstance(text.get(key), int)), None)
    if base is None:
        return None
    scaling = text.get("rope_scaling")
    factor = 1.0
    if isinstance(scaling, Mapping):
        kind = scaling.get("rope_type") or scaling.get("type")
        if "original_max_position_embeddings" not in scaling and kind != "llama3":
            given = scaling.get("factor", 1)
            factor = float(given) if isinstance(given, (int, float)) else 1.0
    if str(text.get("model_type") or "").startswith("gemma3") and not early:
        factor = 1.0  # its rope parameters are kept by kind of layer, where the engine does not look
    return int(base * factor)


def shape_of(config: Mapping[str, Any]) -> ModelShape | None:
    """The shape that a configuration describes; `None` where layers or heads are missing."""
    text = text_config(config)

    def number(*names: str, default: int = 0) -> int:
        for name in names:
            value = text.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return int(value)
        return default

    layers = number("num_hidden_layers", "n_layers", "num_layers", "n_layer") or len(layer_pattern(text) or "")
    hidden = number("hidden_size", "d_model", "n_embd")
    lora = number("kv_lora_rank")
    heads = number("num_attention_heads", "n_heads", "n_head", default=number(*KV_HEAD_KEYS))
    if not layers or not (heads or lora):
        return None
    kv_heads = number(*KV_HEAD_KEYS, default=heads)
    head_dim = number("head_dim", default=hidden // heads if heads and hidden else 0)
    linear = _linear_layers(text, layers)
    swa = _swa_layers(text, layers)
    index_dim = number("index_head_dim")
    family: Family = "gqa"
    if number("compress_ratio", "c4_layers") or text.get("compress_ratios") or text.get("model_type") == "deepseek_v4":
        family = "compressed"
    elif linear:
        family = "linear"
    elif swa:
        family = "swa"
    elif lora:
        family = "dsa" if index_dim else "mla"
    pattern = layer_pattern(text)
    full = pattern.count("*") if pattern is not None else layers - linear - swa
    if isinstance(text.get("full_attention_layers"), int):
        full = int(text["full_attention_layers"])
    vision = config.get("vision_config")
    size = tower = None
    if isinstance(vision, Mapping):
        depth = next((vision[name] for name in (*TOWER_DEPTH, "depth", "layers") if vision.get(name)), None)
        width = next((vision[name] for name in (*TOWER_WIDTH, "width") if vision.get(name)), None)
        if isinstance(depth, int) and isinstance(width, int):
            tower = (depth, width)
        # the engine looks for these names alone and has defaults of its own (`adjust_mem_fraction_for_vlm`)
        size = (
            next((int(vision[name]) for name in TOWER_DEPTH if vision.get(name)), 24),
            next((int(vision[name]) for name in TOWER_WIDTH if vision.get(name)), 1024),
        )
    return ModelShape(
        family=family,
        layers=layers,
        full_layers=full,
        kv_heads=number("num_global_key_value_heads", default=kv_heads) if swa else kv_heads,
        head_dim=number("global_head_dim", default=head_dim) if swa else head_dim,
        v_head_dim=_value_dim(text, head_dim, lora, swa),
        context=context_of(config),
        early_context=context_of(config, early=True) if context_of(config, early=True) != context_of(config) else None,
        quantization=quantization_of(config),
        parameters=count(text, layers, hidden, heads, kv_heads, head_dim, linear, tower),
        kv_lora_rank=lora,
        rope_dim=number("qk_rope_head_dim"),
        nope_dim=number("qk_nope_head_dim", default=128 if lora else 0),
        heads=heads,
        index_dim=index_dim,
        index_layers=index_layers(text, layers) if index_dim else 0,
        swa_layers=swa,
        swa_kv_heads=number("swa_num_key_value_heads", default=_other_heads(text) or kv_heads),
        swa_head_dim=number("swa_head_dim", default=head_dim),
        swa_v_head_dim=number("swa_v_head_dim", "swa_head_dim", default=head_dim),
        window=number("sliding_window"),
        linear_layers=linear,
        state_bytes=sum(_state_bytes(text, linear, hidden)),
        conv_bytes=_state_bytes(text, linear, hidden)[0],
        token_bytes=float(text["kv_bytes_per_token"]) if text.get("kv_bytes_per_token") else None,
        checkpoint_bytes=float(config["checkpoint_gib"]) * 2**30 if config.get("checkpoint_gib") else None,
        draft_layers=number("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_layers"),
        vision_size=size,
        expert_width=number("moe_intermediate_size", "expert_hidden_dim")
        or (number("intermediate_size") if number("num_local_experts") else 0),
        part_bytes=tuple(sorted((config.get("part_bytes") or {}).items())),
        kv_scheme=kv_scheme_of(config),
        # 4-bit experts inside an fp8 checkpoint stay so or are widened to fp8 at load (`SGLANG_DSV4_FP4_DEQUANT`)
        expert_bytes=(0.53125, 1.0) if text.get("expert_dtype") == "fp4" else None,
        compressed=compressed_layers(text, layers),
        index_pool=number("index_kpool", default=1) or 1,
        index_elements=_index_elements(text, full),
        expert_count=expert_count(text),
        table_elements=table_elements(text),
        left_alone=tuple(config.get("left_alone") or ()),
        nested_loader=str(text.get("model_type") or "").startswith(_NESTED_LOADERS),
        hidden=hidden,
        dense_width=0 if expert_count(text) or family != "gqa" else number("intermediate_size", "ffn_hidden_size"),
        rotary_bytes=4.0 * (context_of(config) or 0) * _rotary_width(text, head_dim, family),
    )


# Text models whose multimodal wrappers load through the loaders of their parts (`models/mistral.py` over `llava.py`,
# `gemma4_mm.py`, `gemma4_unified.py`).
_NESTED_LOADERS = ("mistral", "ministral", "gemma4")


# Model types that turn a part of a head where their configuration does not say which.
_PARTLY_TURNED = (("qwen3_next", 0.25), ("qwen3_5", 0.25), ("qwen4_exp", 0.25), ("glm4", 0.5), ("minimax", 0.5))


def _rotary_width(text: Mapping[str, Any], head_dim: int, family: Family) -> float:
    """Angles that are kept of a position, sine and cosine, in 32 bits: one table for all layers that turn alike
    (`rotary_embedding/base.py`), two where there are two kinds of layers."""
    if isinstance(text.get("qk_rope_head_dim"), int):
        return float(text["qk_rope_head_dim"]) * (2 if family == "compressed" else 1)
    kind = str(text.get("model_type") or "")
    share = text.get("partial_rotary_factor") or dict(_PARTLY_TURNED).get(
        next((start for start, _ in _PARTLY_TURNED if kind.startswith(start)), ""), 1.0
    )
    return head_dim * float(share) + float(text.get("global_head_dim") or 0)


def _index_elements(text: Mapping[str, Any], full: int) -> int:
    """Elements that block-sparse attention keeps of a token in its indices: a key a sparse layer, and a value where the
    layer has not switched it off (`get_minimax_sparse_layer_ids`); or one key for a block of tokens in each layer of
    full attention (`qsa_kv_pool.py:qsa_bytes_per_token`)."""
    block = text.get("indexer_compress_ratio")
    if isinstance(block, int) and block > 0:
        return full * int(text.get("indexer_kv_heads") or 1) * int(text.get("indexer_head_dim") or 128) // block
    config = text.get("sparse_attention_config")
    if not isinstance(config, Mapping) or not isinstance(config.get("sparse_attention_freq"), list):
        return int(text.get("sparse_index_elements") or 0)
    off = config.get("sparse_disable_index_value")
    flags = off if isinstance(off, list) else []
    layers = [number for number, kind in enumerate(config["sparse_attention_freq"]) if kind]
    keys = sum(1 if number < len(flags) and flags[number] else 2 for number in layers)
    return keys * int(config.get("sparse_index_dim") or 128)


def _value_dim(text: Mapping[str, Any], head_dim: int, lora: int, swa: int) -> int:
    """Width of a value head of the full-attention layers; where these have a width of their own, values share it."""
    for name in ("v_head_dim", *(("global_head_dim",) if swa else ())):
        if isinstance(text.get(name), int):
            return int(text[name])
    return 128 if lora else head_dim


def _other_heads(text: Mapping[str, Any]) -> int:
    """KV heads of the sliding-window layers where the configuration describes these apart (Step 3.5)."""
    other = text.get("attention_other_setting")
    return int(other.get("num_attention_groups") or 0) if isinstance(other, Mapping) else 0


def _linear_layers(text: Mapping[str, Any], layers: int) -> int:
    if isinstance(text.get("linear_layers"), int):
        return int(text["linear_layers"])
    pattern = layer_pattern(text)
    if pattern is not None:
        return pattern.count("M")
    kinds = text.get("layer_types") or text.get("layers_block_type")
    if isinstance(kinds, list):
        return sum("linear" in str(kind) or "mamba" in str(kind) or "conv" in str(kind) for kind in kinds)
    interval = text.get("full_attention_interval") or text.get("layer_group_size")
    if isinstance(interval, int) and interval > 1:
        return layers - layers // interval
    linear = text.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("kda_layers"), list):
        return len(linear["kda_layers"])
    return 0


# Model types whose sliding-window layers have a pool of their own (`model_config.py:is_hybrid_swa_model`); all others,
# Gemma 2 and 3 among them, keep whole contexts in every layer.
_WINDOW_POOLS = (
    "llama4", "gpt_oss", "mimo_v2", "step3p", "gemma4", "embedding_gemma2", "laguna", "mellum", "muse_glimmer", "beam",
)  # fmt: skip


def _swa_layers(text: Mapping[str, Any], layers: int) -> int:
    if isinstance(text.get("swa_layers"), int):
        return int(text["swa_layers"])
    kind = str(text.get("model_type") or "")
    if not text.get("is_hybrid_swa") and not kind.startswith(_WINDOW_POOLS):
        return 0
    if kind.startswith("llama4"):
        return layers - layers // 4  # every fourth layer sees the whole context (`get_hybrid_layer_ids`)
    kinds = text.get("layer_types")
    if isinstance(kinds, list):
        return sum("sliding" in str(kind) or "chunked" in str(kind) for kind in kinds)
    pattern = text.get("hybrid_layer_pattern")
    if isinstance(pattern, list):
        return sum(kind == 1 for kind in pattern)
    if text.get("sliding_window") and isinstance(text.get("sliding_window_pattern"), int):
        return layers - layers // int(text["sliding_window_pattern"])
    return 0


def _state_bytes(text: Mapping[str, Any], linear: int, hidden: int) -> tuple[float, float]:
    """One request's state over all linear layers, in bytes: convolution state at 2 bytes, and recurrent state at 4
    (`mamba2_cache_params`; gated delta nets keep a key x value matrix a head, mamba2 a head x state one)."""
    if not linear:
        return 0.0, 0.0
    keys, values = text.get("linear_num_key_heads"), text.get("linear_num_value_heads")
    if isinstance(values, int):
        key_dim = int(text.get("linear_key_head_dim") or 128)
        value_dim = int(text.get("linear_value_head_dim") or 128)
        kernel = int(text.get("linear_conv_kernel_dim") or 4)
        keys = keys if isinstance(keys, int) else values
        conv = (2 * keys * key_dim + values * value_dim) * (kernel - 1) * 2
        return float(linear * conv), float(linear * values * key_dim * value_dim * 4)
    attn = text.get("linear_attn_config")
    if isinstance(attn, Mapping) and isinstance(attn.get("num_heads"), int):
        heads, dim = int(attn["num_heads"]), int(attn.get("head_dim") or 128)
        kernel = int(attn.get("short_conv_kernel_size") or 4)
        return float(linear * 3 * heads * dim * (kernel - 1) * 2), float(linear * heads * dim * dim * 4)
    states = text.get("mamba_num_heads") or text.get("mamba_n_heads")
    if isinstance(states, int):
        heads = states
        dim = int(text.get("mamba_head_dim") or text.get("mamba_d_head") or 64)
        state = int(text.get("ssm_state_size") or text.get("mamba_d_state") or 128)
        groups = int(text.get("n_groups") or text.get("mamba_n_groups") or 1)
        kernel = int(text.get("conv_kernel") or text.get("mamba_d_conv") or 4)
        conv = (heads * dim + 2 * groups * state) * (kernel - 1) * 2
        return float(linear * conv), float(linear * heads * dim * state * 4)
    return 0.0, float(linear * hidden * 128 * 4) if hidden else 0.0
