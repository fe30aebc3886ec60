"""The catalogue's figures against what public files say, and what a configuration of the tree is read as."""

from __future__ import annotations

import pytest

from auditor.capacity.allocation import slack
from auditor.capacity.catalog import find_model
from auditor.capacity.cell import cell_bytes, element_bytes
from auditor.capacity.fraction import static_fraction
from auditor.capacity.interval import exact
from auditor.capacity.shapes import ModelShape, shape_of
from auditor.capacity.spec import LaunchSpec, Version
from auditor.capacity.weights import weights_per_gpu
from auditor.model.records import replace

GIB = 2**30


def shape(name: str) -> ModelShape:
    found = find_model(name)
    assert found is not None, name
    return found.shape


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("mistralai/Mistral-7B-v0.1", 32_768),
        ("google/gemma-7b-it", 8_192),
        ("google/gemma-3-1b-it", 32_768),
        ("microsoft/Phi-3.5-mini-instruct", 131_072),
        ("codellama/CodeLlama-70b-Instruct-hf", 4_096),
        ("Qwen/Qwen2.5-72B-Instruct", 32_768),
        ("Qwen/Qwen3-8B-Base", 32_768),
        ("mistralai/Mistral-Large-Instruct-2407", 131_072),
        ("tiiuae/Falcon3-1B-Instruct", 8_192),
        ("Qwen/QwQ-32B-Preview", 32_768),
        ("zai-org/GLM-4.5-Air", 131_072),
        ("zai-org/GLM-4.7-FP8", 202_752),
        ("moonshotai/Kimi-K2-Instruct-0905", 262_144),
        ("ibm-granite/granite-3.3-8b-instruct", 131_072),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", 163_840),
        ("stepfun-ai/Step-3.5-Flash-FP8", 262_144),
        ("deepseek-ai/DeepSeek-R1-Zero", 163_840),
        ("zai-org/GLM-4.6V", 131_072),
    ],
)
def test_the_window_is_that_of_the_configuration_file(name: str, context: int) -> None:
    assert shape(name).context == context


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        # what the model cards state
        ("ibm-granite/granite-3.1-2b-instruct", 2.5),
        ("ibm-granite/granite-3.1-8b-instruct", 8.1),
        ("ibm-granite/granite-3.1-1b-a400m-instruct", 1.3),
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 3.3),
        ("ibm-granite/granite-4.0-h-tiny", 6.94),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 109),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400),
        ("zai-org/GLM-4.5", 355),
        ("zai-org/GLM-4.5V", 106),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 48),
        ("inclusionAI/Ling-mini-2.0", 16),
        ("deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", 16),
        ("stepfun-ai/Step-3.5-Flash", 196),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120),
        ("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 550),
        ("deepseek-ai/DeepSeek-V4-Flash", 284),
        ("inclusionAI/Ling-3.0-flash", 124),
        ("zai-org/GLM-5.3-Flash", 320),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 80),
        ("mistralai/Ministral-3-3B-Instruct-2512", 3.8),
        ("mistralai/Ministral-3-8B-Reasoning-2512", 8.8),
        ("mistralai/Ministral-3-14B-Base-2512", 13.9),
    ],
)
def test_the_widths_count_up_to_the_stated_size(name: str, billions: float) -> None:
    assert shape(name).parameters.total / 1e9 == pytest.approx(billions, rel=0.03)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        # metadata.total_size of model.safetensors.index.json, draft layers included
        ("Qwen/Qwen3.5-27B", 55_562_872_800),
        ("Qwen/Qwen3.5-9B", 19_306_216_416),
        ("Qwen/Qwen3.5-35B-A3B", 71_903_655_008),
        ("Qwen/Qwen3.5-122B-A10B", 250_173_007_840),
        ("Qwen/Qwen3.5-397B-A17B", 806_795_875_168),
    ],
)
def test_the_count_with_its_draft_layer_is_the_published_size(name: str, published: int) -> None:
    parts = shape(name).parameters
    assert 2 * (parts.total + parts.draft) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("name", ["Qwen/Qwen3.5-27B-GPTQ-Int4", "QuantTrio/Qwen3.5-27B-AWQ"])
