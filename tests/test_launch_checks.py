"""What launches are told about pool, context and each other: whole answers on small trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.checks.launches import _without_role
from auditor.config import Config
from tests.trees import lay, scan_tree

SERVE = "python3 -m sglang.launch_server --model-path"
RULES = (
    "kv-pool-below-context",
    "edge-limit-band",
    "context-length-override",
    "prompt-auto-truncation",
    "prefill-decode-mismatch",
    "prefill-decode-version-skew",
    "weak-readiness-probe",
)


def told(tmp_path: Path, files: dict[str, str], rule: str = "", **assume: str) -> list[tuple[str, int, str, str, str]]:
    """Path, line, rule, level and outcome (with the key where there is one) of every finding of these rules."""
    result = scan_tree(lay(files, tmp_path), Config(), **assume)
    assert not [problem for problem in result.problems if problem.kind == "internal"]
    return [
        (
            finding.span.path,
            finding.span.start.line,
            finding.rule,
            finding.level,
            f"{finding.outcome} {finding.properties.get('key', '')}".strip(),
        )
        for finding in result.active
        if finding.rule in ((rule,) if rule else RULES)
    ]


def role(name: str, more: str = "", model: str = "/models/m") -> str:
    return f"{SERVE} {model} --disaggregation-mode {name} {more}\n"


MISMATCH = "prefill-decode-mismatch"


def test_roles_in_two_files_that_differ_by_the_role_are_a_pair(tmp_path: Path) -> None:
    files = {
        "h200/prefill.sh": role("prefill", "--page-size 32"),
        "h200/decode.sh": role("decode", "--page-size 64"),
        "b200/prefill.sh": role("prefill", "--page-size 64"),
        "b200/decode.sh": role("decode", "--page-size 64"),
    }
    assert told(tmp_path, files, MISMATCH) == [("h200/decode.sh", 1, MISMATCH, "warning", "differs page-size")]


def test_one_prefill_that_agrees_is_enough(tmp_path: Path) -> None:
    text = role("prefill", "--page-size 32") + role("prefill", "--page-size 64") + role("decode", "--page-size 64")
    assert told(tmp_path, {"pd.sh": text}, MISMATCH) == []


def test_different_models_are_no_pair(tmp_path: Path) -> None:
    text = role("prefill", "--page-size 32", "a/one") + role("decode", "--page-size 64", "a/two")
    assert told(tmp_path, {"pd.sh": text}, MISMATCH) == []


def test_a_variable_is_no_difference(tmp_path: Path) -> None:
    text = role("prefill", "--page-size $PAGE --kv-cache-dtype $KV --tp $TP") + role("decode", "--page-size 64 --tp 8")
    assert told(tmp_path, {"pd.sh": text}, MISMATCH) == []


@pytest.mark.parametrize(
    ("prefill", "decode", "says"),
    [
        ("--kv-cache-dtype bf16", "", []),
        ("--kv-cache-dtype fp8_e4m3", "", ["differs kv-cache-dtype"]),
        ("--context-length 4096", "--context-length 8192", ["differs context-length"]),
        ("--max-total-tokens 9000", "--max-total-tokens 8000", ["may-differ pool"]),
        ("", "--speculative-algorithm EAGLE", ["may-differ speculative"]),
        ("--speculative-algorithm EAGLE3", "--speculative-algorithm EAGLE", ["differs speculative"]),
        ("--speculative-algorithm NEXTN", "--speculative-algorithm EAGLE", []),
        ("", "--speculative-algorithm NGRAM", []),
        ("--tp 4", "--tp 8", ["may-differ tp-size"]),
        ("--tp 8 --dp 8 --enable-dp-attention", "--tp 4 --dp 4 --enable-dp-attention", []),
        ("--tp 8 --dp 8 --enable-dp-attention", "--tp 8", ["may-differ tp-size"]),
    ],
)
def test_keys_that_a_pair_has_to_agree_on(tmp_path: Path, prefill: str, decode: str, says: list[str]) -> None:
    got = told(tmp_path, {"pd.sh": role("prefill", prefill) + role("decode", decode)}, MISMATCH)
    assert [(line, outcome) for _, line, _, _, outcome in got] == [(2, outcome) for outcome in says]


def test_ranks_may_differ_where_the_cache_is_replicated(tmp_path: Path) -> None:
    for number, model in enumerate(("deepseek-ai/DeepSeek-V3", "/data/kimi-k2-local", "zai-org/GLM-5.2-FP8")):
        text = role("prefill", "--tp 8", model) + role("decode", "--tp 16", model)
        assert told(tmp_path / str(number), {"pd.sh": text}, MISMATCH) == [], model
    distilled = "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"
    text = role("prefill", "--tp 2", distilled) + role("decode", "--tp 4", distilled)
    assert len(told(tmp_path / "d", {"pd.sh": text}, MISMATCH)) == 1


def test_a_whole_tree_rule_stays_quiet_on_single_files(tmp_path: Path) -> None:
    lay({"pd.sh": role("prefill", "--page-size 32") + role("decode", "--page-size 64")}, tmp_path)
    result = scan_tree(tmp_path / "pd.sh", Config())
    assert [finding for finding in result.active if finding.rule == MISMATCH] == []
    assert any(MISMATCH in note for note in result.stats.notes)


POOL = "kv-pool-below-context"


def test_the_context_of_the_model_stands_where_no_flag_does(tmp_path: Path) -> None:
    text = role("decode", "--tp 8 --max-total-tokens 131072", "deepseek-ai/DeepSeek-R1")
    assert told(tmp_path, {"d.sh": text}, POOL) == [("d.sh", 1, POOL, "error", "cap-below-context")]


def test_what_does_not_fit_is_an_outage_and_no_leak_on_a_single_worker(tmp_path: Path) -> None:
    flags = "--tp 8 --context-length 1048576 --mem-fraction-static 0.75"
    alone = {"s.sh": f"{SERVE} zai-org/GLM-5.2-FP8 {flags}\n"}
    assert told(tmp_path / "a", alone, POOL, gpu="H200") == [("s.sh", 1, POOL, "warning", "below")]
    split = {"s.sh": role("prefill", flags, "zai-org/GLM-5.2-FP8")}
    assert told(tmp_path / "b", split, POOL, gpu="H200") == [("s.sh", 1, POOL, "error", "below")]


def test_a_name_that_is_served_does_not_tell_the_quantization(tmp_path: Path) -> None:
    # 671 G parameters: fp8 does not fit on four of these, a 4-bit checkpoint behind the same name does
    flags = "--served-model-name deepseek-ai/DeepSeek-R1 --tp 4 --context-length 9600"
    got = told(tmp_path, {"s.sh": role("prefill", flags, "/model/")}, POOL, gpu="GB200")
    assert [outcome for *_, outcome in got if outcome in ("below", "straddles")] == []


def test_no_engine_starts_without_a_pool_so_nothing_is_certain_of_one(tmp_path: Path) -> None:
    # states of 1,024 requests and of their drafts take more than is left: a launch that runs has something unseen
    flags = (
        "--tp 4 --mem-fraction-static 0.8 --context-length 2020 --disable-radix-cache --mamba-ssm-dtype bfloat16"
        " --speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1"
        " --speculative-num-draft-tokens 4 --max-running-requests 1024"
    )
    text = role("decode", flags, "Qwen/Qwen3.5-397B-A17B-FP8")
    assert told(tmp_path, {"d.sh": text}, POOL, gpu="GB200") == [("d.sh", 1, POOL, "note", "unknown")]


def recipe(model: str, flags: str, gpu: str = "h100") -> dict[str, str]:
    """A recipe of the form that NVIDIA's srt-slurm has: the model's path is what its container mounts."""
    text = (
        f"model: {{{model}, container: 'lmsysorg/sglang:v0.5.8-cu130'}}\n"
        f"resources: {{gpu_type: {gpu}, gpus_per_node: 8}}\n"
        "backend:\n  sglang_config:\n    prefill:\n      model-path: /model/\n      disaggregation-mode: prefill\n"
    )
    return {"recipe.yaml": text + "".join(f"      {flag}\n" for flag in flags.split("; "))}


R1_ON_H100 = "served-model-name: deepseek-ai/DeepSeek-R1; tp-size: 16; mem-fraction-static: 0.6; page-size: 1"


def test_what_a_recipe_says_of_the_weights_decides(tmp_path: Path) -> None:
    # recipes/h100/1k1k/stp/h100-fp8-1p1d-max-dep.yaml of NVIDIA/srt-slurm: 16 cards at 0.6, the window of the model
    stated = recipe("path: dsr1-fp8, precision: fp8", R1_ON_H100)
    result = scan_tree(lay(stated, tmp_path / "a"), Config())
    (found,) = [finding for finding in result.active if finding.rule == POOL]
    assert (found.level, found.outcome, found.properties["context"]) == ("error", "below", 163840)
    listed = found.properties["assumptions"]
    assert isinstance(listed, list)
    assert listed[:2] == [
        "the model is read from `--served-model-name deepseek-ai/DeepSeek-R1`",
        "the weights are read from `precision: fp8` beside the launch",
    ]
    assert [related.span.start.line for related in found.related if "weights are said" in related.message] == [1]
    # the same without the word: the 4-bit checkpoint behind the same name holds the window
    unsaid = recipe("path: dsr1", R1_ON_H100)
    assert told(tmp_path / "b", unsaid, POOL) == []


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("path: dsr1, precision: fp4", R1_ON_H100),
        ("path: dsr1", R1_ON_H100 + "; quantization: modelopt_fp4"),
        ("path: 'hf:nvidia/DeepSeek-R1-0528-NVFP4'", R1_ON_H100),
    ],
)
def test_four_bits_leave_room_where_eight_do_not(tmp_path: Path, model: str, flags: str) -> None:
    found = [outcome for *_, outcome in told(tmp_path, recipe(model, flags), POOL)]
    assert "below" not in found


def test_a_word_that_contradicts_the_name_leaves_both(tmp_path: Path) -> None:
    from auditor.capacity.launch import model_named

    def widths(model: str, flags: str = "tp-size: 8") -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        (launch,) = scan_tree(lay(recipe(model, flags), folder), Config()).facts.launches
        return [shape.quantization for shape in model_named(launch).shapes]

    tmp_path.mkdir(exist_ok=True)
    assert widths("path: nvidia/DeepSeek-R1-0528-NVFP4, precision: fp8") == ["nvfp4", "fp8"]
    assert widths("path: DeepSeek-R1-0528, precision: fp4") == ["nvfp4", "mxfp4"]
    assert widths("path: DeepSeek-R1-0528, precision: fp8") == ["fp8"]
    assert widths("path: Qwen/Qwen3-32B, precision: fp16") == ["bf16"]
    # its experts are of 4 bits as published: the checkpoint itself is meant, by either word
    assert (
        widths("path: deepseek-v4-pro, precision: mxfp4") == widths("path: deepseek-v4-pro, precision: fp8") == ["fp8"]
    )
    assert widths("path: dsr1", "served-model-name: deepseek-ai/DeepSeek-R1") == ["fp8", "nvfp4", "int4"]
    assert widths("path: dsr1", "served-model-name: deepseek-ai/DeepSeek-R1; quantization: fp8") == ["fp8"]


def test_the_accelerator_is_asked_for_only_where_it_is_missing(tmp_path: Path) -> None:
    flags = "--tp 8 --context-length 262144"
    asks = {}
    for name, more in (("gpu", ""), ("option", " --attn-cp-size 8"), ("cap", " --max-total-tokens 1000")):
        lay({"s.sh": role("prefill", flags + more, "zai-org/GLM-5.2-FP8")}, tmp_path / name)
        found = [one for one in scan_tree(tmp_path / name, Config()).active if one.rule == POOL]
        asks[name] = ["`gpu` under `[tool.auditor]`" in one.remedy for one in found]
    assert asks == {"gpu": [True], "option": [False], "cap": [False]}


@pytest.mark.parametrize("flag", ["--attn-cp-size 8", "--enable-kv-cache-sharding"])
def test_an_option_that_is_not_modelled_is_named(tmp_path: Path, flag: str) -> None:
    text = role("prefill", f"--tp 8 --context-length 1048576 {flag}", "zai-org/GLM-5.2-FP8")
    assert told(tmp_path, {"s.sh": text}, POOL, gpu="H200") == [("s.sh", 1, POOL, "note", "unknown")]


def test_no_accelerator_is_needed_where_all_of_them_agree(tmp_path: Path) -> None:
    small = {"s.sh": role("decode", "--context-length 4096", "Qwen/Qwen3-0.6B")}
    assert told(tmp_path, small, POOL) == []


CONFIG = (
    '{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, '
    '"num_key_value_heads": 32, "vocab_size": 32000, "intermediate_size": 11008, "max_position_embeddings": 1048576, '
    '"torch_dtype": "bfloat16"}'
)


def test_a_model_of_the_tree_is_known_by_its_folder(tmp_path: Path) -> None:
    # 32 layers of 32 heads of 128 in bfloat16 are 512 KiB a token: 80 GB hold about 100,000 of them
    files = {"models/ours/config.json": CONFIG, "serve.sh": role("prefill", "", "models/ours")}
    assert told(tmp_path / "a", files, POOL, gpu="H100") == [("serve.sh", 1, POOL, "error", "below")]
    files["serve.sh"] = role("prefill", "", "models/theirs")
    assert told(tmp_path / "b", files, POOL, gpu="H100") == []


def test_the_band_is_told_once_a_deployment_on_its_narrowest_worker(tmp_path: Path) -> None:
    text = role("prefill", "--context-length 8192") + role("decode", "--context-length 4096 --max-total-tokens 4096")
    assert told(tmp_path, {"pd.sh": text}, "edge-limit-band") == [("pd.sh", 2, "edge-limit-band", "note", "open-band")]


def test_a_front_limit_above_the_band_does_not_close_it(tmp_path: Path) -> None:
    text = role("decode", "--context-length 8192 --max-total-tokens 8192")
    for limit, count in ((8185, 0), (8186, 1)):
        gate = f"auditor gate --decode http://d:30000 --edge-limit {limit}\n"
        got = told(tmp_path / str(limit), {"d.sh": text, "gate.sh": gate}, "edge-limit-band")
        assert len(got) == count, limit


CUT = "prompt-auto-truncation"


def test_equal_limits_only_hide_the_cut(tmp_path: Path) -> None:
    flags = "--allow-auto-truncate --context-length 8192"
    got = told(tmp_path, {"pd.sh": role("prefill", flags) + role("decode", flags)}, CUT)
    assert got == [("pd.sh", 1, CUT, "note", "truncates"), ("pd.sh", 2, CUT, "note", "truncates")]


def test_unequal_limits_are_told_on_both_sides(tmp_path: Path) -> None:
    one, other = "--allow-auto-truncate --context-length 8192", "--allow-auto-truncate --context-length 16384"
    got = told(tmp_path, {"pd.sh": role("prefill", one) + role("decode", other)}, CUT)
    assert got == [("pd.sh", 1, CUT, "warning", "differs"), ("pd.sh", 2, CUT, "warning", "differs")]


def pod(image: str, probe: str, env: str = "[]") -> dict[str, str]:
    return {
        "pod.yaml": (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: s\n"
            f"    image: {image}\n    env: {env}\n"
            "    command: [python3, -m, sglang.launch_server, --model-path, /m]\n"
            f"    readinessProbe: {probe}\n"
        )
    }


HEALTH = "{httpGet: {path: /health, port: 30000}}"
OFF = '[{name: SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION, value: "false"}]'


@pytest.mark.parametrize(
    ("files", "weak"),
    [
        (pod("lmsysorg/sglang:v0.5.23", HEALTH), False),
        (pod("lmsysorg/sglang:latest", HEALTH), False),
        (pod("lmsysorg/sglang:v0.5.23", HEALTH, OFF), True),
        (pod("lmsysorg/sglang:v0.4.6.post5-cu124", HEALTH), True),
        (pod("lmsysorg/sglang:v0.4.6.post5-cu124", "{httpGet: {path: /health_generate, port: 1}}"), False),
        (pod("lmsysorg/sglang:v0.5.23", "{tcpSocket: {port: 30000}}"), True),
        (pod("lmsysorg/sglang:v0.5.23", "{exec: {command: [/ready.sh]}}"), False),
    ],
)
def test_readiness_that_says_nothing_of_generation(tmp_path: Path, files: dict[str, str], weak: bool) -> None:
    assert len(told(tmp_path, files, "weak-readiness-probe")) == weak


def test_paths_without_their_role() -> None:
    assert _without_role("deploy/prefill/serve.sh") == _without_role("deploy/decode/serve.sh")
    assert _without_role("h200-1p1d-prefill.yaml") == _without_role("h200-1p1d-decode.yaml")
    assert _without_role("deploy/prefill.yaml") != _without_role("deploy/prefill-2.yaml")


def test_an_advisory_points_at_the_image_that_its_launch_runs_in(tmp_path: Path) -> None:
    # as in the runtimes of sgl-project/ome: prefill and decode in one file, each with its own image
    def container(role: str) -> str:
        command = f"python3 -m sglang.launch_server --model-path m --disaggregation-mode {role}"
        image = "lmsysorg/sglang:v0.5.5.post3-cu129-amd64"
        return f"  - name: {role}\n    image: {image}\n    command: [sh, -c, '{command}']\n"

    text = f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n{container('prefill')}{container('decode')}"
    result = scan_tree(lay({"pd.yaml": text}, tmp_path), Config())
    (found,) = [finding for finding in result.active if finding.rule == "known-advisory"]
    lines = text.splitlines()
    assert [lines[related.span.start.line - 2].strip() for related in found.related] == ["- name: decode"]
