"""What the code rules cost on a tree of sources, as a multiple of a bare walk and read of the same tree.

    python -m benchmarks.code FOLDER [PROFILE [JOBS]]

Both are timed in CPU seconds, those of the worker processes with them, and by the clock; best of three for the read, so
that a busy machine changes them alike.
"""

from __future__ import annotations

import os
import sys
import time

from auditor.checks.code_run import run_code_checks
from auditor.model.facts import CodeModule
from auditor.model.spans import SourceFile
from auditor.rulebook import load_rules
from auditor.scan import shown


def read_tree(root: str) -> dict[str, bytes]:
    """The Python files below a folder."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, "rb") as stream:
                    found[path] = stream.read()
    return found


def spent() -> float:
    """CPU seconds of this process and of the workers that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Print files, bytes, both times and their ratio."""
    root = sys.argv[1]
    profile = sys.argv[2] if len(sys.argv) > 2 else "default"
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    bare, waited = [], []
    for _ in range(3):
        began, clock = spent(), time.perf_counter()
        files = read_tree(root)
        bare.append(spent() - began)
        waited.append(time.perf_counter() - clock)
    sources = [SourceFile(path, data.decode("utf-8", "replace"), data) for path, data in sorted(files.items())]
    modules = [CodeModule(source, "python", source.span(0, 0)) for source in sources]
    rules = shown(load_rules(), profile)
    began, clock = spent(), time.perf_counter()
    matches, _ = run_code_checks(modules, rules, jobs, profile)
    cost, wait = spent() - began, time.perf_counter() - clock
    size = sum(map(len, files.values())) / 1e6
    print(f"{len(files)} files, {size:.1f} MB: bare read {min(bare):.2f} s of CPU, code rules {cost:.2f} s")
    print(f"ratio {cost / min(bare):.1f}, by the clock {wait / min(waited):.1f}; {len(matches)} matches")


if __name__ == "__main__":
    main()