def test_requants_of_one_model_differ_by_what_they_leave_alone(name: str) -> None:
    published = shape(name)
    assert published.checkpoint_bytes is not None
    unknown = weights_per_gpu(LaunchSpec(shape("someone/Qwen3.5-27B-AWQ-Int4"), memory=80 * GIB))
    assert unknown is not None
    assert unknown.low < published.checkpoint_bytes < unknown.high


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Ornith (Qwen3_5 architecture, about 9B)", "deepreinforce-ai/Ornith-1.0-9B"),
        ("ibm-granite/granite-4.0-h (3B class)", "ibm-granite/granite-4.0-h-micro"),
        ("Qwen3.5/3.6-27B class, 4-bit", "Qwen/Qwen3.6-27B"),
    ],
)
def test_a_family_and_a_size_name_one_model(written: str, key: str) -> None:
    found = find_model(written)
    assert found is not None
    assert (found.id, found.note) == (key, f"read as {key}")


@pytest.mark.parametrize("written", ["Ornith", "ibm-granite/granite-4.0-h", "granite-4.0-h (70B class)"])
def test_a_family_alone_names_none(written: str) -> None:
    assert find_model(written) is None


def test_a_described_quantization_is_that_of_the_weights() -> None:
    assert shape("Qwen3.5/3.6-27B class, 4-bit").quantization == "int4"
    assert shape("Qwen/Qwen3.8-27B (NVFP4)").quantization == "nvfp4"
    assert shape("Qwen/Qwen3.8-27B").quantization == "bf16"


def test_the_recipe_of_one_publisher_says_nothing_of_another() -> None:
    own, foreign = shape("nvidia/GLM-5.2-NVFP4"), shape("someone/GLM-5.2-NVFP4")
    assert (dict(own.part_bytes), own.kv_scheme) == ({"attention": 2.0, "dense": 2.0}, "fp8")
    assert (dict(foreign.part_bytes), foreign.kv_scheme) == ({}, None)
    spec = LaunchSpec(own, memory=192 * GIB, tp=8)
    narrow = weights_per_gpu(spec)
    wide = weights_per_gpu(LaunchSpec(foreign, memory=192 * GIB, tp=8))
    assert narrow is not None
    assert wide is not None
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@pytest.mark.parametrize(("version", "low", "high"), [((0, 5, 3), 2, 2), ((0, 5, 5), 1, 2), ((0, 5, 6), 1, 1)])
def test_auto_follows_the_scheme_of_the_checkpoint_from_0_5_6(version: tuple[int, ...], low: int, high: int) -> None:
    found = element_bytes(LaunchSpec(shape("nvidia/Llama-3.1-70B-Instruct-FP8"), memory=80 * GIB, version=version))
    assert (found.low, found.high) == (low, high)
    plain = element_bytes(LaunchSpec(shape("meta-llama/Llama-3.1-70B-Instruct"), memory=80 * GIB, version=version))
    assert (plain.low, plain.high) == (2, 2)


