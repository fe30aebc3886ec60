"""What one big file costs, and how the time grows: `python -m benchmarks.files`.

Each kind of `tests/big_files.py` at a size and at four times that size: a kind whose time grows ten times or more is
over its budget. Seconds are CPU seconds of this process, by megabyte of the bigger file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.big_files import CASES
from tests.test_linear import cost

BUDGET = 10


def main() -> int:
    """One line a kind; 1 when one is over the budget."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for case, (name, make, n) in CASES.items():
            text = make(4 * n)
            small, big = cost(Path(folder), name, make(n)), cost(Path(folder), name, text)
            within = big < BUDGET * small + 0.02
            good &= within
            verdict = "within" if within else "OVER"
            print(f"{case:<22} {big / len(text) * 1e6:6.2f} s/MB, {big / small:4.1f} times, {verdict} {BUDGET}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
