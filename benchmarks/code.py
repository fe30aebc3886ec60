"""What the code rules cost on a tree of sources, as a multiple of a bare walk and read of the same tree.

    python -m benchmarks.code FOLDER [PROFILE [JOBS]]

Both are timed in CPU seconds of this process, best of three for the read, so that a busy machine changes them alike.
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


def main() -> None:
    """Print files, bytes, both times and their ratio."""
    root = sys.argv[1]
    profile = sys.argv[2] if len(sys.argv) > 2 else "default"
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    bare = []
    for _ in range(3):
        began = time.process_time()
        files = read_tree(root)
        bare.append(time.process_time() - began)
    sources = [SourceFile(path, data.decode("utf-8", "replace"), data) for path, data in sorted(files.items())]
    modules = [CodeModule(source, "python", source.span(0, 0)) for source in sources]
    rules = shown(load_rules(), profile)
    began = time.process_time()
    matches, _ = run_code_checks(modules, rules, jobs, profile)
    spent = time.process_time() - began
    size = sum(map(len, files.values())) / 1e6
    print(f"{len(files)} files, {size:.1f} MB: bare read {min(bare):.2f} s, code rules {spent:.2f} s")
    print(f"ratio {spent / min(bare):.1f}, {len(matches)} matches")


if __name__ == "__main__":
    main()
