"""Request logs for tests and benchmarks, generated: an engine whose prefill costs time, and one that skips it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

RATE = 20_000  # tokens a second
FIXED = 0.03  # seconds that every request takes
Leaks = Callable[[int], bool]


def never(_: int) -> bool:
    """No request skips its prefill."""
    return False


def requests(
    count: int, *, leaks: Leaks = never, share: float = 1.0, top: int = 20, seed: int = 1
) -> Iterator[tuple[int, float]]:
    """(length, seconds to the first token): lengths even over powers of two from 64; a request that `leaks` skips its
    prefill in this share of cases."""
    pick = random.Random(seed)
    for _ in range(count):
        length = int(2 ** pick.uniform(6, top))
        seconds = FIXED + length / RATE * pick.lognormvariate(0, 0.2) + pick.expovariate(20)
        if leaks(length) and pick.random() < share:
            seconds = FIXED + pick.expovariate(50)
        yield length, seconds


def gateway(length: int, seconds: float, **more: object) -> str:
    """A gateway's log line."""
    return json.dumps(
        {"ts": 1, "model": "glm", "status": 200, "client_prompt_tokens": length, "ttft_ms": round(seconds * 1000, 3)}
        | {"cached_tokens": 0}
        | more
    )


def engine(length: int, seconds: float, **more: object) -> str:
    """The engine's own JSON request log (`--log-requests-format json`)."""
    meta = {"prompt_tokens": length, "cached_tokens": 0, "first_token_latency": seconds, "e2e_latency": seconds + 1}
    return json.dumps({"timestamp": "t", "event": "request.finished", "rid": "r", "out": {"meta_info": meta | more}})


def exported(length: int, seconds: float) -> str:
    """The engine's metrics file (`--export-metrics-to-file`)."""
    meta = {"prompt_tokens": length, "cached_tokens": 0, "first_token_latency": seconds}
    return json.dumps({"request_parameters": json.dumps({"rid": "r", "text": "x"}), **meta})
