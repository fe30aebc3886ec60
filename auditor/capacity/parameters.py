"""Parameters of a model by part, counted from the widths of its configuration file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters by part, in single weights. `experts` are the routed experts, `attention` all attention projections,
    `state` linear-attention or mamba layers, `dense` the other layers, `vision` the towers, `draft` MTP layers,
    `replicated` what stands whole and in 16 bits on every rank. Of the attention `whole` stands on every rank, of
    `key_value` each rank has at least one head, `idle` are indexers that releases before 0.5.19 build for nothing."""

    embedding: float = 0.0
    attention: float = 0.0
    experts: float = 0.0
    dense: float = 0.0
    state: float = 0.0
    vision: float = 0.0
    draft: float = 0.0
    replicated: float = 0.0
    whole: float = 0.0
    key_value: float = 0.0
    idle: float = 0.0

    @property
    def total(self) -> float:
        """Without the draft layers, which are loaded only for speculative decoding."""
        split = self.embedding + self.attention + self.experts + self.dense + self.state + self.vision
        return split + self.replicated


def count(
    text: Mapping[str, Any],
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    linear: int,
    vision: tuple[int, int] | None,
) -> Parameters:
    """The parameters of each part. `text` is the configuration of the language model, `linear` its linear-attention
    layers, `vision` depth and width of a tower."""

    def number(*names: str, default: int = 0) -> int:
        return next((int(text[name]) for name in names if isinstance(text.get(name), (int, float))), default)

    embedding = number("vocab_size") * hidden * (1 if text.get("tie_word_embeddings") else 2)
    attention, whole, key_value = _attention(number, text, hidden, heads, kv_heads, head_dim)
    state = 0.0
    values = number("linear_num_value_heads")
    if linear and values:
        key_width = number("linear_num_key_heads") * number("linear_key_head_dim", default=128)
        value_width = values * number("linear_value_head_dim", default=128)
        state = hidden * (2 * key_width + 2 * value_width + 2 * values) + value_width * hidden
    elif linear and isinstance(kda := text.get("linear_attn_config"), Mapping) and kda.get("num_heads"):
        # queries, keys, values, outputs; an output gate of full width or of the rank of one head (models/kimi_k3.py)
        width = int(kda["num_heads"]) * int(kda.get("head_dim") or 128)
        narrow = int(kda.get("head_dim") or 128) * (hidden + width)
        state = 4 * hidden * width + narrow + (hidden * width if kda.get("use_full_rank_gate") else narrow)
    elif linear:
        inner = (
            number("mamba_num_heads", "mamba_n_heads") * number("mamba_head_dim", "mamba_d_head", default=64)
            or 2 * hidden
        )
        state = 3 * hidden * inner
    experts_count = expert_count(text)
    width = number("moe_intermediate_size", "expert_hidden_dim", "intermediate_size")
    factor = 2 if str(text.get("mlp_hidden_act") or text.get("hidden_act")) == "relu2" else 3
    first_dense = number("first_k_dense_replace", "moe_layer_start_index") if experts_count else layers
    moe_layers = _moe_layers(text, layers, first_dense) if experts_count else 0
    dense_layers = _dense_layers(text, layers, moe_layers, linear)
    latent = number(
        "moe_latent_size", "routed_expert_hidden_size"
    )  # experts that work in a narrower space, with projections into it and back
    experts = float(moe_layers * experts_count * factor * (latent or hidden) * width)
    llama4 = str(text.get("model_type") or "").startswith("llama4")
    shared = number("n_shared_experts", "num_shared_experts", default=1 if llama4 and experts_count else 0)
    shared_width = number("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size") or shared * width
    dense_width = number("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "ffn_hidden_size")
    dense = float(dense_layers * factor * hidden * dense_width)
    dense += moe_layers * factor * hidden * shared_width
    # routers, and the ways into and out of a narrower space (models/kimi_k3.py, models/nemotron_h.py)
    replicated = float(moe_layers * hidden * (experts_count + 2 * latent)) + _compressors(number, text, layers, hidden)
    streams, rank = number("hc_count"), number("hc_lowrank")
    if streams and rank:
        # residual streams: mixers before attention, before the MLP and behind the last layer (models/qwen4_exp.py)
        replicated += (2 * layers + 1) * hidden * streams * (2 * rank + streams)
        replicated += table_layers(text) * hidden * hidden * (streams + 1)  # keys and values of looked-up n-grams
    tower = 0.0
    if vision:
        tower = float(vision[0] * 12 * vision[1] * vision[1])
    attention_layers = _attention_layers(text, layers, linear)
    draft = (
        (experts / moe_layers + attention) if moe_layers else attention + factor * hidden * number("intermediate_size")
    )
    return Parameters(
        float(embedding),
        float(attention_layers * attention),
        experts,
        dense,
        float(linear * state),
        tower,
        float(draft),
        replicated,
        float(attention_layers * whole),
        float(attention_layers * key_value),
        float((layers - index_layers(text, layers)) * _indexer(number, hidden)) if number("kv_lora_rank") else 0.0,
    )


def _attention(
    number: Callable[..., int], text: Mapping[str, Any], hidden: int, heads: int, kv_heads: int, head_dim: int
) -> tuple[float, float, float]:
    """Parameters of one attention layer, those of them that every rank keeps whole, and those of keys and values that
    are split by heads. Latent projections and indexers are replicated (`models/deepseek_v2.py`, `dsa_indexer.py`)."""
    lora, q_lora = number("kv_lora_rank"), number("q_lora_rank")
    indexer = _indexer(number, hidden)
    if lora:
        rope, nope = number("qk_rope_head_dim"), number("qk_nope_head_dim", default=128)
        value = number("v_head_dim", default=128)
        whole = hidden * (q_lora + lora + rope) + indexer
        query = (q_lora or hidden) * heads * (nope + rope)
        gate = heads * value * hidden if text.get("mla_use_output_gate") else 0
        return whole + query + lora * heads * (nope + value) + heads * value * hidden + gate, whole, 0.0
    if number("o_lora_rank"):
        # one latent row stands for keys and values; outputs are projected by groups (models/deepseek_v4.py)
        o_lora = number("o_lora_rank")
        whole = hidden * (q_lora + head_dim)
        split = q_lora * heads * head_dim + heads * head_dim * o_lora + number("o_groups", default=1) * o_lora * hidden
        return whole + split, whole, 0.0
    # Qwen3-Next and what follows it project an output gate with the queries
    gated = str(text.get("model_type") or "").startswith(("qwen3_next", "qwen3_5", "qwen4_exp"))
    queries = 3 if text.get("attn_output_gate", gated) else 2
    whole = hidden * number("indexer_head_dim") * (number("indexer_n_heads") + number("indexer_kv_heads"))
    key_value = 2 * hidden * head_dim * kv_heads
    return hidden * head_dim * queries * heads + key_value + whole, whole, key_value


def _indexer(number: Callable[..., int], hidden: int) -> int:
    """Parameters of the indexer of one layer of sparse MLA; 0 where the attention is not sparse."""
    heads, width = number("index_n_heads", default=64), number("index_head_dim")
    return number("q_lora_rank") * heads * width + hidden * (width + heads) if width else 0


def index_layers(text: Mapping[str, Any], layers: int) -> int:
    """Layers that own an index (`dsa_layer_skips_topk`: `indexer_types`, else `index_topk_freq` with its offset)."""
    kinds = text.get("indexer_types")
    if isinstance(kinds, list):
        return sum("full" in str(kind) or kind in (1, True) for kind in kinds) or layers
    if isinstance(text.get("index_layers"), int):
        return int(text["index_layers"])
    frequency = text.get("index_topk_freq")
    if isinstance(frequency, int) and frequency > 1:
        offset = text.get("index_skip_topk_offset") or 0
        return sum(layer < offset or (layer - offset) % frequency == frequency - 1 for layer in range(layers))
    return layers


def compressed_layers(text: Mapping[str, Any], layers: int) -> tuple[int, int]:
    """Layers that keep one row for 4 tokens, and those that keep one for 128; entries behind are of draft layers."""
    ratios = text.get("compress_ratios")
    if isinstance(ratios, list):
        return ratios[:layers].count(4), ratios[:layers].count(128)
    return int(text.get("c4_layers") or 0), int(text.get("c128_layers") or 0)


def _compressors(number: Callable[..., int], text: Mapping[str, Any], layers: int, hidden: int) -> float:
    """What compresses rows for 4 and for 128 tokens, with the index of the former: keys and gates, twice as wide where
    windows overlap (`layers/attention/dsv4/compressor.py`, `indexer.py`)."""
    narrow, wide = compressed_layers(text, layers)
    dim, index = number("head_dim"), number("index_head_dim")
    indexer = index * number("index_n_heads", default=64) * number("q_lora_rank") + 4 * hidden * index
    return float(narrow * (4 * hidden * dim + indexer) + wide * 2 * hidden * dim) if number("o_lora_rank") else 0.0


def layer_pattern(text: Mapping[str, Any]) -> str | None:
    """The layers of a hybrid as one letter each: `M` mamba, `*` attention, `E` experts, `-` a plain MLP; `None` where
    a configuration has no layers without a mixer."""
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern
    kinds = text.get("layers_block_type")
    letters = {"mamba": "M", "attention": "*", "moe": "E", "mlp": "-"}
    if isinstance(kinds, list) and {"moe", "mlp"} & {kind for kind in kinds if isinstance(kind, str)}:
        return "".join(letters.get(kind, "?") if isinstance(kind, str) else "?" for kind in kinds)
    return None


def table_layers(text: Mapping[str, Any]) -> int:
    """Layers that look up n-grams of tokens in a table of their own (`ple_layer_ids`)."""
    layers = text.get("ple_layer_ids")
    return len(layers) if isinstance(layers, list) else 0


def table_elements(text: Mapping[str, Any]) -> float:
    """Elements of all n-gram tables: about `ngram_vocab_size_base` rows for each head of each order, whose widths sum
    up to `ple_embed_dim` (`models/qwen4_exp.py:_build_head_vocab_and_offsets`)."""
    rows, width = text.get("ngram_vocab_size_base"), text.get("ple_embed_dim")
    return float(table_layers(text) * rows * width) if isinstance(rows, int) and isinstance(width, int) else 0.0


def expert_count(text: Mapping[str, Any]) -> int:
    """Routed experts of one layer; 0 where there are none or the configuration does not say."""
    names = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
    return next((int(text[name]) for name in names if isinstance(text.get(name), (int, float))), 0)


def _moe_layers(text: Mapping[str, Any], layers: int, first_dense: int) -> int:
    pattern = layer_pattern(text)
    if pattern is not None:
        return pattern.count("E")
    frequency = text.get("moe_layer_freq") or text.get("decoder_sparse_step") or text.get("interleave_moe_layer_step")
    if isinstance(frequency, list):
        return sum(bool(item) for item in frequency)
    only = text.get("mlp_only_layers")
    left = layers - first_dense - (len(only) if isinstance(only, list) else 0)
    return max(0, left // int(frequency)) if isinstance(frequency, int) and frequency > 1 else max(0, left)


def _dense_layers(text: Mapping[str, Any], layers: int, moe_layers: int, linear: int) -> int:
    pattern = layer_pattern(text)
    if str(text.get("model_type") or "").startswith("gemma4"):
        return layers  # a plain MLP stands beside the experts of each layer (models/gemma4_causal.py)
    return pattern.count("-") if pattern is not None else layers - moe_layers


def _attention_layers(text: Mapping[str, Any], layers: int, linear: int) -> int:
    pattern = layer_pattern(text)
    return pattern.count("*") if pattern is not None else layers - linear
