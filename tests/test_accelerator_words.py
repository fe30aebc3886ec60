"""The accelerator of a launch in the words that public files have for it; each form stands in some repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.capacity.accelerators import gpus_named
from auditor.config import Config
from tests.trees import lay, scan_tree

SERVE = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"


def asked(tmp_path: Path, name: str, text: str) -> list[tuple[str | None, int | None]]:
    """Type and count of the accelerators of every launch in one file."""
    launches = scan_tree(lay({name: text}, tmp_path), Config()).facts.launches
    return [(launch.gpu.type, launch.gpu.count) if launch.gpu else (None, None) for launch in launches]


@pytest.mark.parametrize(
    ("header", "kind", "count", "card"),
    [
        ("--gres=gpu:rtxa5000:4", "rtxa5000", 4, "RTX A5000"),
        ("--gres=gpu:tesla_a100:2", "tesla_a100", 2, "A100"),
        ("--gres=gpu:nvidia_h200:8", "nvidia_h200", 8, "H200"),
        ("--gres=gpu:nvidia_l40s:3", "nvidia_l40s", 3, "L40S"),
        ("--gres=gpu:nvidia_rtx_a6000:1", "nvidia_rtx_a6000", 1, "RTX A6000"),
        ("--gres=gpu:rtx_6000_ada:1", "rtx_6000_ada", 1, "RTX 6000 Ada"),
        ("--gres=gpu:rtx_pro_6000:1", "rtx_pro_6000", 1, "RTX PRO 6000"),
        ("--gres=gpu:NVIDIAA10080GBPCIe:1", "NVIDIAA10080GBPCIe", 1, "A100-80G"),
        ("--gres=gpu:nvidia_h100_80gb_hbm3_3g.40gb:1", "nvidia_h100_80gb_hbm3_3g.40gb", 1, "H100 3g.40gb"),
        ("--gres=gpu:h100_80gb:2 --nodelist=itiger01", "h100_80gb", 2, "H100"),
        ("--gpus=rtxa6000:1", "rtxa6000", 1, "RTX A6000"),
        ("--gpus-per-task=1\n#SBATCH --constraint=a100", "a100", 1, "A100"),
        ("--constraint=a100-40gb\n#SBATCH --gpus-per-node=4", "a100-40gb", 4, "A100-40G"),
        ("--gres=gpu:4\n#SBATCH --constraint=H200", "H200", 4, "H200"),
        ("--partition=gpu_h100\n#SBATCH --gpus-per-node=1", "h100", 1, "H100"),
        ("--partition=hpg-b200\n#SBATCH --gpus=1", "b200", 1, "B200"),
        ("-p zen4_h200 --gres=gpu:4", "h200", 4, "H200"),
        # the partition has more than one kind of card in its name's reach; what the job asks for decides
        ("--partition=kempner_h100\n#SBATCH --gpus-per-node=2\n#SBATCH --constraint=a100", "a100", 2, "A100"),
        ("--constraint=h100\n#SBATCH --gres=gpu:a40:1", "a40", 1, "A40"),
    ],
)
def test_jobs_of_clusters(tmp_path: Path, header: str, kind: str, count: int, card: str) -> None:
    """Headers as in public job scripts; the model is ours."""
    script = f"#!/bin/bash\n#SBATCH --job-name=serve\n#SBATCH {header}\n{SERVE}\n"
    assert asked(tmp_path, "serve.slurm", script) == [(kind, count)]
    assert [gpu.name for gpu in gpus_named(kind)] == [card]


@pytest.mark.parametrize("header", ["--partition=gpu", "-p gpu_mig", "--constraint=[ivb|hsw]", "-C thin", "-p stud"])
def test_words_of_clusters_that_name_no_card(tmp_path: Path, header: str) -> None:
    assert asked(tmp_path, "serve.slurm", f"#SBATCH {header}\n#SBATCH --gpus=1\n{SERVE}\n") == [(None, 1)]


def test_what_the_step_asks_for_stands_over_the_job(tmp_path: Path) -> None:
    script = f"#SBATCH --gres=gpu:a100:8 -N 4\nsrun --gres=gpu:h100:2 -N1 {SERVE}\nsrun --ntasks=1 {SERVE}\n"
    assert asked(tmp_path, "serve.slurm", script) == [("h100", 2), ("a100", 8)]


@pytest.mark.parametrize(
    ("given", "kind", "count", "cards"),
    [
        ('gpu="H100:8"', "H100", 8, ["H100"]),
        ('gpu="H100!"', "H100!", None, ["H100"]),
        ('gpu="B200+:2"', "B200+", 2, ["B200", "B300"]),
        ('gpu=["H100", "A100-80GB"]', "H100 or A100-80GB", None, ["H100", "A100-80G"]),
        ('gpu=modal.gpu.A100(count=1, size="40GB")', "A100-40GB", 1, ["A100-40G"]),
        ("gpu=modal.gpu.A100(memory=80, count=2)", "A100-80GB", 2, ["A100-80G"]),
        ("gpu=modal.gpu.A10G()", "A10G", None, ["A10G"]),
        ('gpu=f"{GPU_TYPE}:{GPU_COUNT}"', "L40S", 4, ["L40S"]),
    ],
)
def test_functions_of_modal(tmp_path: Path, given: str, kind: str, count: int | None, cards: list[str]) -> None:
    text = (
        "import modal, subprocess\napp = modal.App('serve')\nGPU_TYPE = 'L40S'\nGPU_COUNT = 4\n\n"
        f"@app.function({given}, timeout=600)\ndef serve():\n    subprocess.Popen('{SERVE}', shell=True)\n"
    )
    assert asked(tmp_path, "serve.py", text) == [(kind, count)]
    assert [gpu.name for gpu in gpus_named(kind)] == cards


POD = """
          image: lmsysorg/sglang:v0.5.8
          command: [python3, -m, sglang.launch_server, --model-path, Qwen/Qwen3-8B]