SCHEMES = [
    ({"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
    ({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "fp8"}, None),
]


@pytest.mark.parametrize(("quantization", "scheme"), SCHEMES)
def test_the_scheme_is_read_from_the_tree(quantization: dict[str, object], scheme: str | None) -> None:
    config = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "quantization_config": quantization}
    found = shape_of(config)
    assert found is not None
    assert found.kv_scheme == scheme


def _windowed(kind: str) -> ModelShape:
    pattern = ["sliding_attention"] * 5 + ["full_attention"]
    found = shape_of(
        {
            "model_type": kind, "num_hidden_layers": 12, "hidden_size": 2048, "num_attention_heads": 8,
            "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 1024, "layer_types": pattern * 2,
        }
    )  # fmt: skip
    assert found is not None
    return found


def test_only_some_architectures_keep_windows_in_a_pool_of_their_own() -> None:
    assert (_windowed("gemma4_text").full_layers, _windowed("gemma4_text").swa_layers) == (2, 10)
    assert (_windowed("gemma3_text").full_layers, _windowed("gemma3_text").swa_layers) == (12, 0)
    assert _windowed("gemma3_text").family == "gqa"


def test_windows_have_their_own_pool_from_0_5_9() -> None:
    token = 2 * 8 * 64 * 2.0  # keys and values of 8 heads of 64 in 16 bits
    expected = {(0, 5, 3): (36, 36), (0, 5, 6): (18 + 0.8 * 18, 36), (0, 5, 9): (18 + 0.8 * 18, 18 + 0.8 * 18)}
    for version, (low, high) in expected.items():
        cell = cell_bytes(LaunchSpec(shape("openai/gpt-oss-120b"), memory=80 * GIB, version=version))
        assert (cell.low, cell.high) == (pytest.approx(low * token), pytest.approx(high * token))
    unknown = cell_bytes(LaunchSpec(shape("openai/gpt-oss-120b"), memory=80 * GIB))
    assert (unknown.low, unknown.high) == (pytest.approx((18 + 0.8 * 18) * token), pytest.approx(36 * token))


def test_compressed_attention_is_priced_by_release() -> None:
    # start-ups of DeepSeek-V4-Flash at the time of 0.5.14 log 15,956 bytes a token
    spec = LaunchSpec(shape("deepseek-ai/DeepSeek-V4-Flash"), memory=96 * GIB, version=(0, 5, 14))
    early, late = cell_bytes(spec), cell_bytes(replace(spec, version=(0, 5, 19)))
    assert early.low <= 15_956 <= early.high
    assert late.high < 0.5 * early.low
    unknown = cell_bytes(replace(spec, version=None))
    assert (unknown.low, unknown.high) == (late.low, early.high)


def test_compression_is_read_from_the_tree() -> None:
    ratios = [0, 0, *([4, 128] * 20), 4, 0, 0, 0]
    found = shape_of(
        {
            "model_type": "deepseek_v4", "num_hidden_layers": 43, "hidden_size": 4096, "num_attention_heads": 64,
            "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64, "index_head_dim": 128,
            "compress_ratios": ratios, "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"},
        }
    )  # fmt: skip
    assert found is not None
    assert (found.family, found.compressed, found.expert_bytes) == ("compressed", (21, 20), (0.53125, 1.0))


def test_four_bit_experts_stay_so_where_the_release_has_kernels_for_them() -> None:
    spec = LaunchSpec(shape("deepseek-ai/DeepSeek-V4-Pro"), memory=180 * GIB, tp=8, capability=10.0)
    kept, unknown = weights_per_gpu(replace(spec, version=(0, 5, 19))), weights_per_gpu(spec)
    assert kept is not None
    assert unknown is not None
    assert kept.high < 115 * GIB < 190 * GIB < unknown.high
    assert unknown.low == pytest.approx(kept.low)


@pytest.mark.parametrize(("version", "row"), [((0, 5, 18), 132), ((0, 5, 22), 9)])
def test_pooled_index_rows_are_priced_from_0_5_22(version: tuple[int, ...], row: int) -> None:
    # a start-up on 0.5.18 divides 90.6 GiB among 7,650,496 tokens: 11 layers of 1,024 + 132 bytes
    spec = LaunchSpec(shape("zai-org/GLM-5.3-Flash"), memory=288 * GIB, tp=4, vendor="amd", version=version)
    cell = cell_bytes(spec)
    assert cell.low == cell.high == 11 * (1024 + row)


