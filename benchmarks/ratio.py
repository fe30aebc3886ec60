"""Times two commands in turn and gives the ratio of their medians, which holds when the machine's speed does not.

Compiled modules are kept, as an installation has them, in a folder that goes away, and so is what the hook remembers.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_KEPT = tempfile.TemporaryDirectory()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "PYTHONPATH": str(ROOT),
    "PYTHONPYCACHEPREFIX": _KEPT.name,
    "XDG_CACHE_HOME": _KEPT.name,
}


def seconds(command: Sequence[str], cwd: Path) -> float:
    """Wall time of one run; the command's own exit code does not matter, that it starts does."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    subprocess.run(command, cwd=cwd, env=ENVIRONMENT, stdout=quiet, stderr=quiet, check=False)
    return time.perf_counter() - began


def ratio(ours: Sequence[str], other: Sequence[str], cwd: Path, runs: int = 7) -> tuple[float, float, float]:
    """Median of ours, median of the other, and the median of the ratios pair by pair; one warm-up each."""
    seconds(ours, cwd), seconds(other, cwd)
    pairs = [(seconds(ours, cwd), seconds(other, cwd)) for _ in range(runs)]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(mine / theirs for mine, theirs in pairs),
    )


def report(name: str, ours: Sequence[str], other: Sequence[str], cwd: Path, budget: float, runs: int = 7) -> bool:
    """Print one line and say whether the ratio is within its budget."""
    mine, theirs, times = ratio(ours, other, cwd, runs)
    verdict = "within" if times <= budget else "OVER"
    print(f"{name}: {times:.2f} times ({mine * 1000:.0f} ms against {theirs * 1000:.0f} ms), {verdict} {budget:g}")
    return times <= budget


AUDITOR = (sys.executable, "-m", "auditor")
