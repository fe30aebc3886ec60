"""Does a long prompt answer too fast? Quantiles of the time to the first token by prompt length, in bounded memory.

A prompt that is refused but answered skips its prefill: decode begins at once, on pages that nobody filled. So the time
to the first token no longer grows with what the client sent. Lengths are put into buckets of powers of two; p5 of a
bucket is its fast end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from auditor.errors import UsageError
from auditor.live.latency_log import Sample
from auditor.live.outcome import Result
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass, field

BASE = math.log(1.02)  # relative width of a cell: quantiles are right to one per cent
LONG_FROM = 8192
MINIMUM = 20
TOLERANCE = 0.9  # below this share of a shorter bucket's p5 it is faster, and not merely as fast
BASELINE_RATIO = 0.7
CACHE_SHARE = 0.1
STRAY = 3  # single requests that say something where the log tells cache hits apart
BASELINE_VERSION = 1


@dataclass
class Cells:
    """A histogram over logarithmic cells."""

    count: int = 0
    cells: dict[int, int] = field(default_factory=dict)

    def add(self, seconds: float) -> None:
        """Count one time."""
        key = math.floor(math.log(seconds) / BASE)
        self.cells[key] = self.cells.get(key, 0) + 1
        self.count += 1

    def quantile(self, share: float) -> float:
        """The nearest-rank quantile, in seconds, to one per cent."""
        wanted = max(math.ceil(share * self.count), 1)
        seen = 0
        for key in sorted(self.cells):
            seen += self.cells[key]
            if seen >= wanted:
                return math.exp((key + 0.5) * BASE)
        raise ValueError("no samples")

    def below(self, seconds: float) -> int:
        """How many times lie below, cell by cell."""
        return sum(count for key, count in self.cells.items() if math.exp((key + 0.5) * BASE) < seconds)


@dataclass
class Bucket:
    """Requests of one group with a length in [`low`, 2 x `low`). `hits` were served from the prefix cache."""

    group: str
    low: int
    times: Cells = field(default_factory=Cells)
    hits: int = 0
    told: int = 0  # of the samples in `times`, those whose log line says how much was cached
    fastest_rate: float = 0.0  # length over time, the greatest

    @property
    def name(self) -> str:
        """`64k-128k`, with the group in front."""
        return f"{self.group + ' ' if self.group else ''}{size(self.low)}-{size(self.low * 2)}"


@dataclass(frozen=True, slots=True)
class Figures:
    """p5, p50 and p95 in seconds over `count` samples."""

    count: int
    p5: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a bucket counts: `minimum` samples; as long: from `long_from`. `max_rate` in length units a second."""

    long_from: int = LONG_FROM
    minimum: int = MINIMUM
    tolerance: float = TOLERANCE
    baseline_ratio: float = BASELINE_RATIO
    cache_share: float = CACHE_SHARE
    max_rate: float | None = None


Baseline = Mapping[tuple[str, int], Figures]


def collect(all_samples: Iterable[Sample], thresholds: Thresholds) -> list[Bucket]:
    """All samples in buckets, by group and length. A request with more than `cache_share` of its length from the cache
    is counted as a hit and not timed."""
    buckets: dict[tuple[str, int], Bucket] = {}
    for sample in all_samples:
        low = 1 << (sample.length.bit_length() - 1)
        key = (sample.group, low)
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = Bucket(sample.group, low)
        if sample.cached is not None:
            if sample.cached > thresholds.cache_share * sample.length:
                bucket.hits += 1
                continue
            bucket.told += 1
        bucket.times.add(sample.seconds)
        bucket.fastest_rate = max(bucket.fastest_rate, sample.length / sample.seconds)
    return [buckets[key] for key in sorted(buckets)]


def figures(bucket: Bucket) -> Figures | None:
    """The quantiles of a bucket; `None` without samples."""
    times = bucket.times
    if not times.count:
        return None
    return Figures(times.count, times.quantile(0.05), times.quantile(0.5), times.quantile(0.95))


def judge(buckets: Sequence[Bucket], thresholds: Thresholds, baseline: Baseline | None) -> tuple[Result, ...]:
    """What every long bucket says, compared with shorter ones of its group and with its baseline."""
    results: list[Result] = []
    for bucket in buckets:
        if bucket.low * 2 > thresholds.long_from:
            shorter = [one for one in buckets if one.group == bucket.group and one.low < bucket.low]
            results.extend(_bucket(bucket, shorter, thresholds, baseline))
    if not any(result.status in ("pass", "fail") for result in results):
        text = (
            f"too few samples: no bucket from {size(thresholds.long_from)} on has {thresholds.minimum} requests and "
            "something to compare them with (a shorter bucket or a baseline)"
        )
        results.append(Result("samples", "undecided", text))
    return tuple(results)


