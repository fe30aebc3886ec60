"""Big files of each kind, to see how time grows: `n` entries, and one that names the engine."""

from __future__ import annotations

import json
from collections.abc import Callable

IMAGE = "lmsysorg/sglang:v0.5.19"
PIN = "sglang==0.5.19"
HASH = "sha256:" + "a" * 64


def services(n: int) -> dict[str, object]:
    made: list[dict[str, object]] = [
        {"name": f"web{i}", "image": "nginx:1.29", "command": ["run", str(i)]} for i in range(n)
    ]
    return {"services": [*made, {"image": IMAGE}]}


def lines(n: int, line: str, last: str) -> str:
    return "".join(line.format(i=i) for i in range(n)) + last + "\n"


SHELL_GATE = """pool=$(jq .max_total_num_tokens state)
context_length=$(jq .context_length state)
[ "$pool" -ge "$context_length" ] || exit 1
"""
PYTHON_GATE = """import requests, sys
info = requests.get("http://localhost:30000/server_info").json()
pool, context = info["max_total_num_tokens"], info["context_length"]
"""


def shell_gate(n: int, line: str) -> str:
    return lines(n, line, "curl -s localhost:30000/server_info > state\n" + SHELL_GATE)


def python_gate(n: int, line: str, first: str = "") -> str:
    return PYTHON_GATE + first + lines(n, line, "if pool < context:\n    sys.exit(1)")


