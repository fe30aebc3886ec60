"""The pool estimate: worked examples, and what must hold for every launch."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from auditor.capacity.accelerators import find_gpu, gpus, gpus_named
from auditor.capacity.catalog import base_name, find_model, models
from auditor.capacity.check import problems
from auditor.capacity.fraction import static_fraction
from auditor.capacity.pool import estimate_pool, free_before_load, longest_admitted, verdict
from auditor.capacity.remedies import remedies
from auditor.capacity.shapes import ModelShape
from auditor.capacity.spec import LaunchSpec, version_of
from auditor.cli import main
from auditor.model.records import replace

GIB = 2**30


def spec_of(model: str, gpu: str, **given: object) -> LaunchSpec:
    found, card = find_model(model), find_gpu(gpu)
    assert found is not None
    assert card is not None
    return LaunchSpec(
        shape=found.shape,
        memory=card.memory,
        vendor=card.vendor,
        capability=card.capability,
        **given,  # type: ignore[arg-type]
    )


REPORTED = {
    "tp": 32, "dp": 32, "ep": 32, "dp_attention": True, "fraction": 0.75, "kv_dtype": "fp8_e4m3", "page_size": 64,
    "role": "prefill", "version": (0, 5, 11),
}  # fmt: skip


def test_the_upstream_report_within_eight_percent() -> None:
    # sgl-project/sglang#30233: 32 ranks, fraction 0.75, 284,928 tokens a rank
    estimate = estimate_pool(spec_of("zai-org/GLM-5.2-FP8", "H100", **REPORTED))
    assert abs(estimate.tokens.expected / 284_928 - 1) <= 0.08
    assert estimate.tokens.low <= 284_928 <= estimate.tokens.high
    assert longest_admitted(284_928, 1_048_576) == 284_921


def test_the_incident_is_below_its_context_and_no_fraction_mends_it() -> None:
    for version in ((0, 5, 14), (0, 5, 19)):
        for fraction in (None, 0.9, 0.95, 0.99):
            spec = spec_of(
                "zai-org/GLM-5.2-FP8", "H200", tp=8, kv_dtype="fp8_e4m3", version=version, fraction=fraction,
                context=1_048_576,
            )  # fmt: skip
            estimate = estimate_pool(spec)
            assert verdict(estimate.tokens, 1_048_576) == "below", (version, fraction, estimate.tokens)


def test_a_cap_is_exact_and_page_aligned() -> None:
    spec = spec_of("Qwen/Qwen3-8B", "H200", max_total_tokens=10_000, page_size=64)
    assert estimate_pool(spec).tokens.high == 9_984


MODELS = st.sampled_from(
    [
        "Qwen/Qwen3-8B",
        "deepseek-ai/DeepSeek-R1",
        "zai-org/GLM-5.2-FP8",
        "openai/gpt-oss-120b",
        "Qwen/Qwen3.6-27B",
        "deepseek-ai/DeepSeek-V4-Flash",
        "moonshotai/Kimi-K3",
        "zai-org/GLM-5.3-Flash",
        "MiniMaxAI/MiniMax-M3",
        "nvidia/Qwen3.6-27B-NVFP4",
    ]
)
VERSIONS = st.sampled_from([None, (0, 4, 6), (0, 5, 3), (0, 5, 11), (0, 5, 19), (0, 5, 23)])


@settings(deadline=None, max_examples=150)
@given(
    model=MODELS,
    memory=st.integers(8, 300),
    more=st.integers(0, 60),
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    fraction=st.one_of(st.none(), st.floats(0.3, 0.95)),
    version=VERSIONS,
)
def test_more_memory_or_a_higher_fraction_never_shrinks_the_pool(
    model: str, memory: int, more: int, tp: int, fraction: float | None, version: tuple[int, ...] | None
) -> None:
    found = find_model(model)
    assert found is not None
    spec = LaunchSpec(found.shape, memory * GIB, tp=tp, fraction=fraction, version=version, capability=9.0)
    estimate = estimate_pool(spec)
    assert 0 <= estimate.tokens.low <= estimate.tokens.expected <= estimate.tokens.high
    if fraction is not None:
        bigger = estimate_pool(replace(spec, memory=(memory + more) * GIB))
        higher = estimate_pool(replace(spec, fraction=min(0.99, fraction + 0.03)))
        for other in (bigger, higher):
            if (other.hosted is None) != (estimate.hosted is None):
                continue  # with the experts on the host it is another arrangement
            assert other.tokens.low >= estimate.tokens.low
            if other.starts == estimate.starts:  # else the one is the middle of those readings that start at all
                assert other.tokens.expected >= estimate.tokens.expected
            assert other.tokens.high >= estimate.tokens.high


@settings(deadline=None, max_examples=60)
@given(model=MODELS, tp=st.sampled_from([1, 4, 8]), version=VERSIONS.filter(bool))
def test_an_unknown_version_only_widens(model: str, tp: int, version: tuple[int, ...]) -> None:
    spec = spec_of(model, "H200", tp=tp)
    assume(spec.shape.since is None or version >= spec.shape.since)  # a release that does not know it never runs it
    unknown, known = estimate_pool(spec), estimate_pool(replace(spec, version=version))
    assert unknown.tokens.low <= known.tokens.low + 1
    assert unknown.tokens.high >= known.tokens.high - 1


ANY_MODEL = st.sampled_from(models())
OPTIONS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4, 8, 16]),
        "pp": st.sampled_from([1, 2]),
        "vendor": st.sampled_from(["nvidia", "amd", "huawei"]),
        "capability": st.sampled_from([None, 8.9, 9.0, 10.0]),
        "unified": st.booleans(),
        "fraction": st.one_of(st.none(), st.floats(0.2, 0.97)),
        "kv_dtype": st.sampled_from([None, "auto", "fp8_e4m3", "bf16"]),
        "quantization": st.sampled_from([None, "fp8", "int4"]),
        "version": VERSIONS,
        "speculative": st.sampled_from([None, "EAGLE", "NGRAM"]),
        "page_size": st.sampled_from([None, 64]),
        "max_running_requests": st.sampled_from([None, 16]),
        "disable_radix_cache": st.booleans(),
        "role": st.sampled_from([None, "prefill", "decode"]),
    }
)


@settings(deadline=None, max_examples=60)
@given(model=ANY_MODEL, memory=st.integers(4, 300), options=OPTIONS, spread=st.booleans())
def test_every_estimate_is_an_interval(model: str, memory: int, options: dict[str, object], spread: bool) -> None:
    found = find_model(model)
    assert found is not None
    more = {"dp_attention": True, "dp": options["tp"]} if spread else {}
    estimate = estimate_pool(LaunchSpec(found.shape, memory * GIB, **{**options, **more}))  # type: ignore[arg-type]
    for part in (estimate.tokens, estimate.free, estimate.fraction, estimate.weights, estimate.cell, estimate.budget):
        assert 0 <= part.low <= part.expected <= part.high, (part, estimate)


@settings(deadline=None, max_examples=40)
@given(model=ANY_MODEL, known=st.sampled_from([8.9, 9.0, 10.0]), version=VERSIONS, tp=st.sampled_from([1, 8]))
def test_an_unknown_capability_only_widens(model: str, known: float, version: tuple[int, ...] | None, tp: int) -> None:
    found = find_model(model)
    assert found is not None
    spec = LaunchSpec(found.shape, 180 * GIB, tp=tp, fraction=0.85, version=version)
    unknown, sure = estimate_pool(spec).tokens, estimate_pool(replace(spec, capability=known)).tokens
    assert unknown.low <= sure.low + 1
    assert unknown.high >= sure.high - 1


@settings(deadline=None, max_examples=40)
@given(
    model=ANY_MODEL,
    version=VERSIONS.filter(bool),
    tp=st.sampled_from([1, 8]),
    vendor=st.sampled_from(["nvidia", "amd"]),
)
def test_an_unknown_version_only_widens_any_model(model: str, version: tuple[int, ...], tp: int, vendor: str) -> None:
    found = find_model(model)
    assert found is not None
    spec = LaunchSpec(found.shape, 180 * GIB, vendor=vendor, capability=9.0, tp=tp, fraction=0.85)
    assume(found.shape.since is None or version >= found.shape.since)  # a release that does not know it never runs it
    unknown, known = estimate_pool(spec).tokens, estimate_pool(replace(spec, version=version)).tokens
    assert unknown.low <= known.low + 1
    assert unknown.high >= known.high - 1


ORDER = ["below", "straddles", "low-headroom", "covers"]


@settings(deadline=None, max_examples=60)
@given(context=st.integers(1, 10**7), more=st.integers(0, 10**6))
def test_more_context_never_makes_the_verdict_better(context: int, more: int) -> None:
    tokens = estimate_pool(spec_of("Qwen/Qwen3-8B", "H200")).tokens
    assert ORDER.index(verdict(tokens, context + more)) <= ORDER.index(verdict(tokens, context))


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("H200", "H200"), ("NVIDIA-H200", "H200"), ("nvidia-h100-80gb", "H100"), ("H100:8", "H100"),
        ("p5.48xlarge", "H100"), ("a3-ultragpu-8g", "H200"), ("nvidia-b200", "B200"), ("DGX Spark", "GB10"),
        ("MI355X", "MI355X"), ("L40S", "L40S"),
        ("NVIDIA-A100-SXM4-80GB", "A100-80G"), ("Standard_ND96isr_H100_v5", "H100"),
        ("NVIDIA-A100-PCIE-80GB", "A100-80G"), ("Tesla-V100-SXM2-16GB", "V100-16G"), ("H100_NVLINK_80GB", "H100"),
        ("gpu_8x_h100_sxm5", "H100"), ("H100!", "H100"), ("AMD_Instinct_MI325_OAM", "MI325X"), ("g6.24xlarge", "L4"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition", "RTX PRO 6000"), ("g7.8xlarge", "RTX PRO 4500"),
        ("ml.p5en.48xlarge", "H200"), ("p6e-gb300r.36xlarge", "GB300"), ("BM.GPU.A100-v2.8", "A100-80G"),
        ("BM.GPU4.8", "A100-40G"), ("BM.GPU.B300.8", "B300"), ("Standard_ND128isr_NDR_GB200_v6", "GB200"),
        ("Standard_NC40ads_H100_v5", "H100 NVL"), ("Standard_ND96asr_v4", "A100-40G"), ("a3-highgpu-4g", "H100"),
        ("a2-megagpu-16g", "A100-40G"), ("a4x-highgpu-4g", "GB200"), ("g4-standard-96", "RTX PRO 6000"),
        ("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "A100-80G 3g.40gb"), ("Tesla-T4-SHARED", "T4 (shared)"),
    ],
)  # fmt: skip
def test_accelerators_by_the_names_in_files(written: str, name: str) -> None:
    found = find_gpu(written)
    assert found is not None
    assert found.name == name


def test_an_unknown_accelerator_is_unknown() -> None:
    assert find_gpu("TPU v5e") is None
    assert find_gpu("") is None
    for share in ("g6f.xlarge", "Standard_NV6ads_A10_v5", "g4-standard-12", "H100-60GB"):
        assert find_gpu(share) is None, share  # a share of a card, or a size that no such card has


@pytest.mark.parametrize(
    ("written", "gib"),
    [
        # what `nvidia-smi mig -lgip` reports of these profiles, to a twentieth
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4.75), ("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", 19.62),
        ("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", 39.5), ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", 9.75),
    ],
)  # fmt: skip
def test_a_slice_has_its_own_memory(written: str, gib: float) -> None:
    found = find_gpu(written)
    assert found is not None
    assert found.smallest is not None
    assert found.smallest <= gib * GIB <= found.memory


def test_alternatives_are_all_considered() -> None:
    assert [gpu.name for gpu in gpus_named("H100 or p5en.48xlarge")] == ["H100", "H200"]
    assert gpus_named("H100 or TPU v5e") == ()


@pytest.mark.parametrize(
    ("written", "base", "quantization"),
    [
        ("unsloth/Qwen3-8B-FP8", "qwen3-8b", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w4a16", "llama-3.1-70b", "int4"),
        ("nvidia/GLM-5.2-NVFP4", "glm-5.2", "nvfp4"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", "qwen2.5-72b", "fp8"),  # 8 bits a weight: the method has both widths
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "qwen2.5-72b", "int4"),
        ("Qwen/Qwen3-32B-AWQ", "qwen3-32b", "int4"),
        ("RedHatAI/Qwen3-32B-quantized.w8a8", "qwen3-32b", "fp8"),
        ("unsloth/Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b", "int4"),
        ("Qwen/Qwen3-235B-A22B-MXFP8", "qwen3-235b-a22b", "fp8"),
    ],
)
def test_requants_lead_to_their_base(written: str, base: str, quantization: str) -> None:
    assert base_name(written) == (base, quantization)


def test_a_base_model_beside_a_quantized_one_is_of_either_width() -> None:
    tuned, base = find_model("deepseek-ai/DeepSeek-V3.1"), find_model("deepseek-ai/DeepSeek-V3.1-Base")
    assert tuned is not None
    assert base is not None
    assert (tuned.shape.expert_bytes, base.shape.expert_bytes) == (None, (1.0, 2.0))
    assert base.note.endswith("whether these weights are quantized as its own is not published")


def test_every_model_of_the_catalogue_has_a_shape_and_every_accelerator_memory() -> None:
    for name in models():
        found = find_model(name)
        assert found is not None, name
        assert found.shape.layers > 0, name
    assert all(gpu.memory > 0 for gpu in gpus().values())
    assert len(gpus()) >= 45


def test_the_json_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["capacity", "--model", "zai-org/GLM-5.2-FP8", "--gpu", "H200", "--tp-size", "8", "--format", "json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    assert document["verdict"] == "below"
    assert document["context_tokens"] == 1_048_576
    assert document["context_source"] == "model"
    assert set(document["pool_tokens"]) == {"low", "expected", "high"}


def test_unknown_models_and_accelerators_are_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "--model", "no/such-model", "--gpu", "H200", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"
    assert main(["capacity", "--model", "Qwen/Qwen3-8B", "--gpu", "TPU", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "unknown"
    assert "--gpu-memory-gib" in document["missing"][0]


def test_versions() -> None:
    assert version_of("v0.5.10.post1") == (0, 5, 10)
    assert version_of("0.5.19rc1") == (0, 5, 19)
    assert version_of("latest") is None


def test_the_catalogues_agree_with_themselves() -> None:
    assert problems() == []
    assert len(models()) >= 150


def test_what_would_make_the_incident_fit_is_tried() -> None:
    spec = spec_of("zai-org/GLM-5.3-FP8", "H200", tp=8, kv_dtype="fp8_e4m3", fraction=0.9, version=(0, 5, 19))
    found = list(remedies(spec, 1_048_576, 1.25, gpus().values()))
    assert [one.works for one in found] == [True, False, True, True]
    assert found[0].change.startswith("--context-length ")
    assert found[1].change.startswith("no fraction: all memory that the weights leave holds ")
    assert found[1].verdict == "below"
    assert found[2].change == "--tp-size 16"
    assert found[3].change.endswith(" instead")
    assert all(one.verdict in ("covers", "low-headroom") for one in found if one.works)


def test_nothing_is_proposed_where_the_pool_covers() -> None:
    spec = spec_of("Qwen/Qwen3-8B", "H200", version=(0, 5, 19))
    assert list(remedies(spec, 40_960, 1.25, gpus().values())) == []


@pytest.mark.parametrize(
    ("version", "row"),
    [
        # sgl-project/sglang#30531: 55,225 bytes with an index row a layer, 47,702 where only owners have one
        ((0, 5, 14), 78 * 576 + 78 * 132),
        ((0, 5, 17), 78 * 576 + 78 * 132),
        ((0, 5, 18), 78 * 576 + 21 * 132),
        ((0, 5, 19), 78 * 576 + 21 * 132),
    ],
)
def test_index_rows_by_release(version: tuple[int, ...], row: int) -> None:
    spec = spec_of("zai-org/GLM-5.2-FP8", "B200", tp=4, kv_dtype="fp8_e4m3", version=version)
    cell = estimate_pool(spec).cell
    assert cell.low == cell.high == row


@pytest.mark.parametrize(("version", "row"), [((0, 5, 15), 576), ((0, 5, 16), 576), ((0, 5, 17), 656)])
def test_the_row_is_priced_as_it_is_stored_from_0_5_17_on(version: tuple[int, ...], row: int) -> None:
    # pool_configurator.py: calculate_mla_kv_cache_dim is asked from 0.5.17 on; fp8 on Hopper
    cell = estimate_pool(spec_of("zai-org/GLM-5.2-FP8", "H200", tp=8, kv_dtype="fp8_e4m3", version=version)).cell
    assert cell.low == cell.high == 78 * (row + 132)


@pytest.mark.parametrize("beside", [{"role": "decode"}, {"role": "prefill"}, {"hierarchical_cache": True}])
def test_a_peer_or_a_hierarchical_cache_keeps_all_index_rows_until_0_5_22(beside: dict[str, object]) -> None:
    # mem_cache/kv_cache_configurator.py: _should_elide_dsa_index_k of 0.5.21 and of 0.5.22
    given = {"tp": 4, "kv_dtype": "fp8_e4m3", **beside}
    before = spec_of("zai-org/GLM-5.2-FP8", "B200", version=(0, 5, 21), **given)
    since = spec_of("zai-org/GLM-5.2-FP8", "B200", version=(0, 5, 22), **given)
    assert estimate_pool(before).cell.expected == 78 * 576 + 78 * 132
    assert estimate_pool(since).cell.expected == 78 * 576 + 21 * 132


def test_default_fractions_by_release() -> None:
    # server_args.py: 0.4.8 to 0.5.1 keep (2.8 + ranks / 10) GiB on cards below 35 GiB and 32 GiB above 160
    small, large = spec_of("Qwen/Qwen3-0.6B", "RTX 5080"), spec_of("deepseek-ai/DeepSeek-R1", "B200", tp=8)
    assert static_fraction(replace(small, version=(0, 4, 10)))[0].expected == pytest.approx(0.818, abs=0.001)
    assert static_fraction(replace(large, version=(0, 5, 1)))[0].expected == pytest.approx(0.821, abs=0.001)


def test_the_fraction_follows_the_role_from_0_5_17_on() -> None:
    # server_args.py of 0.5.17 and 0.5.18: reserve_for_graph_mb keeps nothing for decode graphs on a prefill engine
    spec = spec_of("zai-org/GLM-5.2-FP8", "H200", tp=8, role="prefill", dp=8, dp_attention=True)
    by_release = [static_fraction(replace(spec, version=(0, 5, minor)))[0] for minor in (14, 16, 17, 18, 19)]
    early, between, *late = by_release
    assert late[0] == late[1] == late[2]
    assert early.expected < late[0].expected
    assert between.low == early.low


def test_without_an_accelerator_only_what_holds_on_all_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "--model", "Qwen/Qwen2.5-0.5B-Instruct", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] in ("covers", "low-headroom")
    assert len(document["gpus"]) == len(gpus())
    assert main(["capacity", "--model", "zai-org/GLM-5.2-FP8", "--tp-size", "8", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "unknown"
    assert "--gpu" in document["missing"][0]


@pytest.mark.parametrize(
    ("written", "quantization", "context"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "bf16", 131_072),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "fp8", 163_840),
        ("moonshotai/Kimi-K2-Thinking", "int4", 262_144),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "fp8", 262_144),
        ("cyankiwi/Qwen3-30B-A3B-Instruct-2507-AWQ-4bit", "int4", 262_144),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "int4", 131_072),
        ("/models/Qwen3-8B", "bf16", 40_960),
    ],
)
def test_ids_lead_to_their_own_weights_and_context(written: str, quantization: str, context: int) -> None:
    found = find_model(written)
    assert found is not None
    assert (found.shape.quantization, found.shape.context) == (quantization, context)


@pytest.mark.parametrize(
    "written", ["deepseek-ai/DeepSeek-V4.1", "deepseek-ai/DeepSeek-V2", "deepseek", "Qwen/Qwen9-8B"]
)
def test_another_generation_is_another_model(written: str) -> None:
    assert find_model(written) is None


def test_what_loading_leaves_behind_is_counted_until_it_is_collected() -> None:
    # public logs of two 3090: 342,000 tokens with a collection before measuring, 199,000 to 202,043 without
    given = {"tp": 2, "fraction": 0.9, "kv_dtype": "fp8_e4m3", "context": 262_144}
    early = spec_of("someone/Devstral-Small-2-24B-AWQ", "RTX 3090", version=(0, 5, 15), **given)
    late = replace(early, version=(0, 5, 19))
    assert estimate_pool(early).tokens.low < 199_000 < 202_043 < 342_000 < estimate_pool(early).tokens.high
    assert 202_043 < estimate_pool(late).tokens.low < 342_000 < estimate_pool(late).tokens.high
    alone = spec_of("someone/Qwen3-32B-AWQ", "RTX 3090", version=(0, 5, 15), **given)
    assert estimate_pool(alone).weights == estimate_pool(replace(alone, version=(0, 5, 19))).weights


def test_an_open_question_is_not_below_by_a_default_that_nobody_stated() -> None:
    # one and the same launch but for the ratio has 102,094 tokens and 565,446
    given = {"tp": 2, "fraction": 0.85, "context": 262_144, "version": (0, 5, 14)}
    launch = spec_of("someone/gemma-4-12B-AWQ", "RTX 3090", **given)
    asked = replace(launch, options_open=True)
    assert verdict(estimate_pool(launch).tokens, 262_144) == "below"
    assert verdict(estimate_pool(asked).tokens, 262_144) == "straddles"
    assert estimate_pool(asked).tokens.high > 565_446
    assert any("--swa-full-tokens-ratio leaves" in said for said in estimate_pool(asked).assumptions)
    stated = replace(asked, swa_full_tokens_ratio=0.8)
    assert estimate_pool(stated).tokens == estimate_pool(replace(stated, options_open=False)).tokens
    small = replace(asked, context=16_384)
    assert estimate_pool(small).tokens == estimate_pool(replace(small, options_open=False)).tokens


def test_a_smaller_window_pool_is_proposed() -> None:
    spec = spec_of("google/gemma-4-12B-it", "H100", fraction=0.88, context=262_144, version=(0, 5, 20))
    changes = [remedy.change for remedy in remedies(spec, 262_144, 1.25, gpus().values())]
    assert any(change.startswith("--swa-full-tokens-ratio 0.") for change in changes)


def test_what_a_display_or_a_hypervisor_holds_is_not_free() -> None:
    # public logs: 14.70 GiB free of a 4070 Ti SUPER that shows a desktop, 22.91 on two 3090, 92.13 of a DC-4-96Q
    for name, ranks, free in (("RTX 4070 Ti SUPER 16GB", 1, 14.70), ("RTX 3090", 2, 22.91)):
        card = find_gpu(name)
        assert card is not None
        spec = LaunchSpec(shape_found("Qwen/Qwen3-0.6B"), memory=card.memory, held=card.held, tp=ranks)
        assert free_before_load(spec).low <= free * GIB <= free_before_load(spec).high
    for name in ("NVIDIA RTX PRO 6000 Blackwell DC-4-96Q", "Standard_NC128ds_xl_RTXPRO6000BSE_v6"):
        card = find_gpu(name)
        assert card is not None
        spec = LaunchSpec(shape_found("Qwen/Qwen3-14B-FP8"), memory=card.memory, held=card.held)
        assert free_before_load(spec).expected == pytest.approx(92.13 * GIB, abs=0.1 * GIB)


def shape_found(name: str) -> ModelShape:
    found = find_model(name)
    assert found is not None
    return found.shape


def test_stated_slots_leave_the_rest_to_the_pool() -> None:
    # a public start-up on two 3090: 5,250,973 tokens with --max-mamba-cache-size 8
    given = {"tp": 2, "fraction": 0.85, "kv_dtype": "fp8_e4m3", "version": (0, 5, 13)}
    spec = spec_of("someone/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-AWQ", "RTX 3090", mamba_slots=8, **given)
    tokens = estimate_pool(spec).tokens
    assert tokens.low < 5_250_973 < tokens.high
    assert tokens.high < 1.5 * tokens.low
    assert estimate_pool(replace(spec, mamba_slots=None)).tokens.high < tokens.low
