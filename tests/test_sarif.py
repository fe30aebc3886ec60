"""The SARIF log: GitHub's hash to the digit, regions in UTF-16 units, URIs from the repository root."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from auditor.model.spans import SourceFile
from auditor.report import ReportOptions
from auditor.report.sarif import line_hashes, uri_of, write
from auditor.rulebook import load_rules
from tests.check_sarif import check_sarif
from tests.trees import lay, scan_tree

# Lines and hashes as GitHub's upload action computes them.
VECTORS = [
    (
        b"fastapi==0.115.0\nsglang==0.5.9\nrequests==2.32.3\n",
        ["9cd808ee4159d4be:1", "f1c3464d542e7387:1", "cf1015eecc682b95:1"],
    ),
    (
        b"fastapi==0.115.0\r\nsglang==0.5.9\r\nrequests==2.32.3\r\n",
        ["9cd808ee4159d4be:1", "f1c3464d542e7387:1", "cf1015eecc682b95:1"],
    ),
    (
        b"a\n\n\n\tb  c\na\n",
        ["3d51a74a17177874:1", "e20ef360e9d21ab5:1", "b40906fbcc3d49bf:1", "d2ddc5e85bb1631:1", "243cbaa4685aab12:1"],
    ),
    ('x = "é😀"\ny = 1'.encode(), ["3603b8c487073a0b:1", "5d357f8edecbddbe:1"]),
    (b"abc\n" * 60, ["6bb9a4f144cdf0e8:1", "6bb9a4f144cdf0e8:2", "6bb9a4f144cdf0e8:3"]),
    (
        b"\xef\xbb\xbfname: x\nimage: lmsysorg/sglang:v0.5.19\n",
        ["5b92d8d7e73db238:1", "823f68669e2eebd8:1"],
    ),
]


@pytest.mark.parametrize(("data", "hashes"), VECTORS)
def test_line_hash_is_githubs(data: bytes, hashes: list[str]) -> None:
    found = line_hashes(SourceFile("x", data.decode("utf-8", "replace"), data))
    assert [found[number] for number in range(1, len(hashes) + 1)] == hashes


def sarif_of(root: Path, **options: Any) -> dict[str, Any]:
    stream = io.StringIO()
    write(scan_tree(root), stream, ReportOptions(rules=load_rules(), **options))
    log = json.loads(stream.getvalue())
    assert isinstance(log, dict)
    return log


def test_clean_tree_has_an_empty_array_of_results_and_all_rules(tmp_path: Path) -> None:
    log = sarif_of(lay({"requirements.txt": "numpy\n"}, tmp_path))
    check_sarif(log, tmp_path)
    assert log["runs"][0]["results"] == []
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) == len(load_rules())


def test_uri_is_percent_encoded_and_starts_at_the_repository_root() -> None:
    assert uri_of("my svc/#1 100%/Dockerfile", "") == "my%20svc/%231%20100%25/Dockerfile"
    assert uri_of("déploiement/Dockerfile", "apps/") == "apps/d%C3%A9ploiement/Dockerfile"


def test_columns_count_utf16_units() -> None:
    source = SourceFile("x", "a😀b = 1\n")
    assert source.position(2).column == 3
    assert source.utf16_column(source.position(2)) == 4


@pytest.mark.parametrize(
    ("files", "marked"),
    [
        (
            {
                "a.sh": "sglang serve m \\\n  --context-length \\\n  1048576 \\\n  --max-total-tokens 4096\n",
            },
            (3, 3, 10),
        ),
        ({"a.sh": "sglang serve m --context-length 1048576 --max-total-tokens 4096\n"}, (1, 16, 40)),
    ],
)
def test_a_region_is_one_line_so_that_a_pull_request_shows_it(
    tmp_path: Path, files: dict[str, str], marked: tuple[int, int, int]
) -> None:
    log = sarif_of(lay(files, tmp_path))
    check_sarif(log, tmp_path)
    [result] = [result for result in log["runs"][0]["results"] if result["ruleId"] == "kv-pool-below-context"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == marked
    assert region["endLine"] == region["startLine"]


def test_a_file_name_that_is_not_utf8_is_percent_encoded(tmp_path: Path) -> None:
    name = os.fsdecode(b"requirements-\xff.txt")
    try:
        (tmp_path / name).write_text("sglang==0.5.19\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (tmp_path / "Dockerfile").write_text("FROM lmsysorg/sglang:v0.5.19\n", encoding="utf-8")
    results = sarif_of(tmp_path)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    assert places == ["Dockerfile", "requirements-%FF.txt"]