# name of the case: the file, its text at a size, and a size that shows how time grows
CASES: dict[str, tuple[str, Callable[[int], str], int]] = {
    "json": ("a.json", lambda n: json.dumps(services(n), indent=1), 250),
    "json in one line": ("b.json", lambda n: json.dumps(services(n)), 350),
    "yaml": ("a.yaml", lambda n: lines(n, "web{i}:\n  image: nginx:1.{i}\n", f"x:\n  image: {IMAGE}"), 600),
    "yaml block": ("a.yml", lambda n: "run: |\n" + lines(n, "  echo {i}\n", f"  pip install {PIN}"), 1000),
    "shell commands": ("a.sh", lambda n: "; ".join(f"echo {i}" for i in range(n)) + f"; pip install {PIN}\n", 3000),
    "shell words": ("b.sh", lambda n: f"pip install {PIN} " + " ".join(f"p{i}==1.{i}" for i in range(n)), 2000),
    "shell variables": ("c.sh", lambda n: lines(n, "X{i}=a{i}\necho $X{i}\n", f"pip install {PIN}"), 700),
    "unknown options": (
        "d.sh",
        lambda n: "python -m sglang.launch_server " + " ".join(f"--x{i} {i}" for i in range(n)) + "\n",
        1000,
    ),
    "Dockerfile RUN": (
        "Dockerfile",
        lambda n: f"FROM {IMAGE}\nRUN " + " && ".join(f"echo {i}" for i in range(n)) + "\n",
        1500,
    ),
    "Dockerfile ENV on ENV": (
        "Dockerfile",
        lambda n: "FROM a\nENV A=1\n" + lines(n, "ENV A=$A:/x{i}\nENV B{i}=$A\n", f"RUN pip install {PIN}"),
        1000,
    ),
    "variables of variables": (
        "f.sh",
        lambda n: "V=0\n" + lines(n, "V{i}=$V:/x{i}\nV=$V{i}\n", f"pip install {PIN}"),
        1500,
    ),
    "doubled variables": (
        "g.sh",
        lambda n: "V=0\n" + lines(n, "V{i}=$V$V\nV=$V{i}\n", f"pip install {PIN}"),
        600,
    ),
    "options that grow": (
        "h.sh",
        lambda n: lines(n, 'A="$A --x{i} {i}"\n', f"pip install {PIN}\npython -m sglang.launch_server $A"),
        3000,
    ),
    "exported options that grow": (
        "i.sh",
        lambda n: lines(n, 'export A="${{A}} --x{i}"\n', f"pip install {PIN}"),
        3000,
    ),
    "gate in shell, variables": ("j.sh", lambda n: shell_gate(n, "v{i}=$(get max_total_num_tokens {i})\n"), 1800),
    "gate in shell, comparisons": ("k.sh", lambda n: shell_gate(n, '[ "$pool" -lt {i} ] || true\n'), 190),
    "gate in shell, here-documents": ("l.sh", lambda n: shell_gate(n, "python - <<E{i}\nprint(1)\nE{i}\n"), 190),
    "gate in shell, blocks": ("m.yaml", lambda n: shell_gate(n, "k{i}: |\n  import x\n  max_total_num_tokens\n"), 1800),
    "gate in Python, branches": ("c.py", lambda n: python_gate(n, "if pool < {i}:\n    sys.exit(1)\n"), 1200),
    "gate in Python, one long branch": (
        "d.py",
        lambda n: python_gate(n, "elif pool < {i}:\n    a = {i}\n", "if pool < 0:\n    a = 0\n"),
        800,
    ),
    "gate in Python, functions": (
        "e.py",
        lambda n: python_gate(n, "def f{i}(a):\n    if a < {i}:\n        return 1\n    return f(a)\n"),
        1000,
    ),
    "gate in Python, names": ("f.py", lambda n: python_gate(n, "v{i} = pool\nw{i} = v{i} < context\n"), 1200),
    "requirements": ("requirements.txt", lambda n: lines(n, "p{i}==1.{i}\n", PIN), 2500),
    "requirements, CRLF": ("requirements-w.txt", lambda n: lines(n, "p{i}==1.{i}\r\n", PIN), 2500),
    "requirements, hashes": (
        "requirements-h.txt",
        lambda n: PIN + "".join(f" \\\n    --hash=sha256:{i:064x}" for i in range(n)) + "\n",
        500,
    ),
    "uv.lock": (
        "uv.lock",
        lambda n: lines(
            n,
            '[[package]]\nname = "p{i}"\nversion = "1.{i}"\nsource = {{ registry = "r" }}\n',
            '[[package]]\nname = "sglang"\nversion = "0.5.19"',
        ),
        700,
    ),
    "poetry.lock": (
        "poetry.lock",
        lambda n: lines(
            n,
            f'[[package]]\nname = "p{{i}}"\nversion = "1.{{i}}"\nfiles = [{{{{file = "p.whl", hash = "{HASH}"}}}}]\n',
            '[[package]]\nname = "sglang"\nversion = "0.5.19"',
        ),
        300,
    ),
    "Pipfile.lock": (
        "Pipfile.lock",
        lambda n: json.dumps(
            {
                "default": {
                    **{f"p{i}": {"hashes": [HASH], "version": "==1"} for i in range(n)},
                    "sglang": {"version": "==0.5.19"},
                }
            }
        ),
        500,
    ),
    "Python strings": (
        "a.py",
        lambda n: "X = [\n" + lines(n, '    "text {i} of many",\n', f']\nIMAGE = "{IMAGE}"'),
        1500,
    ),
    "Python commands": (
        "b.py",
        lambda n: "import os\n" + lines(n, 'C{i} = "v{i}"\nos.system("pip install sglang=={i}.0")\n', ""),
        300,
    ),
    "Makefile": (
        "Makefile",
        lambda n: lines(n, "V{i} = {i}\nt{i}:\n\techo $(V{i})\n", f"x:\n\tpip install {PIN}"),
        1000,
    ),
    "environment file": (".env", lambda n: lines(n, "A{i}=b{i}\n", f"IMAGE={IMAGE}"), 3000),
    "ignore comments": (
        "e.sh",
        lambda n: lines(n, "# auditor: ignore[sglang-vulnerable-version] why {i}\n", f"pip install {PIN}"),
        800,
    ),
}
