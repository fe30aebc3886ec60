"""What an estimate costs: `python -m benchmarks.estimator`.

A thousand launches, each another combination of model, accelerator, ranks and fraction, catalogue loading included, in
one process, against starting Python and doing nothing (budget: forty times, which is under a second where Python
starts in 25 ms). The same as facts of files through the two capacity checks (budget: the same).
"""

from __future__ import annotations

import itertools
import sys

from benchmarks.ratio import ROOT, report

LAUNCHES = 1000
VARIANTS = ((1, 8), (None, 0.8), (None, (0, 5, 19)))


def launches() -> int:
    """Estimate a thousand launches and return how many pools hold anything."""
    from auditor.capacity.accelerators import gpus
    from auditor.capacity.catalog import find_model, models
    from auditor.capacity.pool import estimate_pool
    from auditor.capacity.spec import LaunchSpec

    cards, names = tuple(gpus().values()), models()
    pools = 0
    combinations = itertools.product(*VARIANTS, names, cards)
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


def checked() -> int:
    """Put a thousand launches, each on its own accelerator, to the capacity checks and return the number of matches."""
    from auditor.capacity.accelerators import gpus
    from auditor.capacity.catalog import models
    from auditor.checks import context_against_pool, edge_limit
    from auditor.model.facts import EngineLaunch, FactSet, Flag, Gpu
    from auditor.model.spans import Position, Span

    found = []
    combinations = itertools.product(*VARIANTS[:2], models(), gpus())
    step = 2 * 2 * len(models()) * len(gpus()) // LAUNCHES
    for number, (tp, fraction, model, card) in enumerate(itertools.islice(combinations, 0, LAUNCHES * step, step)):
        span = Span("launch.sh", Position(number, number + 1, 1), Position(number + 1, number + 1, 2))
        given = {"tp-size": tp, "context-length": 131_072, "disaggregation-mode": "prefill"}
        if fraction is not None:
            given["mem-fraction-static"] = fraction
        flags = {name: Flag(name, value, span, name) for name, value in given.items()}
        found.append(EngineLaunch("sglang.launch_server", model, "prefill", flags, "", span, gpu=Gpu(card, tp, span)))
    facts = FactSet(launches=tuple(found))
    matches = [*context_against_pool.run(facts, context_against_pool.Params())]
    return len([*matches, *edge_limit.run(facts, edge_limit.Params())])


def main() -> int:
    """Time both thousands; 1 when one is over its budget."""
    if sys.argv[1:] in (["--once"], ["--checks"]):
        print(launches() if sys.argv[1] == "--once" else checked())
        return 0
    ours = (sys.executable, "-m", "benchmarks.estimator")
    bare = (sys.executable, "-c", "pass")
    estimated = report("1,000 launches", (*ours, "--once"), bare, ROOT, 40)
    judged = report("1,000 launches through the checks", (*ours, "--checks"), bare, ROOT, 40)
    return 0 if estimated and judged else 1


if __name__ == "__main__":
    sys.exit(main())
