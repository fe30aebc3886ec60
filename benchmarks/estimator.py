"""What an estimate costs: `python -m benchmarks.estimator`.

A thousand launches, each another combination of model, accelerator, ranks and fraction, catalogue loading included, in
one process, against starting Python and doing nothing (budget: forty times, which is under a second where Python
starts in 25 ms).
"""

from __future__ import annotations

import itertools
import sys

from benchmarks.ratio import ROOT, report

LAUNCHES = 1000


def launches() -> int:
    """Estimate a thousand launches and return how many pools hold anything."""
    from auditor.capacity.catalog import find_model, gpus, models
    from auditor.capacity.pool import estimate_pool
    from auditor.capacity.spec import LaunchSpec

    cards, names = tuple(gpus().values()), models()
    pools = 0
    combinations = itertools.product((1, 8), (None, 0.8), (None, (0, 5, 19)), names, cards)
    step = 2 * 2 * 2 * len(names) * len(cards) // LAUNCHES
    for tp, fraction, version, name, card in itertools.islice(combinations, 0, LAUNCHES * step, step):
        found = find_model(name)
        if found is None:
            continue
        spec = LaunchSpec(
            found.shape, card.memory, card.vendor, card.capability, tp=tp, fraction=fraction, version=version
        )
        pools += estimate_pool(spec).tokens.high > 0
    return pools


def main() -> int:
    """Time the thousand; 1 when it is over its budget."""
    if sys.argv[1:] == ["--once"]:
        print(launches())
        return 0
    ours = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "benchmarks.estimator", "--once")
    return 0 if report("1,000 launches", ours, (sys.executable, "-c", "pass"), ROOT, 40) else 1


if __name__ == "__main__":
    sys.exit(main())
