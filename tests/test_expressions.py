"""Expressions of workflows: which literal stands for them, what it is judged as, and what of it is rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.syntax.expressions import choice_of
from tests.test_fixing import fixed
from tests.trees import lay, scan_tree

PATH = ".github/workflows/gpu.yml"
JOB = "on: push\njobs:\n  a:\n    runs-on: gpu\n    container:\n      image: %s\n"


@pytest.mark.parametrize(
    ("text", "name", "others", "literal"),
    [
        ("inputs.tag || 'v1'", "inputs.tag", [], "v1"),
        ('inputs.tag || "v1"', "inputs.tag", [], "v1"),
        ("a || b.c || d == 'x' || 'v1'", "a", ["b.c"], "v1"),
        ("'v1'", "'v1'", [], "v1"),
        ("a == 'x||y' && '0.5.22' || '0.5.16'", "a == 'x||y' && '0.5.22'", [], "0.5.16"),
        ("a && '0.5.16' || '0.5.22'", "a && '0.5.16'", [], "0.5.16"),
        ("a && '0.5.9' || b && '0.5.10' || '0.5.22'", "a && '0.5.9'", [], "0.5.9"),
        ("a && '0.5.22rc1' || '0.5.22'", "a && '0.5.22rc1'", [], "0.5.22rc1"),
        ("(a && '0.5.16') || ('0.5.22')", "(a && '0.5.16')", [], "0.5.16"),
        ("a && 'nightly' || 'v0.5.16'", "a && 'nightly'", [], "v0.5.16"),
        ("a && 'lmsysorg/sglang:v0.5.16' || 'vllm/vllm-openai:v0.3.0'", "a && 'lmsysorg/sglang:v0.5.16'", [],
         "lmsysorg/sglang:v0.5.16"),
        ("inputs.tag", "inputs.tag", [], None),
        ("inputs.tag || ''", "inputs.tag", [], None),
        ("a && 'v1' || inputs.tag", "a && 'v1'", [], None),
        ("a || format('v{0}', b)", "a", [], None),
        ("a == 'v1'", "a == 'v1'", [], None),
        ("", "", [], None),
    ],
)  # fmt: skip
def test_the_literal_that_stands(text: str, name: str, others: list[str], literal: str | None) -> None:
    choice = choice_of(text)
    assert choice.name == name
    assert [text[slice(*place)] for place in choice.others] == others
    assert (text[slice(*choice.literal)] if choice.literal is not None else None) == literal


@pytest.mark.parametrize(
    ("image", "level", "at"),
    [
        ("${{ inputs.i || 'lmsysorg/sglang:v0.5.16' }}", "error", "lmsysorg/sglang:v0.5.16"),
        ("${{ a && 'lmsysorg/sglang:v0.5.16' || 'lmsysorg/sglang:v0.5.22' }}", "error", "lmsysorg/sglang:v0.5.16"),
        (
            "${{ a=='push' && fromJSON('[\"lmsysorg/sglang:v0.5.16\"]') || 'lmsysorg/sglang:v0.5.16' }}",
            "error",
            "lmsysorg/sglang:v0.5.16",
        ),
        ("lmsysorg/sglang:${{ inputs.t || 'v0.5.16' }}", "error", "lmsysorg/sglang:${{ inputs.t || 'v0.5.16' }}"),
        ("lmsysorg/sglang:${{ inputs.t }}", "note", "lmsysorg/sglang:${{ inputs.t }}"),
        ("${{ inputs.i || 'lmsysorg/sglang:v0.5.22' }}", None, ""),
        ("${{ inputs.i || 'postgres:16.2' }}", None, ""),
    ],
)
def test_an_image_that_an_expression_gives(tmp_path: Path, image: str, level: str | None, at: str) -> None:
    lay({PATH: JOB % image}, tmp_path)
    result = scan_tree(tmp_path)
    found = [(finding.level, result.sources[PATH].slice(finding.span)) for finding in result.active]
    assert found == ([(level, at)] if level else [])


@pytest.mark.parametrize(
    "image",
    [
        "${{ a && fromJSON('[\"lmsysorg/sglang\"]') || fromJSON('[\"lmsysorg/sglang:v0.5.16\"]') }}",
        '${{ a && fromJSON(\'{"image":"lmsysorg/sglang"}\').image || inputs.b }}',
        "${{ format('lmsysorg/sglang:{0}', inputs.v) }}",
        "lmsysorg/sglang:${{ inputs.tag || '' }}",
    ],
)
def test_an_expression_that_cannot_be_read_is_never_latest(tmp_path: Path, image: str) -> None:
    lay({PATH: JOB % image}, tmp_path)
    (finding,) = scan_tree(tmp_path).active
    assert finding.level == "note"
    assert "(variable)" in finding.message


def test_the_sole_literal_is_rewritten_and_no_other(tmp_path: Path) -> None:
    for number, image in enumerate(
        ("${{ inputs.i || 'lmsysorg/sglang:v0.5.16' }}", "lmsysorg/sglang:${{ inputs.t || 'v0.5.16' }}")
    ):
        text = JOB % image
        assert fixed({PATH: text}, tmp_path / str(number)) == {PATH: text.replace("v0.5.16", "v0.5.22").encode()}
    for number, image in enumerate(
        (
            "${{ a && 'lmsysorg/sglang:v0.5.16' || 'lmsysorg/sglang:v0.5.22' }}",
            "lmsysorg/sglang:${{ a == 'push' && 'v0.5.16' || 'v0.5.15' }}",
        ),
        2,
    ):
        assert fixed({PATH: JOB % image}, tmp_path / str(number)) == {PATH: (JOB % image).encode()}