@pytest.mark.parametrize(
    ("model", "given", "share"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", {"version": (0, 5, 11)}, (0.85, 0.85)),
        ("meta-llama/Llama-3.1-8B-Instruct", {"version": (0, 4, 6)}, (1.0, 1.0)),
        ("meta-llama/Llama-3.1-8B-Instruct", {}, (0.85, 1.0)),
        ("meta-llama/Llama-3.1-8B-Instruct", {"version": (0, 5, 11), "context": 8192}, (1.0, 1.0)),
        ("meta-llama/Llama-3.1-8B-Instruct", {"version": (0, 5, 11), "attention_backend": "triton"}, (1.0, 1.0)),
        ("deepseek-ai/DeepSeek-R1", {"version": (0, 5, 11), "tp": 8}, (0.85, 0.85)),
        ("moonshotai/Kimi-K2-Instruct", {"version": (0, 5, 11), "tp": 8}, (1.0, 1.0)),
        ("zai-org/GLM-5.2-FP8", {"version": (0, 5, 15), "tp": 8}, (1.0, 1.0)),
    ],
)
def test_aiter_keeps_a_workspace_on_amd(model: str, given: dict[str, object], share: tuple[float, float]) -> None:
    spec = LaunchSpec(shape(model), memory=192 * GIB, vendor="amd", fraction=0.8, **given)  # type: ignore[arg-type]
    fraction, source = static_fraction(spec)
    assert (fraction.low, fraction.high) == (pytest.approx(0.8 * share[0]), pytest.approx(0.8 * share[1]))
    assert source == "flag"
    assert static_fraction(replace(spec, vendor="nvidia"))[0].low == 0.8


def test_layers_without_a_mixer_keep_no_rows() -> None:
    kinds = ["mamba", "moe", "mamba", "attention", "moe", "mamba", "mlp"]
    found = shape_of(
        {
            "model_type": "nemotron_h", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 2,
            "head_dim": 128, "layers_block_type": kinds, "n_routed_experts": 8, "moe_intermediate_size": 512,
            "intermediate_size": 2048, "mlp_hidden_act": "relu2", "moe_latent_size": 256,
        }
    )  # fmt: skip
    assert found is not None
    assert (found.layers, found.full_layers, found.linear_layers) == (7, 1, 3)
    assert found.parameters.experts == 2 * 8 * 2 * 256 * 512


@pytest.mark.parametrize(
    ("version", "shares"),
    [((0, 5, 11), (1.0, 1.0)), ((0, 5, 19), (1 + 1 / 80, 1 + 1 / 80)), (None, (1.0, 1 + 1 / 80))],
)
def test_draft_layers_are_priced_from_0_5_14(version: tuple[int, ...] | None, shares: tuple[float, float]) -> None:
    spec = LaunchSpec(shape("meta-llama/Llama-3.3-70B-Instruct"), memory=80 * GIB, tp=8, version=version)
    plain, drafted = cell_bytes(spec), cell_bytes(replace(spec, speculative="EAGLE3"))
    assert (drafted.low, drafted.high) == (pytest.approx(plain.low * shares[0]), pytest.approx(plain.high * shares[1]))
    assert cell_bytes(replace(spec, speculative="NGRAM")) == plain


def test_block_sparse_attention_keeps_index_rows() -> None:
    # MiniMaxSparseKVPool: 57 of 60 layers keep one key of 128 a token beside 4 KV heads of 128, one of them a rank
    spec = LaunchSpec(shape("MiniMaxAI/MiniMax-M3"), memory=141 * GIB, tp=8, version=(0, 5, 23))
    assert cell_bytes(spec).expected == 60 * 2 * 128 * 2 + 57 * 128 * 2
    found = shape_of(
        {
            "model_type": "minimax_m3", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
            "num_key_value_heads": 4, "head_dim": 128,
            "sparse_attention_config": {
                "sparse_attention_freq": [0, 1, 1, 1], "sparse_disable_index_value": [0, 0, 1, 1],
                "sparse_index_dim": 128,
            },
        }
    )  # fmt: skip
    assert found is not None
    assert found.index_elements == 128 * (2 + 1 + 1)


