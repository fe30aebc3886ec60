"""Image references: what the text means, which images hold the engine, and which engine version a tag states."""

from __future__ import annotations

import pytest

from auditor.launch.images import family_of, image_verdict, is_reference, is_watched, parse_reference
from auditor.model.facts import Hole, Unresolved

VERDICTS = [
    ("lmsysorg/sglang:v0.5.2-cu126", "vulnerable", "0.5.2", None),
    ("lmsysorg/sglang:v0.5.22-cu130-amd64", "safe", "0.5.22", None),
    ("lmsysorg/sglang:v0.5.22.post1-cu130", "safe", "0.5.22.post1", None),
    ("lmsysorg/sglang:v0.5.22rc1-cu130", "vulnerable", "0.5.22rc1", None),
    ("lmsysorg/sglang:v0.5.16.0", "vulnerable", "0.5.16.0", None),
    ("lmsysorg/sglang:0.5.19", "vulnerable", "0.5.19", None),
    ("lmsysorg/sglang:v0.5.100", "safe", "0.5.100", None),
    ("docker.io/lmsysorg/sglang:v0.5.5.post3-cu129-amd64", "vulnerable", "0.5.5.post3", None),
    ("registry.example.invalid:5000/mirror/sglang:v0.5.21", "vulnerable", "0.5.21", None),
    ("registry.example.invalid:5000/mirror/sglang", "unverifiable", None, "latest"),
    ("lmsysorg/sglang:nightly-dev", "unverifiable", None, "latest"),
    ("lmsysorg/sglang:nightly-dev-20260126-48f4340b", "unverifiable", None, "commit"),
    ("lmsysorg/sglang:latest-rocm", "unverifiable", None, "latest"),
    ("lmsysorg/sglang:dev-x86", "unverifiable", None, "latest"),
    ("lmsysorg/sglang:kimi-k3", "unverifiable", None, "unknown-tag"),
    ("lmsysorg/sglang:deepseek-v4-blackwell", "unverifiable", None, "unknown-tag"),
    ("lmsysorg/sglang@sha256:" + "0" * 64, "unverifiable", None, "digest"),
    ("lmsysorg/sglang:v0.5.19@sha256:" + "0" * 64, "vulnerable", "0.5.19", None),
    ("lmsysorg/sglang-rocm:v0.5.17-rocm720-mi35x-20260818", "vulnerable", "0.5.17", None),
    ("rocm/sgl-dev:v0.5.14-rocm700-mi35x-20260627", "vulnerable", "0.5.14", None),
    ("rocm/sgl-dev:sglang-0.5.9-rocm720-mi35x-mori-0227-2", "vulnerable", "0.5.9", None),
    ("rocm/sgl-dev:rocm720-mi35x-583b1b6-20260501-DSv4", "unverifiable", None, "unknown-tag"),
    ("quay.io/ascend/sglang:v0.5.8-cann8.3.rc2-910b", "vulnerable", "0.5.8", None),
    ("quay.io/ascend/sglang:cann9.0.0-910b-v0.5.16", "vulnerable", "0.5.16", None),
    ("quay.io/ascend/sglang:main-cann9.0.0-910b", "unverifiable", None, "branch"),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.0.1", "vulnerable", "0.5.9", None),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.1.1-cuda13", "vulnerable", "0.5.10.post1", None),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.4.1", "vulnerable", None, None),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.2.1", "unverifiable", None, "unknown-tag"),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.2.0-deepseek-v4-cuda12-dev.3", "unverifiable", None, "unknown-tag"),
    ("nvcr.io/nvidia/sglang:26.07-py3", "vulnerable", "0.5.14", None),
    ("nvcr.io/nvidia/sglang:26.03-py3", "unverifiable", None, "unknown-tag"),
    ("aibrix/sglang:v0.4.9.post3-cu126-nixl-v0.4.1", "vulnerable", "0.4.9.post3", None),
    ("slimerl/sglang:v0.5.15.post1-cu129", "vulnerable", "0.5.15.post1", None),
    ("team/sglang:v2.1.0", "unverifiable", None, "unknown-tag"),
    ("runpod/worker-sglang:v2.0.0", "unverifiable", None, "no-version"),
    ("ghcr.io/areal-project/areal-runtime:v1.0.4-sglang", "unverifiable", None, "no-version"),
    ("verlai/verl:app-verl0.5-sglang0.4.9.post6-mcore0.12.2", "vulnerable", "0.4.9.post6", None),
    ("/shared/containers/lmsysorg+sglang+v0.5.8.sqsh", "vulnerable", "0.5.8", None),
    ("/shared/containers/sglang-v0.4.sqsh", "vulnerable", "0.4", None),
    ("docker:lmsysorg/sglang:v0.5.9", "vulnerable", "0.5.9", None),
    ("rocm/7.0:rocm7.0_ubuntu_22.04_sgl-dev-v0.5.2-rocm7.0-mi35x-20250915", "vulnerable", "0.5.2", None),
    ("cr.example/aibrix/sglang-kvcache-nixl:v0.5.5.post3-nixl-v0.7.1", "vulnerable", "0.5.5.post3", None),
    ("example/sglang-server:0.4.1", "unverifiable", None, "no-version"),
    ("cr.example/aibrix:sglang:v0.4.9.post3-cu126", "unverifiable", None, "unknown-tag"),
]


