"""The keys of a model configuration that the estimate reads, and what each has to hold; for configurations that are
written by hand (`[tool.auditor.models]`) and may be mistyped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.capacity.checkpoint import SUB_CONFIGS
from auditor.capacity.shapes import CONTEXT_KEYS, KV_HEAD_KEYS

NUMBERS = frozenset(
    (
        *CONTEXT_KEYS, *KV_HEAD_KEYS, "num_hidden_layers", "n_layers", "num_layers", "n_layer", "hidden_size",
        "d_model", "n_embd", "num_attention_heads", "n_heads", "n_head", "head_dim", "global_head_dim",
        "num_global_key_value_heads", "kv_lora_rank", "q_lora_rank", "o_lora_rank", "o_groups", "qk_rope_head_dim",
        "qk_nope_head_dim", "v_head_dim", "index_head_dim", "index_n_heads", "index_kpool", "index_layers",
        "index_topk_freq", "sliding_window", "swa_layers", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim",
        "linear_layers", "full_attention_layers",
        "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
        "linear_conv_kernel_dim", "mamba_num_heads", "mamba_n_heads", "mamba_head_dim", "mamba_d_head",
        "mamba_d_state", "mamba_d_conv", "mamba_n_groups", "ssm_state_size", "vocab_size",
        "moe_intermediate_size", "expert_hidden_dim", "shared_expert_intermediate_size", "dense_intermediate_size",
        "intermediate_size_mlp", "moe_shared_expert_intermediate_size", "n_routed_experts",
        "num_local_experts", "moe_num_experts", "n_shared_experts", "num_shared_experts", "first_k_dense_replace",
        "num_nextn_predict_layers", "kv_bytes_per_token", "checkpoint_gib",
    )
)  # fmt: skip
TEXTS = frozenset(("model_type", "quantization", "kv_scheme", "hidden_act", "mlp_hidden_act", "expert_dtype"))
LISTS = frozenset(("layer_types", "layers_block_type", "compress_ratios", "hybrid_layer_pattern", "mlp_only_layers"))
TABLES = frozenset((*SUB_CONFIGS, "rope_scaling", "vision_config", "quantization_config", "linear_attn_config"))
EITHER = frozenset(("intermediate_size", "num_experts", "moe_layer_freq"))  # a number, or a list by layer
KNOWN: Mapping[str, str] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys(TEXTS, "string"),
    **dict.fromkeys(LISTS, "array"),
    **dict.fromkeys(TABLES, "object"),
    **dict.fromkeys(EITHER, ""),
}
LONG = 9  # letters from which on two names that differ in one are one name and a slip
# Names of public configurations that the estimate does not read, one letter beside one that it reads.
OTHERS = frozenset(
    ("hidden_sizes", "layer_type", "mamba_ngroups", "shared_experts_intermediate_size", "sliding_windows", "vlm_config")
)


def slip(key: str) -> str | None:
    """The known key that a name is one slip of the hand away from (a letter missing, doubled, changed, or two swapped);
    `None` for a key that is known, or that is another of the many which a configuration may hold."""
    if key in KNOWN or key in OTHERS or len(key) < LONG:
        return None
    plain = key.replace("-", "_").lower()
    return next((known for known in sorted(KNOWN) if _one_slip(plain, known)), None)


def _one_slip(written: str, known: str) -> bool:
    if written == known:
        return True
    if abs(len(written) - len(known)) > 1:
        return False
    start = 0
    while start < min(len(written), len(known)) and written[start] == known[start]:
        start += 1
    here, there = written[start:], known[start:]
    swapped = len(here) > 1 and here[1::-1] == there[:2] and here[2:] == there[2:]
    return here[1:] == there[1:] or here[1:] == there or here == there[1:] or swapped


def schema() -> dict[str, Any]:
    """The JSON Schema of one model configuration: the types of the known keys; others may stand beside them."""
    properties: dict[str, Any] = {key: {"type": kind} if kind else {} for key, kind in sorted(KNOWN.items())}
    for key in SUB_CONFIGS:
        properties[key] = {"$ref": "#/$defs/model"}
    return {"type": "object", "properties": properties}