def test_gemma_3_had_another_window_before_0_5_11() -> None:
    found = shape("google/gemma-3-27b-it")
    assert [found.context_at(version) for version in (None, (0, 5, 9), (0, 5, 11))] == [131_072, 1_048_576, 131_072]
    assert shape("Qwen/Qwen3-8B").context_at((0, 5, 9)) == 40_960


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        # FlashML-org/FreeToken#409 and #257: 9.9 GiB beside the experts (text alone; the tower is 0.8), 63.3 of experts
        ({"gpu_experts": 0}, 9.9, 10.9),
        ({"gpu_experts": 512}, 9.9 + 63.0, 10.9 + 63.3 * 1.06),
        ({"gpu_experts": 0, "table": "accelerator"}, 9.9 + 47.6, 10.9 + 47.7 * 1.06),
        ({"gpu_experts": 0, "quantization": None, "table": "accelerator"}, 9.9 + 95.2, 10.9 + 95.4 * 1.05),
    ],
)
def test_n_gram_tables_and_experts_are_where_the_launch_keeps_them(
    given: dict[str, object], least: float, most: float
) -> None:
    spec = LaunchSpec(shape("Qwen/Qwen3.8-Flash-Next"), memory=192 * GIB, quantization="nvfp4", version=(0, 5, 23))
    weights = weights_per_gpu(replace(spec, **given))  # type: ignore[arg-type]
    assert weights is not None
    assert least <= weights.expected / GIB <= most


def test_an_n_gram_table_is_on_the_host_by_default_where_that_is_other_memory() -> None:
    spec = LaunchSpec(shape("Qwen/Qwen3.8-Flash-Next"), memory=120 * GIB, tp=2, version=(0, 5, 23))
    bare = weights_per_gpu(replace(spec, table="host"))
    assert bare is not None
    assert weights_per_gpu(spec) == bare
    shared, unknown = weights_per_gpu(replace(spec, unified=True)), weights_per_gpu(replace(spec, version=None))
    table = 51.2e9  # half of the rows at two bytes
    assert shared is not None
    assert unknown is not None
    assert shared.expected - bare.expected == pytest.approx(table, rel=0.02)
    assert (unknown.expected, unknown.high - bare.high) == (bare.expected, pytest.approx(table, rel=0.05))
    assert weights_per_gpu(replace(spec, unified=True, table="disk")) == bare


def test_what_stands_whole_on_every_rank_is_not_split() -> None:
    # 0.64 billion parameters of the residual mixers and the routers of 48 layers (layers/hyperconnection.py: nn.Linear)
    found = shape("Qwen/Qwen3.8-Flash-Next").parameters
    assert found.replicated == pytest.approx(97 * 2560 * 4 * (640 + 4) + 5 * 2560**2 + 48 * 2560 * 512)
    assert found.total == pytest.approx(176.9e9 - 51.2e9, rel=0.01)
    assert shape("Qwen/Qwen3.8-Flash-Next").table_elements == 51.2e9


# `Load weight end ... mem usage=` of public logs, in GiB a rank: issues, pull requests, run records
LOGGED = [
    ("meta-llama/Llama-3.1-8B-Instruct", {}, 15.02),  # two runs on 80 GB cards of 2025 and 2026; sglang#4760 has 15.11
    ("meta-llama/Llama-3.1-8B-Instruct", {}, 15.11),
    ("Qwen/Qwen3-8B", {}, 15.28),  # B200 and GB300, 2026
    ("Qwen/Qwen2.5-7B", {}, 14.35),  # readme of a GPU-direct loader
    ("Qwen/QwQ-32B", {"tp": 4}, 15.54),  # four L4 on EC2, 2025
    ("Qwen/Qwen3.8-Flash-Next", {"tp": 8, "table": "host"}, 31.25),
    ("nvidia/DeepSeek-R1-0528-NVFP4-v2", {"tp": 4}, 94.51),  # pull request on weight processing, August 2025
    ("deepseek-ai/DeepSeek-V4-Flash", {"tp": 8, "version": (0, 5, 19), "capability": 12.0}, 20.45),  # eight 32 GB cards
    ("google/gemma-4-26B-A4B-it-FP8", {}, 26.22),  # with the tower, 25.12 without
    ("unsloth/Qwen3.6-27B-NVFP4", {}, 24.55),
    ("zai-org/GLM-5-FP8", {"tp": 8, "vendor": "amd"}, 89.58),
    ("moonshotai/Kimi-K2.5", {"tp": 8, "vendor": "amd"}, 73.58),
    ("moonshotai/Kimi-K3", {"tp": 8, "vendor": "amd"}, 194.38),
]


