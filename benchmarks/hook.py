"""What a developer waits for at a commit: `python -m benchmarks.hook`.

Against starting Python and doing nothing: changed files that hold nothing of interest (budget: five times), one changed
Python file, which takes the full audit, and a tree with findings.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.ratio import AUDITOR, ROOT, report


def main() -> int:
    """Run the cases; 1 when one is over its budget."""
    nothing = (sys.executable, "-c", "pass")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(20):
            (root / f"service-{number}.yaml").write_text("name: web\nimage: nginx:1.29\n" * 20, encoding="utf-8")
        names = [f"service-{number}.yaml" for number in range(20)]
        (root / "service.py").write_text("class Service:\n    def run(self):\n        return 1\n", encoding="utf-8")
        source = report("a changed Python file", [*AUDITOR, "scan", "service.py"], nothing, root, 15)
        quiet = report("20 changed files, nothing in them", [*AUDITOR, "scan", *names], nothing, root, 5)
    exposed = ROOT / "fixtures" / "repos" / "incident-glm"
    found = report("the incident's tree", [*AUDITOR, "scan", str(exposed)], nothing, ROOT, 60)
    return 0 if source and quiet and found else 1


if __name__ == "__main__":
    sys.exit(main())
