"""`auditor capacity` as a user meets it: what is wrong is named, what is near is proposed, what is odd is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.cli import main
from tests.trees import ROOT

HEAVY = {
    "anyio", "asyncio", "google_re2", "httpcore", "httpx", "libcst", "packaging", "pathspec", "pydantic", "requests",
    "rich", "ruamel", "socket", "ssl", "tomli", "tomllib", "tree_sitter", "yaml",
}  # fmt: skip


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["capacity", *arguments, "--format", "json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["capacity", *arguments]) == 0
    return capsys.readouterr().out


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; before = set(sys.modules); from auditor.cli import main;"
        "main(['capacity', '--model', 'zai-org/GLM-5.2-FP8', '--gpu', 'H200', '--tp-size', '8', '--output',"
        " sys.argv[1]]);"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "/dev/null"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "auditor" in loaded
    assert not loaded & HEAVY
    foreign = {name for name in loaded if name not in sys.stdlib_module_names} - {"auditor"}
    assert not foreign, "only the standard library and auditor itself"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mem-fraction-static", "85"], "--mem-fraction-static 85: has to be a share between 0 and 1"),
        (["--tp-size", "0"], "--tp-size 0: has to be at least 1"),
        (["--context-length", "0"], "--context-length 0: has to be at least 1"),
        (["--kv-cache-dtype", "fp8"], "--kv-cache-dtype fp8: one of auto, bf16,"),
        (["--gpu-memory-gib", "-1"], "--gpu-memory-gib -1: has to be above 0"),
        (["--engine-version", "latest"], "--engine-version latest: no release number of the engine; write it as `0."),
        (["--quantization", "ftp8"], "w8a8_int8; did you mean `fp8`?"),
        (["--speculative-algorithm", "EAGEL"], "UNO; did you mean `EAGLE`?"),
        (["--speculative-algorithm", "banana"], "--speculative-algorithm banana: one of DFLASH,"),
    ],
)
def test_what_the_engine_would_refuse_is_a_usage_error(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", "--model", "Qwen/Qwen3-8B", "--gpu", "H200", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "gpu", "near"),
    [
        ("Qwen/Qwen3-8", "H10", ["`Qwen/Qwen3-8B`", "`H100`"]),
        ("meta/llama-3.3-70b-instrukt", "rtx4o90", ["`meta-llama/Llama-3.3-70B-Instruct`", "`RTX 4090`"]),
        ("zai-org/glm-5.2-fp7", "H200", ["`zai-org/GLM-5.2-FP8`"]),
    ],
)
def test_the_nearest_names_are_proposed(
    model: str, gpu: str, near: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = answer(capsys, "--model", model, "--gpu", gpu)["missing"]
    assert [line.rpartition("did you mean ")[2].rstrip("?") for line in missing] == near


def test_a_release_of_tomorrow_is_taken_for_the_last_known_and_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--model", "Qwen/Qwen3-8B", "--gpu", "H100", "--engine-version")
    later, last = answer(capsys, *arguments, "9.9"), answer(capsys, *arguments, "0.5.23.post1")
    said = "engine version 9.9 is later than 0.5.23, the last that was looked at: taken to do as that one"
    assert said in later["assumptions"]
    assert later["breakdown"]["mem_fraction_source"] == "heuristic of 0.5.23, the last known"
    assert later["pool_tokens"] == last["pool_tokens"]
    assert not any("later than" in line for line in last["assumptions"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Qwen/Qwen3-8B", "--tp-size", "3"], "32 attention heads are no multiple of 3 ranks"),
        (["Qwen/Qwen3-8B", "--context-length", "65536"], "the context is above the model's own 40,960"),
        (["Qwen/Qwen3-8B", "--dp-size", "2"], "the pool is that of one of 2 replicas of 1 accelerators"),
        (["deepseek-ai/DeepSeek-R1"], "the weights do not fit: the engine would not start"),
        (
            ["deepseek-ai/DeepSeek-R1", "--tp-size", "8", "--dp-size", "8", "--enable-dp-attention"],
            "the pool is that of one of 8 data-parallel ranks; a request lives in one",
        ),
    ],
)
def test_what_is_odd_about_a_launch_is_said(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = answer(capsys, "--gpu", "H200", "--model", *arguments)
    assert any(line.startswith(says) for line in document["assumptions"])


def test_the_workspace_of_aiter_is_said_and_taken_off(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--model", "Qwen/Qwen3-8B", "--gpu", "MI300X", "--mem-fraction-static", "0.8")
    document = answer(capsys, *arguments, "--engine-version", "0.5.11")
    assert document["breakdown"]["mem_fraction_static"] == pytest.approx(0.68)
    assert any("aiter backend keeps 15 %" in line for line in document["assumptions"])
    plain = answer(capsys, *arguments, "--engine-version", "0.5.11", "--attention-backend", "triton")
    assert plain["breakdown"]["mem_fraction_static"] == pytest.approx(0.8)


def test_a_draft_model_costs_weights_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--model", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "H200", "--tp-size", "2")
    alone = answer(capsys, *arguments, "--engine-version", "0.5.19")["breakdown"]
    draft = ("--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path")
    both = answer(capsys, *arguments, "--engine-version", "0.5.19", *draft, "meta-llama/Llama-3.2-1B-Instruct")
    rows = 16 * 4 * 2 * 64 * 2  # 16 layers of 4 heads a rank, keys and values of 64 in 16 bits
    assert both["breakdown"]["kv_bytes_per_token_per_gpu"] == alone["kv_bytes_per_token_per_gpu"] + rows
    assert both["breakdown"]["weights_bytes_per_gpu"] - alone["weights_bytes_per_gpu"] == pytest.approx(1.24e9, rel=0.1)
    unknown = answer(capsys, *arguments, *draft, "someone/draft")
    assert any("`someone/draft` is not in the catalogue" in line for line in unknown["assumptions"])


def test_accelerators_that_cannot_load_the_model_stand_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--model", "zai-org/GLM-5.2-FP8", "--tp-size", "8")
    lines = text.splitlines()
    assert lines[0] == "zai-org/GLM-5.2-FP8, context 1,048,576 tokens"
    assert any(line.split()[0] == "B300" and line.endswith("covers") for line in lines[1:])
    assert not any(line.startswith("  A100 ") for line in lines)
    assert "do not fit, and the engine would not start: H100, H100 NVL, H800," in " ".join(text.split())
    assert max(len(line) for line in lines) <= 100


def test_weights_beyond_the_memory_have_no_negative_reserve(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--model", "deepseek-ai/DeepSeek-R1", "--gpu", "A100-40G", "--tp-size", "8")
    assert "they do not fit" in text
    assert "reserve" not in text
    assert "H200 instead" in text


def test_the_interval_of_the_fraction_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--model", "Qwen/Qwen3-8B", "--gpu", "RTX 4090")
    assert "0.708 to 0.880, expected" in text
    assert "40,960 tokens, the model's own" in text
    document = answer(capsys, "--model", "Qwen/Qwen3-8B", "--gpu", "RTX 4090")
    ends = document["breakdown"]["mem_fraction_static_interval"]
    assert (ends["low"], ends["high"]) == (0.708, 0.88)


@pytest.mark.slow
def test_a_thousand_launches_go_through_estimator_and_checks() -> None:
    from benchmarks import estimator

    assert estimator.launches() > 100
    assert estimator.checked() > 100


def test_a_launch_that_cannot_start_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--model", "Qwen/Qwen3-32B", "--tp-size", "3")
    reason = "64 attention heads are no multiple of 3 ranks"
    document = answer(capsys, *arguments, "--gpu", "H200")
    assert (document["verdict"], document["refused"]) == ("unknown", reason)
    assert document["missing"] == [f"a launch that starts: {reason}"]
    assert "remedies" not in document
    text = shown(capsys, *arguments, "--gpu", "H200")
    assert text.startswith(f"Qwen/Qwen3-32B on H200: the engine would not start, {reason}\n")
    assert "covers" not in text
    assert shown(capsys, *arguments).endswith(f"the engine would not start: {reason}\n")
    assert answer(capsys, *arguments)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "is no model configuration: it holds no JSON object"),
        ("{}", "it has no `num_hidden_layers` and no `num_attention_heads`"),
        ('{"num_hidden_layers": 4}', "it has no `num_attention_heads`"),
        ('{"num_hiden_layers": 4}', "unknown `num_hiden_layers` (did you mean `num_hidden_layers`?)"),
        (None, "config.json`; --model takes a catalogue id, a config.json or a model folder"),
    ],
)
def test_a_configuration_that_describes_no_model_is_a_usage_error(
    text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert main(["capacity", "--model", str(tmp_path), "--gpu", "H200"]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_an_index_without_a_size_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512, "max_position_embeddings": 4096}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "model.safetensors.index.json").write_text("[]", encoding="utf-8")
    assert answer(capsys, "--model", str(tmp_path), "--gpu", "H200")["context_tokens"] == 4096


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--tp-size", "8", "--nodes", "3"], "8 ranks are no multiple of 3 nodes"),
        (["--tp-size", "1", "--nodes", "2"], "1 ranks are no multiple of 2 nodes"),
        (
            ["--tp-size", "4", "--dp-size", "8", "--enable-dp-attention"],
            "--tp-size 4 is no multiple of --dp-size 8, which data-parallel attention splits it by",
        ),
        (["--tp-size", "4", "--pp-size", "2", "--nodes", "8"], None),
        (["--tp-size", "4", "--dp-size", "8"], None),  # replicas: each has its own four
        (["--tp-size", "8", "--dp-size", "4", "--enable-dp-attention"], None),
    ],
)
def test_ranks_that_do_not_divide_are_refused_as_the_engine_does(
    arguments: list[str], reason: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    document = answer(capsys, "--model", "Qwen/Qwen3-32B", "--gpu", "H200", *arguments)
    assert document.get("refused") == reason
    assert (document["verdict"] == "unknown") == (reason is not None)


def test_a_model_path_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "--model", f"{tmp_path}/gone", "--gpu", "H200"]) == 2
    assert f"`{tmp_path}/gone` does not exist" in capsys.readouterr().err


def test_experts_that_do_not_fit_are_taken_to_stay_on_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--model",
        "Qwen/Qwen3.8-Flash-Next-NVFP4",
        "--gpu-memory-gib",
        "15.9",
        "--mem-fraction-static",
        "0.85",
    )
    document = answer(capsys, *arguments)
    assert document["verdict"] == "below"
    assert document["pool_tokens"]["low"] == 0
    assert document["breakdown"]["all_weights_bytes_per_gpu"]["expected"] > 70 * 2**30
    assert any("unless the host keeps the experts" in line for line in document["assumptions"])
    told = answer(capsys, *arguments, "--kt-num-gpu-experts", "0")
    assert told["pool_tokens"]["expected"] == document["pool_tokens"]["expected"]
    assert "all_weights_bytes_per_gpu" not in told["breakdown"]
    assert "with them, and they do not fit" in shown(capsys, *arguments)