@pytest.mark.parametrize(("name", "given", "logged"), LOGGED)
def test_the_weights_of_public_logs_lie_inside_and_near(name: str, given: dict[str, object], logged: float) -> None:
    weights = weights_per_gpu(LaunchSpec(shape(name), memory=192 * GIB, **given))  # type: ignore[arg-type]
    assert weights is not None
    assert weights.low <= logged * GIB <= weights.high
    near = 0.08 if "27B-NVFP4" in name else 0.03  # of dense hybrids the exports leave very different parts alone
    assert weights.expected == pytest.approx(logged * GIB, rel=near)


def test_latent_projections_and_indexers_are_not_split() -> None:
    # models/deepseek_v2.py: fused_qkv_a_proj_with_mqa and the indexer are ReplicatedLinear, the others split by heads
    found = shape("deepseek-ai/DeepSeek-V3.2").parameters
    assert found.whole == 61 * (7168 * (1536 + 512 + 64) + 1536 * 64 * 128 + 7168 * (128 + 64))
    assert found.idle == 0
    late = shape("zai-org/GLM-5.2-FP8").parameters  # 21 of 78 layers own an index
    assert late.idle == 57 * (2048 * 32 * 128 + 6144 * (128 + 32))
    # models/kimi_k3.py: routed_expert_down_proj and routed_expert_up_proj, 92 layers of 896 experts
    assert shape("moonshotai/Kimi-K3").parameters.replicated == 92 * 7168 * (896 + 2 * 3584)


def test_a_rank_has_a_key_head_at_least() -> None:
    # 4 KV heads over 8 ranks: each holds one, so keys and values weigh twice what an even split gives
    spec = LaunchSpec(shape("Qwen/Qwen3-235B-A22B"), memory=141 * GIB, tp=4)
    four, eight = weights_per_gpu(spec), weights_per_gpu(replace(spec, tp=8))
    assert four is not None
    assert eight is not None
    whole = 94 * 4096 * 128 * 2  # bytes more than half: one key and one value head in 16 bits, and half the routers
    rotary = 40_960 * 128 * 4 / 2
    assert eight.expected - four.expected / 2 == pytest.approx((whole + 94 * 4096 * 128) * 1.01 + rotary, rel=0.01)


def test_rotary_tables_are_kept_once_for_all_layers() -> None:
    assert shape("meta-llama/Llama-3.1-8B-Instruct").rotary_bytes == 131_072 * 128 * 4
    assert shape("Qwen/Qwen3.5-27B").rotary_bytes == 262_144 * 64 * 4
    assert shape("deepseek-ai/DeepSeek-R1").rotary_bytes == 163_840 * 64 * 4


def test_towers_count_by_the_names_that_the_engine_gives_them() -> None:
    # configs/kimi_k25.py makes num_hidden_layers and hidden_size of vt_num_hidden_layers and vt_hidden_size
    assert shape("moonshotai/Kimi-K2.5").vision_size == (27, 1152)
    assert shape("Qwen/Qwen3-VL-8B-Instruct").vision_size == (24, 1152)


@pytest.mark.parametrize(
    ("name", "version", "logged"),
    [
        ("Qwen/Qwen3.6-27B", (0, 5, 17), 5.53),  # `type=Qwen3_5ForCausalLMMTP`, 4.7 of it embedding and head
        ("Qwen/Qwen3.5-27B-FP8", (0, 5, 19), 5.18),  # sgl-project/sglang#35996
        ("Qwen/Qwen3.6-27B", (0, 5, 11), 0.0),  # the pool was sized before the draft was there
    ],
)
def test_a_draft_has_its_own_embedding_and_head_while_the_pool_is_sized(
    name: str, version: tuple[int, ...], logged: float
) -> None:
    spec = LaunchSpec(shape(name), memory=80 * GIB, version=version)
    alone, both = weights_per_gpu(spec), weights_per_gpu(replace(spec, speculative="NEXTN"))
    assert alone is not None
    assert both is not None
    assert both.expected - alone.expected == pytest.approx(logged * GIB, rel=0.04)
    assert weights_per_gpu(replace(spec, speculative="NGRAM")) == alone


