"""What the code rules cost on a tree of sources, as a multiple of a bare walk and read of the same tree.

    python -m benchmarks.code FOLDER [PROFILE [JOBS]]

Both are timed in CPU seconds, those of the worker processes with them, and by the clock; best of three for the read, so
that a busy machine changes them alike.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time

from auditor.cache import FactCache
from auditor.checks.code_run import run_code_checks
from auditor.model.facts import CodeModule
from auditor.model.spans import SourceFile
from auditor.rulebook import load_rules
from auditor.scan import shown


def read_tree(root: str) -> dict[str, bytes]:
    """The bytes of the Python files below a folder."""
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
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def main() -> None:
    """Print files, bytes, and for a first run, a run that knows the last one's answers, and one after a commit that
    touched one file in a hundred: its time and its ratio to the bare read."""
    root = sys.argv[1]
    profile = sys.argv[2] if len(sys.argv) > 2 else "default"
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    bare, waited = [], []
    for _ in range(3):
        began, clock = spent(), time.perf_counter()
        files = read_tree(root)
        bare.append(spent() - began)
        waited.append(time.perf_counter() - clock)
    size = sum(map(len, files.values())) / 1e6
    print(f"{len(files)} files, {size:.1f} MB: bare read {min(bare):.3f} s of CPU, {min(waited):.3f} s by the clock")
    rules = shown(load_rules(), profile)
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "facts.json")
        for name in ("first run", "again", "after a commit"):
            if name == "after a commit":
                files = {path: _touched(data) if n % 100 == 0 else data for n, (path, data) in enumerate(files.items())}
            sources = [SourceFile(path, data.decode("utf-8", "replace"), data) for path, data in sorted(files.items())]
            modules = [CodeModule(source, "python", source.span(0, 0)) for source in sources]
            began, clock = spent(), time.perf_counter()
            cache = FactCache(place, "benchmark")
            matches, _ = run_code_checks(modules, rules, jobs, profile, cache)
            cache.save()
            cost, wait = spent() - began, time.perf_counter() - clock
            print(
                f"{name}: {cost:.2f} s, {cost / min(bare):.1f} bare reads; by the clock {wait:.2f} s,"
                f" {wait / min(waited):.1f}; {len(matches)} matches"
            )


def _touched(data: bytes) -> bytes:
    """The file with another line at its head, so that everything in it moves."""
    return b"# touched\n" + data


if __name__ == "__main__":
    main()
