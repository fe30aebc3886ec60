"""What the engine does with the bytes of a file: nothing that names the engine is left out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.decode import decode, mark_of
from tests.trees import lay, scan_tree

PIN = "sglang==0.5.19\n"


@pytest.mark.parametrize(
    "data",
    [
        PIN.encode("utf-16-le"),
        PIN.encode("utf-16-be"),
        PIN.encode("utf-16"),
        PIN.encode("utf-32-le"),
        PIN.encode("utf-32-be"),
        PIN.encode("utf-8-sig"),
        ("# 说明" + PIN.replace("sg", "\nsg")).encode("utf-16-le"),
    ],
    ids=["le", "be", "marked", "wide le", "wide be", "utf-8", "mixed"],
)
def test_encodings_are_told_by_their_mark_or_by_their_nul_bytes(tmp_path: Path, data: bytes) -> None:
    result = scan_tree(lay({"requirements.txt": data}, tmp_path))
    assert [finding.rule for finding in result.findings] == ["sglang-vulnerable-version"]
    assert result.problems == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\0" * 64,
        bytes(range(256)),
        b"\x7fELF\2\1\1\0" + b"\0" * 56,
        b"a\0b",
        b"sglang==0.5.19\0\n ",
    ],
)
def test_other_bytes_with_nul_are_no_wide_text(data: bytes) -> None:
    assert mark_of(data) is None


def test_a_wide_file_keeps_its_bytes() -> None:
    data = PIN.encode("utf-16-be")
    source, remark = decode("a", data)
    assert (source.text, source.data, source.encoding, remark) == (PIN, data, "utf-16-be", None)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("requirements.txt", PIN.encode() + b"\0\0\n", "not text: it holds NUL bytes"),
        (
            "a.py",
            b"x = '" + PIN.strip().encode() + b"'\nx = " + b"-" * 100_000 + b"1\n",
            "Python nested deeper than its parser allows",
        ),
        (
            "setup.py",
            b"x = '" + PIN.strip().encode() + b"'\nx = " + b"-" * 100_000 + b"1\n",
            "Python nested deeper than its parser allows",
        ),
        ("a.json", b"[" * 100_000 + b'"sglang==0.5.19"' + b"]" * 100_000, "nested more than 200 levels deep at line 1"),
        (
            "a.yaml",
            b"x: " + b"[" * 100_000 + b'"sglang==0.5.19"',
            "not valid YAML: exceeded maximum nesting depth at line 1",
        ),
        (
            "pyproject.toml",
            b"x = " + b"[" * 100_000 + b'"sglang==0.5.19"',
            "nested too deeply for a TOML file at line 1",
        ),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    result = scan_tree(lay({name: data}, tmp_path))
    assert [problem.reason for problem in result.problems] == [reason]
    assert [(finding.rule, reason in finding.message) for finding in result.findings] == [("unread-evidence", True)]


def test_halves_of_a_surrogate_pair_in_json_hide_nothing(tmp_path: Path) -> None:
    bill = '{"bomFormat": "CycloneDX", "components": [{"name": "x\\ud800"}, {"name": "sglang", "version": "0.5.19"}]}'
    files = {
        "a.json": '{"a": "\\ud800", "image": "lmsysorg/sglang:v0.5.19"}',
        "bom.json": bill,
        "deps.json": '{"dependencies": ["x \\udc00", "sglang==0.5.19"]}',
    }
    result = scan_tree(lay(files, tmp_path))
    assert [(finding.span.path, finding.level) for finding in result.findings] == [
        ("a.json", "error"),
        ("bom.json", "error"),
        ("deps.json", "error"),
    ]