def test_four_bit_experts_are_widened_where_no_kernel_takes_them() -> None:
    spec = LaunchSpec(shape("deepseek-ai/DeepSeek-V4-Flash"), memory=45 * GIB, tp=8, version=(0, 5, 23))
    ada, hopper = (weights_per_gpu(replace(spec, capability=capability)) for capability in (8.9, 9.0))
    assert ada is not None
    assert hopper is not None
    assert ada.low - hopper.low == pytest.approx(277.0e9 / 8 * (1 - 0.53125), rel=0.01)


def test_marlin_leaves_loaded_scales_beside_its_own_up_to_0_5_15() -> None:
    # 125.65 GiB a rank of DeepSeek-V4-Pro on eight cards (SemiAnalysisAI/InferenceX#2128)
    spec = LaunchSpec(shape("deepseek-ai/DeepSeek-V4-Pro"), memory=141 * GIB, tp=8, capability=12.0)
    before, after = (weights_per_gpu(replace(spec, version=version)) for version in ((0, 5, 15), (0, 5, 16)))
    assert before is not None
    assert after is not None
    assert before.low <= 125.65 * GIB <= before.high
    assert before.expected == pytest.approx(125.65 * GIB, rel=0.02)
    assert before.expected - after.expected == pytest.approx(1.547e12 / 8 / 8, rel=0.03)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("someone/gemma-4-26B-AWQ", "google/gemma-4-26B-A4B-it"),
        ("someone/gemma-4-12B-AWQ", "google/gemma-4-12B-it"),
        ("google/gemma-4-12B", "google/gemma-4-12B-it"),
        ("someone/Nemotron-3-Nano-30B-A3B-AWQ", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
        ("someone/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-AWQ", "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16"),
    ],
)
def test_a_requant_is_read_as_the_one_model_that_its_name_can_mean(written: str, key: str) -> None:
    found = find_model(written)
    assert found is not None
    assert found.shape.layers == shape(key).layers
    assert found.shape.parameters == shape(key).parameters
    assert "read as" in found.note


@pytest.mark.parametrize(
    "written", ["someone/gemma-4-27B-AWQ", "someone/Qwen3-30B-Ream-AWQ", "someone/nla-qwen2.5-7b-L20-av"]
)
def test_a_name_that_can_mean_more_or_nothing_is_read_as_nothing(written: str) -> None:
    assert find_model(written) is None


