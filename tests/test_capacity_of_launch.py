"""Launches of files as the estimate sees them: what is known is used, what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.capacity.of_launch import LaunchPool, pool_of
from auditor.scan import ScanRequest, chosen_rules, gather
from tests.trees import ROOT, lay


def pools(root: Path) -> dict[str, LaunchPool]:
    request = ScanRequest((str(root),))
    facts = gather(request, chosen_rules(request))[0]
    return {launch.span.path: pool_of(launch, "0.5.19", facts.models) for launch in facts.launches}


def test_the_incidents_prefill_pool_is_below_its_context_and_decodes_covers_it() -> None:
    found = pools(ROOT / "fixtures" / "repos" / "incident-glm")
    prefill, decode = found["deploy/prefill.yaml"], found["deploy/decode.yaml"]
    assert (prefill.word, prefill.context, prefill.context_source) == ("below", 1048576, "flag")
    assert prefill.estimate is not None
    assert prefill.estimate.tokens.high == 681280
    assert decode.word == "covers"


def test_what_a_launch_does_not_say_is_named(tmp_path: Path) -> None:
    found = pools(
        lay(
            {"a.sh": 'python -m sglang.launch_server --model-path "$MODEL" --context-length 131072 --tp-size "$TP"\n'},
            tmp_path,
        )
    )["a.sh"]
    assert (found.word, found.estimate, found.context) == ("unknown", None, 131072)
    assert [text.split(":")[0] for text in found.missing] == ["the model", "the GPU"]


def test_a_fraction_that_is_none_is_named(tmp_path: Path) -> None:
    script = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 85\n"
    found = pools(lay({"a.sh": script}, tmp_path))["a.sh"]
    assert found.missing[-1].startswith("--mem-fraction-static: 85")


def test_a_draft_model_of_the_files_is_in_the_estimate(tmp_path: Path) -> None:
    script = "#SBATCH --gres=gpu:h200:2\nsglang serve meta-llama/Llama-3.1-70B-Instruct --tp 2"
    draft = " --speculative-algorithm STANDALONE --speculative-draft-model-path meta-llama/Llama-3.2-1B-Instruct"
    found = pools(lay({"a.slurm": script + "\n", "b.slurm": f"{script}{draft}\n"}, tmp_path))
    alone, both = found["a.slurm"].estimate, found["b.slurm"].estimate
    assert alone is not None
    assert both is not None
    assert both.cell.low - alone.cell.low == 16 * 4 * 2 * 64 * 2
    assert both.tokens.expected < alone.tokens.expected


def test_experts_and_tables_that_the_host_keeps_take_no_room(tmp_path: Path) -> None:
    script = "#SBATCH --gres=gpu:h100:1\nsglang serve Qwen/Qwen3-30B-A3B --tp 1"
    files = {"a.slurm": script, "b.slurm": f"{script} --kt-weight-path /w --kt-num-gpu-experts 32"}
    table = "#SBATCH --gres=gpu:h200:2\nsglang serve RadixArk/Qwen3.8-Flash-Next-NVFP4 --tp 2"
    files |= {"c.slurm": table, "d.slurm": f"{table} --no-ple-offload-embedding"}
    found = pools(lay({name: f"{text}\n" for name, text in files.items()}, tmp_path))
    whole, hosted, without, with_table = (found[f"{name}.slurm"].estimate for name in "abcd")
    assert whole is not None
    assert hosted is not None
    assert whole.weights.expected - hosted.weights.expected == pytest.approx(96 / 128 * 2 * 29.0e9, rel=0.02)
    assert without is not None
    assert with_table is not None
    assert with_table.weights.expected - without.weights.expected == pytest.approx(25.6e9, rel=0.03)