"""


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        (  # KAITO: the workspace names the machine, its template holds the pod
            "apiVersion: kaito.sh/v1beta1\nkind: Workspace\nmetadata: {name: w}\n"
            'resource: {instanceType: "Standard_NC24ads_A100_v4", labelSelector: {matchLabels: {apps: w}}}\n'
            f"inference:\n  template:\n    spec:\n      containers:\n        - name: main{POD}",
            "Standard_NC24ads_A100_v4",
            None,
        ),
        (  # Dynamo: the count beside a label of the node
            "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: d}\nspec:\n  services:\n"
            '    Worker:\n      componentType: worker\n      resources: {limits: {gpu: "2"}}\n      extraPodSpec:\n'
            "        nodeSelector: {nvidia.com/gpu.product: Quadro-RTX-8000}\n        mainContainer:\n"
            "          image: nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.8.1\n"
            "          command: [python3, -m, dynamo.sglang]\n          args: [--model-path, Qwen/Qwen3-8B]\n",
            "Quadro-RTX-8000",
            2,
        ),
        (  # Dynamo: a count that is filled in elsewhere
            "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: d}\nspec:\n  services:\n"
            '    Worker:\n      resources: {limits: {gpu: "${GPU_COUNT}"}}\n'
            "      extraPodSpec:\n        mainContainer:\n"
            "          command: [python3, -m, dynamo.sglang, --model-path, Qwen/Qwen3-8B]\n",
            None,
            None,
        ),
        (  # Truss
            f"resources: {{accelerator: 'H100:8'}}\ndocker_server: {{start_command: '{SERVE}'}}\n"
            "base_image: {image: lmsysorg/sglang:v0.5.8}\n",
            "H100",
            8,
        ),
        (  # SkyPilot by machine
            f"resources: {{instance_type: p5en.48xlarge}}\nrun: {SERVE}\n",
            "p5en.48xlarge",
            None,
        ),
        (  # SkyPilot by name
            f"resources: {{accelerators: {{H100: 8, H200: 8}}}}\nrun: {SERVE}\n",
            "H100 or H200",
            8,
        ),
    ],
)
def test_documents(tmp_path: Path, text: str, kind: str | None, count: int | None) -> None:
    assert asked(tmp_path, "deploy.yaml", text) == [(kind, count)]


@pytest.mark.parametrize(
    ("word", "cards"),
    [
        ("VM.GPU.A100.40G.1", ["A100-40G"]),
        ("VM.GPU.A100.80G.1", ["A100-80G"]),
        ("VM.GPU.A100-v2.1", ["A100-80G"]),
        ("VM.GPU.A100.2", ["A100"]),
        ("H100-SXM-2-80G", ["H100"]),
        ("L40S-1-48G", ["L40S"]),
        ("L4-2-24G", ["L4"]),
        ("B300-SXM-8-288G", ["B300"]),
        ("NVIDIA-A2", ["A2"]),
        ("quadro_rtx_6000", ["Quadro RTX 6000"]),
        ("rtx8000", ["Quadro RTX 8000"]),
        ("NVIDIA RTX 5000 Ada Generation", ["RTX 5000 Ada"]),
        ("NVIDIA RTX 4000 SFF Ada Generation", ["RTX 4000 Ada"]),
        ("2080ti", ["RTX 2080 Ti"]),
        ("RTX3090Ti", ["RTX 3090 Ti"]),
        ("DGX-H100", ["H100"]),
        ("B200+", ["B200", "B300"]),
        # one cluster's has 48 GB, another's 24: all that the word can mean
        ("rtx_6000", ["RTX 6000 Ada", "RTX PRO 6000", "Quadro RTX 6000"]),
        ("rtx_5000", []),
        ("B200+ or volta", []),
    ],
)
def test_words_for_cards(word: str, cards: list[str]) -> None:
    assert [gpu.name for gpu in gpus_named(word)] == cards


def test_what_the_driver_reports_of_cards_with_error_correction() -> None:
    """46080 and 23040 MiB stand in public node labels and start-up logs beside 49152 and 24576."""
    assert [(gpu.memory / 2**20, (gpu.smallest or 0) / 2**20) for gpu in gpus_named("Quadro RTX 8000")] == [
        (49152, 46080)
    ]
    assert [(gpu.memory / 2**20, (gpu.smallest or 0) / 2**20) for gpu in gpus_named("Quadro RTX 6000")] == [
        (24576, 23040)
    ]


def test_a_worker_of_dynamo_that_spans_machines(tmp_path: Path) -> None:
    """As in a public workshop: DeepSeek-R1 over two machines of four cards, its in-house image named by nothing."""
    text = (
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: d}\nspec:\n  services:\n"
        "    decode:\n      multinode: {nodeCount: 2}\n      resources: {limits: {gpu: '4'}}\n      extraPodSpec:\n"
        "        mainContainer: {command: [python3, -m, dynamo.sglang], args: [--model-path, m, --tp, '8']}\n"
    )
    (launch,) = scan_tree(lay({"d.yaml": text}, tmp_path), Config()).facts.launches
    assert launch.gpu is not None
    assert (launch.nodes, launch.gpu.count) == (2, 4)
