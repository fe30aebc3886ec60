"""A big repository: `python -m benchmarks.tree`.

10,000 files, of which 1 in 200 names the engine, against a bare Python walk that reads every file and searches for one
word (budget: three times).
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from benchmarks.ratio import AUDITOR, report

BARE = """
import os, sys
hits = 0
for folder, folders, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as stream:
            hits += b"sglang" in stream.read()
print(hits)
"""
WORDS = "config service replica port name value image request batch token model path queue state".split()  # noqa: SIM905


def make(root: Path, files: int) -> None:
    """The tree: Python, YAML, shell, Markdown and JSON in the proportions of a service repository."""
    pick = random.Random(7)
    for number in range(files):
        folder = root / f"part{number % 97}" / f"sub{number % 13}"
        folder.mkdir(parents=True, exist_ok=True)
        ending = pick.choices(["py", "yaml", "sh", "md", "json"], [60, 15, 5, 10, 10])[0]
        line = {
            "py": "def {a}_{b}({c}):\n    return {c}.{a} + {d}\n",
            "yaml": "{a}_{n}:\n  {b}: {c}\n",
            "sh": "echo {a} {b}\n",
        }
        template = line.get(ending, "{a} {b} {c} {d}\n")
        lines = pick.randint(20, 400)
        body = "".join(
            template.format(
                a=pick.choice(WORDS), b=pick.choice(WORDS), c=pick.choice(WORDS), d=pick.choice(WORDS), n=index
            )
            for index in range(lines)
        )
        if number % 200 == 0:
            body += {
                "py": "# sglang\n",
                "yaml": "image: lmsysorg/sglang:v0.5.19\n",
                "sh": "pip install sglang==0.5.19\n",
            }.get(ending, "")
        (folder / f"file{number}.{ending}").write_text(body, encoding="utf-8")


def main(files: int = 10_000) -> int:
    """Make the tree, compare, 1 when over the budget."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(root, files)
        good = report(
            f"{files} files",
            [*AUDITOR, "scan", folder],
            (sys.executable, "-c", BARE, folder),
            root,
            3,
            runs=5,
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
