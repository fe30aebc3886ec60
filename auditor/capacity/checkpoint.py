"""What a configuration says of the checkpoint beside the architecture: where its text part is, how it is quantized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUB_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a multimodal configuration that describes the language model."""
    for key in SUB_CONFIGS:
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return text_config(inner) if any(name in inner for name in SUB_CONFIGS) else inner
    return config


def kv_scheme_of(config: Mapping[str, Any]) -> str | None:
    """The type of KV elements that a quantized checkpoint prescribes, which `--kv-cache-dtype auto` follows from 0.5.6
    on (`model_runner.py:configure_kv_cache_dtype` reads `kv_cache_quant_algo`)."""
    if isinstance(config.get("kv_scheme"), str):
        return str(config["kv_scheme"])
    quant = config.get("quantization_config") or text_config(config).get("quantization_config")
    if not isinstance(quant, Mapping):
        return None
    scheme = quant.get("kv_cache_scheme") or quant.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return "fp8" if scheme.get("num_bits") == 8 and scheme.get("type") == "float" else None
    return "fp8" if str(scheme).upper() == "FP8" else None


def quantization_of(config: Mapping[str, Any]) -> str:
    """The checkpoint's own quantization: `bf16`, `fp8`, `nvfp4`, `mxfp4`, `int4`, `w4afp8`."""
    named = config.get("quantization")
    if isinstance(named, str):
        return named
    quant = config.get("quantization_config") or text_config(config).get("quantization_config")
    if not isinstance(quant, Mapping):
        return "bf16"
    method = str(quant.get("quant_method") or quant.get("quant_algo") or "").lower()
    words = str(quant).lower()
    if "nvfp4" in words or (method == "modelopt" and "fp4" in words):
        return "nvfp4"
    if "mxfp4" in words or (method == "quark" and "fp4" in words):
        return "mxfp4"
    if method in ("awq", "gptq", "awq_marlin", "gptq_marlin"):
        return "int4" if str(quant.get("bits", quant.get("w_bit", 4))) == "4" else "fp8"
    if method == "compressed-tensors" and "'num_bits': 4" in words:
        return "int4"
    if "fp8" in words or "float8" in words or "'num_bits': 8" in words:
        return "fp8"
    return "bf16"
