"""What a developer waits for at a commit: `python -m benchmarks.hook`.

Changed files that hold nothing of interest, against starting Python and doing nothing (budget: five times); and changed
files with findings.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.ratio import AUDITOR, ROOT, report


def main() -> int:
    """Run the two cases; 1 when one is over its budget."""
    nothing = (sys.executable, "-c", "pass")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(20):
            (root / f"service-{number}.yaml").write_text("name: web\nimage: nginx:1.29\n" * 20, encoding="utf-8")
        names = [f"service-{number}.yaml" for number in range(20)]
        environment = ["env", f"PYTHONPATH={ROOT}"]
        quiet = report("20 changed files, nothing in them", [*environment, *AUDITOR, "scan", *names], nothing, root, 5)
    exposed = ROOT / "fixtures" / "repos" / "incident-glm"
    found = report("the incident's tree", [*environment, *AUDITOR, "scan", str(exposed)], nothing, ROOT, 60)
    return 0 if quiet and found else 1


if __name__ == "__main__":
    sys.exit(main())