def test_window_layers_have_heads_of_their_own() -> None:
    # sglang#18039: 4 ranks, rows of 300,288 window tokens are K 8.38 and V 5.59 GiB, and 0.5.8 priced both kinds of
    # layers on top of each other, which left 375,360 tokens
    found = shape("XiaomiMiMo/MiMo-V2-Flash")
    row = (found.swa_kv_heads // 4) * (found.swa_head_dim + found.swa_v_head_dim) * found.swa_layers * 2
    assert row * 300_288 / GIB == pytest.approx(8.38 + 5.59, rel=0.002)
    late = cell_bytes(LaunchSpec(found, tp=4, memory=141 * GIB, version=(0, 5, 9))).expected
    assert late == 640 * 9 + 0.8 * 1280 * 39
    early = cell_bytes(LaunchSpec(found, tp=4, memory=141 * GIB, version=(0, 5, 8)))
    assert early.low == pytest.approx((640 * 48 + 1280 * 39) * (9 + 0.8 * 39) / 48)


def test_gemma_4_12b_costs_a_token_what_its_start_ups_log() -> None:
    # 14.02 GiB of KV for 102,094 tokens at a ratio of 0.8, and for 565,446 at 0.0625, on two ranks in 16 bits
    found = find_model("google/gemma-4-12B-it")
    assert found is not None
    for ratio, tokens in ((0.8, 102_094), (0.0625, 565_446)):
        spec = LaunchSpec(found.shape, memory=24 * 2**30, tp=2, swa_full_tokens_ratio=ratio, version=(0, 5, 14))
        assert cell_bytes(spec).expected * tokens == pytest.approx(14.02 * 2**30, rel=0.001)


@pytest.mark.parametrize(
    ("name", "ranks", "logged"),
    [
        # "mem usage" of public start-up logs, in GiB
        ("Qwen/Qwen2.5-0.5B-Instruct", 1, 0.98),
        ("Qwen/Qwen2.5-3B-Instruct", 1, 5.97),
        ("Qwen/Qwen3-4B", 1, 7.56),
        ("Qwen/Qwen3-14B", 4, 7.08),
        ("Qwen/Qwen3-14B-FP8", 1, 15.5),
        ("Qwen/QwQ-32B", 4, 15.54),
        ("Qwen/Qwen3-32B", 4, 15.50),
        ("meta-llama/Llama-3.1-8B-Instruct", 1, 15.02),
        ("genovalabs/Qwen2.5-72B-Instruct-fp8-dynamic", 1, 70.24),
    ],
)
def test_dense_weights_are_tensors_and_the_slack_of_their_segments(name: str, ranks: int, logged: float) -> None:
    weights = weights_per_gpu(LaunchSpec(shape(name), memory=80 * GIB, tp=ranks))
    assert weights is not None
    assert weights.low <= logged * GIB <= weights.high
    assert weights.expected == pytest.approx(logged * GIB, rel=0.025)
    assert weights.high - weights.low < 0.02 * weights.high + 0.3 * GIB


def test_large_matrices_are_rounded_and_smaller_ones_share() -> None:
    found = shape("Qwen/Qwen3-8B")  # 48, 32, 192 and 96 MiB a layer on one rank in 16 bits: nothing is lost
    assert slack(LaunchSpec(found, memory=80 * GIB), 2.0) == exact(0.0)
    two = slack(LaunchSpec(shape("Qwen/Qwen2.5-3B-Instruct"), memory=80 * GIB), 2.0)
    assert two.low == 36 * 2**20  # 10, 8, 86 and 43 MiB: the last one is rounded by 1
    assert two.high == 36 * (2**20 + 2 * 2**20)  # and two of the second share 20


@pytest.mark.parametrize(("version", "share"), [((0, 5, 12), 1.0), ((0, 5, 14), 16 / 61)])
def test_a_pipeline_stage_pays_for_its_own_layers_since_it_can_count_them(version: Version, share: float) -> None:
    # public start-up of four nodes, tensor 8, pipeline 4, 0.5.12.post1: 35.57 GB for 1,607,936 tokens, 22.1 kB each
    whole = LaunchSpec(shape("deepseek-ai/DeepSeek-V4-Pro"), memory=78 * GIB, tp=8, version=version)
    staged = replace(whole, pp=4)
    assert cell_bytes(staged).expected == pytest.approx(cell_bytes(whole).expected * share)
    if version == (0, 5, 12):
        assert cell_bytes(staged).low * 0.9 < 35.57e9 / 1_607_936 < cell_bytes(staged).high


@pytest.mark.parametrize(("tp", "fraction"), [(16, 0.79), (8, 0.81), (4, 0.85), (1, 0.88)])
@pytest.mark.parametrize("memory", [80, 192])
def test_early_releases_choose_the_fraction_by_parallelism_alone(tp: int, fraction: float, memory: int) -> None:
    spec = LaunchSpec(shape("Qwen/Qwen2.5-7B-Instruct"), memory=memory * GIB, tp=tp, version=(0, 4, 2))
    assert static_fraction(spec, 0.0)[0].expected == fraction