def _bucket(
    bucket: Bucket, shorter: Sequence[Bucket], thresholds: Thresholds, baseline: Baseline | None
) -> list[Result]:
    found = figures(bucket)
    results: list[Result] = []
    if found is not None and thresholds.max_rate is not None and bucket.fastest_rate > thresholds.max_rate:
        text = f"{bucket.fastest_rate:,.0f} a second is more than the {thresholds.max_rate:,.0f} that are possible"
        results.append(Result("rate", "fail", text, bucket.name, {"rate": round(bucket.fastest_rate, 1)}))
    if found is None or found.count < thresholds.minimum:
        count = found.count if found is not None else 0
        if bucket.hits and not count:
            text = f"all {bucket.hits:,} requests were cache hits"
        else:
            text = f"{count:,} requests, {thresholds.minimum} are needed" + (
                f" ({bucket.hits:,} cache hits left out)" if bucket.hits else ""
            )
        return [*results, Result("samples", "note", text, bucket.name)]
    data: dict[str, JsonValue] = {"p5": _round(found.p5), "p50": _round(found.p50), "count": found.count}
    untold = "" if bucket.told == found.count else UNTOLD
    compared = False
    enough = [(one, figures(one)) for one in shorter if one.times.count >= thresholds.minimum]
    overtaken = [
        (one, other)
        for one, other in enough
        # Faster than its median; and faster than its fast end too, or the shorter bucket merely stood in a queue.
        if other is not None and found.p5 < min(other.p50, other.p5 * thresholds.tolerance)
    ]
    compared = bool(enough)
    if overtaken:
        worst, other = max(overtaken, key=lambda pair: pair[1].p50)
        text = (
            f"p5 {seconds(found.p5)} is faster than the median {seconds(other.p50)} of {size(worst.low)}-"
            f"{size(worst.low * 2)}, whose own p5 is {seconds(other.p5)}: longer prompts cannot prefill faster{untold}"
        )
        more: dict[str, JsonValue] = {
            "shorter": worst.low,
            "shorter_p5": _round(other.p5),
            "shorter_p50": _round(other.p50),
        }
        results.append(Result("faster-than-shorter", "fail", text, bucket.name, {**data, **more}))
    else:
        results.extend(_stray(bucket, enough, data))
    before = baseline.get((bucket.group, bucket.low)) if baseline is not None else None
    if before is not None:
        compared = True
        if found.p5 < before.p5 * thresholds.baseline_ratio:
            text = (
                f"p5 {seconds(found.p5)} was {seconds(before.p5)} in the baseline: less than "
                f"{thresholds.baseline_ratio:g} of it{untold}"
            )
            results.append(
                Result("faster-than-baseline", "fail", text, bucket.name, {**data, "baseline_p5": _round(before.p5)})
            )
    if not compared:
        text = "nothing to compare with: no shorter bucket with enough requests, and no baseline"
        return [*results, Result("samples", "note", text, bucket.name, data)]
    if not any(result.status == "fail" for result in results):
        text = f"p5 {seconds(found.p5)}, p50 {seconds(found.p50)} over {found.count:,} requests"
        results.append(Result("grows-with-length", "pass", text, bucket.name, data))
    return results


UNTOLD = "; the log does not tell cache hits apart (name the field with --field cached=...)"


def _stray(
    bucket: Bucket, shorter: Sequence[tuple[Bucket, Figures | None]], data: Mapping[str, JsonValue]
) -> list[Result]:
    """Single requests that are far too fast, fewer than p5 can see."""
    references = [(one, other) for one, other in shorter if other is not None and one.low * 4 <= bucket.low]
    if not references:
        return []
    one, other = max(references, key=lambda pair: pair[0].low)
    count = bucket.times.below(other.p5 / 2)
    if count < STRAY:
        return []
    text = (
        f"{count:,} of {bucket.times.count:,} requests took less than half of the p5 ({seconds(other.p5)}) of "
        f"{size(one.low)}-{size(one.low * 2)}, a quarter of their length"
    )
    # Where cache hits cannot be told apart, a few fast ones are what a prefix cache looks like.
    told = bucket.told == bucket.times.count
    more: dict[str, JsonValue] = {"requests": count, "shorter": one.low, "shorter_p5": _round(other.p5)}
    return [Result("stray", "fail" if told else "note", text + ("" if told else UNTOLD), bucket.name, {**data, **more})]


def baseline_document(buckets: Sequence[Bucket], minimum: int) -> str:
    """The quantiles of all buckets with enough requests, to compare a later log with."""
    rows: list[JsonValue] = []
    for bucket in buckets:
        found = figures(bucket)
        if found is not None and found.count >= minimum:
            rows.append(
                {
                    "group": bucket.group,
                    "from": bucket.low,
                    "count": found.count,
                    "p5": _round(found.p5),
                    "p50": _round(found.p50),
                    "p95": _round(found.p95),
                }
            )
    return (
        json.dumps({"schema_version": BASELINE_VERSION, "kind": "latency-baseline", "buckets": rows}, indent=2) + "\n"
    )


def read_baseline(text: str, where: str) -> Baseline:
    """A baseline as it was written; `UsageError` when it is none."""
    try:
        value = json.loads(text)
        if value["kind"] != "latency-baseline" or value["schema_version"] != BASELINE_VERSION:
            raise ValueError
        return {
            (str(row["group"]), int(row["from"])): Figures(
                int(row["count"]), float(row["p5"]), float(row["p50"]), float(row["p95"])
            )
            for row in value["buckets"]
        }
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(f"`{where}` is no latency baseline") from None


def size(tokens: int) -> str:
    """A power of two in short: 512, 64k, 1M."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "k")):
        if tokens >= unit and tokens % unit == 0:
            return f"{tokens // unit}{name}"
    return f"{tokens:,}"


def seconds(value: float) -> str:
    """A time with three figures: 41 ms, 1.21 s."""
    if value < 1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"


def _round(value: float) -> float:
    return float(f"{value:.4g}")
