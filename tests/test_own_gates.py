"""Scripts of somebody's own count as a gate where they compare pool and context and fail on it; words alone do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.model.facts import Definition
from auditor.model.spans import SourceFile
from auditor.readers.gates import read
from tests.live import run

ASK = "import requests, sys\ninfo = requests.get('http://127.0.0.1:30000/get_server_info').json()\n"
SHELL = """info=$(curl -s http://127.0.0.1:30000/get_server_info)
pool=$(echo "$info" | jq .max_total_num_tokens)
context=$(echo "$info" | jq .context_length)
"""
COPY = '''"""Messages of the engine; a client sends requests and reads get_server_info."""
import grpc
class ServerInfo:
    max_total_num_tokens: int
    context_length: int
    def check(self):
        if self.context_length < 1:
            raise ValueError("max_total_num_tokens")
'''
BOTH = ASK + "def figures():\n    return info['max_total_num_tokens'], info['context_length']\n"
COMPARED = "info['max_total_num_tokens'] < info['context_length']"


def gates(path: str, text: str) -> list[tuple[int, str]]:
    return [
        (fact.span.start.line, str(fact.value))
        for fact in read(SourceFile(path, text))
        if isinstance(fact, Definition) and fact.name == "gate"
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pb.py", COPY),
        ("hint.sh", 'echo "requests: see /server_info for max_total_num_tokens and context_length"\nexit 1\n'),
        ("hint.sh", 'curl -s x\necho "server_info: [ $max_total_num_tokens -lt $context_length ] && exit 1"\n'),
        ("both.py", BOTH),
        ("warns.py", f"{ASK}if {COMPARED}:\n    print('short')\n"),
        ("clamps.py", f"{ASK}size = 1 if {COMPARED} else 2\nif info['ok'] < 1:\n    sys.exit(1)\n"),
        ("says.py", f'{ASK}"""\nassert {COMPARED}\n"""\n'),
        ("one.py", f"{ASK}assert info['max_total_num_tokens'] > 0 and info['context_length'] > 0\n"),
        ("engine.py", f"'''requests, server_info'''\nif {COMPARED}:\n    raise ValueError\n"),
        ("shows.sh", SHELL + '[ "$pool" -lt "$context" ] && echo short\n'),
        ("shows.sh", SHELL + 'if [ "$pool" -lt "$context" ]; then\n  echo short\nfi\nexit 1\n'),
        ("each.sh", SHELL + '[ "$pool" -gt 0 ] && [ "$context" -gt 0 ] || exit 1\n'),
        ("comment.sh", SHELL + '# [ "$pool" -lt "$context" ] && exit 1\n'),
        ("usage.sh", SHELL + 'cat <<EOF\n[ "$pool" -lt "$context" ] && exit 1\nEOF\n'),
        ("ignored.sh", "set -e\n" + SHELL + '[ "$pool" -ge "$context" ] || true\necho\n'),
    ],
)
def test_words_are_no_gate(path: str, text: str) -> None:
    assert gates(path, text) == []


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("gate.py", f"{ASK}if {COMPARED}:\n    sys.exit('short')\n", 3),
        ("gate.py", f"{ASK}assert {COMPARED}\n", 3),
        (
            "gate.py",
            f"{ASK}pool = int(info['max_total_num_tokens'])\nneed = info.get('context_length') + 512\n"
            "ok = pool >= need\nif not ok:\n    raise SystemExit(1)\n",
            3,
        ),
        ("gate.py", f"{ASK}def main():\n    if {COMPARED}:\n        return 1\n    return 0\nsys.exit(main())\n", 4),
        (
            "gate.py",
            f"{ASK}def check(pool, need):\n    if pool - need < 0:\n        raise ValueError(pool)\n"
            "check(info['max_total_num_tokens'], info['context_length'])\n",
            6,
        ),
        ("gate.sh", SHELL + '[ "$pool" -ge "$context" ] || exit 1\necho fine\n', 2),
        ("gate.sh", SHELL + 'if (( pool < context + 512 )); then\n  echo "short; bad" >&2\n  exit 1\nfi\necho\n', 2),
        ("gate.sh", SHELL + 'if test "$pool" -lt "$context"; then exit 1; fi\necho\n', 2),
        ("gate.sh", "#!/bin/bash\nset -euo pipefail\n" + SHELL + '[[ "$pool" -ge "$context" ]]\nexec serve\n', 4),
        (
            "gate.sh",
            "curl -s http://h/server_info | jq -e '.max_total_num_tokens >= .context_length' >/dev/null || exit 1\n",
            1,
        ),
        ("gate.sh", f"python3 - <<'EOF'\n{ASK}assert {COMPARED}\nEOF\n", 4),
        ("pod.yaml", "args:\n- |\n" + "".join(f"  {one}\n" for one in (ASK + f"assert {COMPARED}").split("\n")), 5),
        (
            "pod.yaml",
            "args:\n- |\n"
            + "".join(f"  {one}\n" for one in SHELL.splitlines())
            + '  [ "$pool" -ge "$context" ]\nb: 1\n',
            4,
        ),
    ],
)
def test_a_comparison_that_fails_is_a_gate(path: str, text: str, line: int) -> None:
    assert gates(path, text) == [(line, "max_total_num_tokens")]


def test_a_pool_under_the_context_is_exposed_whatever_gates_it(tmp_path: Path) -> None:
    (tmp_path / "gate.sh").write_text(SHELL + '[ "$pool" -ge "$context" ] || exit 1\n', encoding="utf-8")
    launch = tmp_path / "serve.sh"
    command = "python -m sglang.launch_server --model-path m --context-length 131072"
    states = []
    for pool in ("", " --max-total-tokens 4096"):
        launch.write_text(f"{command}{pool}\n", encoding="utf-8")
        report = json.loads(run("scan", str(tmp_path), "--format", "json").out)
        states.append(report["checklist"][0]["state"])
    assert states == ["met", "exposed"]