@pytest.mark.parametrize(("reference", "verdict", "version", "reason"), VERDICTS)
def test_verdict_of_a_reference(reference: str, verdict: str, version: str | None, reason: str | None) -> None:
    got = image_verdict(reference)
    assert is_watched(reference)
    assert (got.verdict, got.version, got.reason) == (verdict, version, reason)
    assert (got.decide is not None) == (verdict == "unverifiable")


@pytest.mark.parametrize(
    "reference",
    [
        "lmsysorg/sglang-router:v0.2.4",
        "aibrix/sglang-router:v0.1.6",
        "lmsysorg/sgl-model-gateway:v0.5.14",
        "registry.example.com/tenant/smg:v0.2.4.post1-dev",
        "ghcr.io/example/dynamo-mocker-sglang:v2026-04-23",
        "example/sglang-inference-sim:0.1.1",
        "my-registry/sglang-runtime:my-tag",
        "sglang-placeholder",
        "vllm/vllm-openai:latest",
        "lmsysorg/sglang:<tag>",
    ],
)
def test_what_is_no_engine_image(reference: str) -> None:
    assert not is_watched(reference)


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("a.example:5000/x/sglang", ("a.example:5000/x/sglang", None, None)),
        ("a.example:5000/x/sglang:v1@sha256:ab", ("a.example:5000/x/sglang", "v1", "sha256:ab")),
        ("nvcr.io#nvidia/sglang:26.03-py3", ("nvcr.io/nvidia/sglang", "26.03-py3", None)),
    ],
)
def test_parts_of_a_reference(reference: str, parts: tuple[str, str | None, str | None]) -> None:
    got = parse_reference(reference)
    assert (got.repository, got.tag, got.digest) == parts


def test_a_variable_in_the_tag_is_unverifiable_and_named() -> None:
    got = image_verdict(Unresolved("lmsysorg/sglang:${TAG}", ("lmsysorg/sglang:", Hole("TAG"))))
    assert (got.verdict, got.reason, got.decide) == ("unverifiable", "variable", "a value for `TAG`")


def test_a_version_before_a_variable_is_a_version() -> None:
    reference = Unresolved("lmsysorg/sglang:v0.5.19-${GPU}", ("lmsysorg/sglang:v0.5.19-", Hole("GPU")))
    assert image_verdict(reference).version == "0.5.19"
    torn = Unresolved("lmsysorg/sglang:v0.5.1${MINOR}", ("lmsysorg/sglang:v0.5.1", Hole("MINOR")))
    assert image_verdict(torn).reason == "variable"


def test_a_variable_named_after_the_engine_is_an_engine_image() -> None:
    assert family_of(Unresolved("{{ sglang_image }}", (Hole("sglang_image"),))) == "unknown"
    assert family_of(Unresolved("{{ sglang_router_image }}", (Hole("sglang_router_image"),))) is None
    assert family_of(Unresolved("${IMAGE}", (Hole("IMAGE"),))) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("lmsysorg/sglang:latest", True),
        ("lmsysorg/sglang", True),
        ("sglang:v0.5.9", True),
        ("sglang", False),
        ("http://sglang:8000", False),
        ("sgl-project/sglang#29650", False),
        ("Image: lmsysorg/sglang:v0.5.8", False),
        ("docker:lmsysorg/sglang:v0.5.9", True),
        ("localhost:5000/sglang", True),
    ],
)
def test_shape_of_a_reference(text: str, answer: bool) -> None:
    assert is_reference(text) is answer
