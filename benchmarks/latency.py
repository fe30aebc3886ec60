"""Two gigabytes of request log: `python -m benchmarks.latency [GIGABYTES]`.

The log is made on the fly and piped in; nothing is written to disk. Budget: 200 MB of memory, whatever the size.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
import time

from benchmarks.ratio import AUDITOR, ROOT
from tests.logs import gateway, requests

BUDGET_MB = 200
ABOUT = {"request_id": "0" * 36, "path": "/v1/chat/completions", "client": "10.0.0.1", "user_agent": "x" * 180}


def main(gigabytes: float = 2.0) -> int:
    """Pipe the log through `auditor latency`; 1 when it took more memory than its budget."""
    lines = [gateway(*one, **ABOUT) for one in requests(20_000, leaks=lambda length: length >= 681_274)]
    lines += ["INFO a line of another kind", gateway(*next(requests(1)))[:60]]
    block = ("\n".join(lines) + "\n").encode()
    # One line of 7 MB, as an engine writes it for a prompt of a million token ids.
    long_line = gateway(1_000_000, 0.05, input_ids=list(range(100_000, 1_100_000))).encode() + b"\n"
    wanted, sent, began = int(gigabytes * 1e9), 0, time.perf_counter()
    command = [*AUDITOR, "latency", "-", "--format", "json"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    if process.stdin is None:
        raise RuntimeError("no pipe to the command")
    for number in itertools.count():
        if sent >= wanted:
            break
        part = long_line if number % 20 == 19 else block
        process.stdin.write(part)
        sent += len(part)
    process.stdin.close()
    code = process.wait()
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    verdict = "within" if peak <= BUDGET_MB else "OVER"
    print(f"{sent / 1e9:.2f} GB in {took:.0f} s ({sent / took / 1e6:.0f} MB/s), exit {code}")
    print(f"peak memory {peak:.0f} MB, {verdict} {BUDGET_MB} MB")
    return 0 if peak <= BUDGET_MB and code == 1 else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0))
