"""Time grows with the size of a file and with nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from auditor.reading import index, read_file
from auditor.rulebook import load_rules
from auditor.scan import plan_of
from auditor.walk import Candidate
from tests.big_files import CASES

PLAN = plan_of((), load_rules())


def cost(folder: Path, name: str, text: str) -> float:
    """CPU seconds of one reading of a file, the best of two."""
    (folder / name).write_text(text, encoding="utf-8", newline="")
    spent = []
    for _ in range(2):
        began = time.process_time()
        result = read_file(Candidate(name, str(folder / name)), PLAN, index())
        spent.append(time.process_time() - began)
    assert result.facts
    assert result.problems == []
    return min(spent)


@pytest.mark.parametrize("case", CASES)
def test_four_times_the_file_takes_no_sixteen_times_the_time(case: str, tmp_path: Path) -> None:
    name, make, n = CASES[case]
    small, big = cost(tmp_path, name, make(n // 4)), cost(tmp_path, name, make(n))
    assert big < 10 * small + 0.02, f"{small:.3f} s for a quarter of the file, {big:.3f} s for the whole"
