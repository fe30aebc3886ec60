"""The latency chart: time to first token by prompt length, for a terminal and as SVG.

The SVG is written by hand: forty shapes need no drawing library. There is no PNG for the same reason; any browser or
`rsvg-convert` makes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from auditor.live.latency import Bucket, Figures, figures, seconds, size

WIDTH, HEIGHT = 880, 460
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 56, 64
COLOURS = {"p5": "#0b6fa4", "p50": "#333333", "p95": "#9a9a9a", "alarm": "#c0202a", "grid": "#e4e4e4"}
Row = tuple[Bucket, Figures]


def terminal_chart(buckets: Sequence[Bucket], alarms: frozenset[str], width: int, unicode: bool) -> list[str]:
    """One line a bucket: length, requests, p5, p50, p95, and the three on a common logarithmic scale."""
    rows = [(bucket, found) for bucket in buckets if (found := figures(bucket)) is not None]
    if not rows:
        return []
    labels = [bucket.name for bucket, _ in rows]
    room = max(len(label) for label in labels)
    head = f"  {'length':<{room}} {'requests':>10} {'p5':>8} {'p50':>8} {'p95':>8} {'hits':>8}"
    bar = max(min(width - len(head) - 3, 60), 0)
    low = min(found.p5 for _, found in rows)
    high = max(found.p95 for _, found in rows)
    lines = [head]
    for label, (bucket, found) in zip(labels, rows, strict=True):
        line = (
            f"  {label:<{room}} {found.count:>10,} {seconds(found.p5):>8} {seconds(found.p50):>8} "
            f"{seconds(found.p95):>8} {bucket.hits:>8,}"
        )
        if bar >= 12:
            line += "  " + _bar(found, low, high, bar, unicode)
        if bucket.name in alarms:
            line += "  <- too fast"
        lines.append(line.rstrip())
    return lines


def _bar(found: Figures, low: float, high: float, width: int, unicode: bool) -> str:
    def column(value: float) -> int:
        if high <= low:
            return 0
        return round((math.log(value) - math.log(low)) / (math.log(high) - math.log(low)) * (width - 1))

    line, left, middle, right = ("─", "├", "●", "┤") if unicode else ("-", "[", "o", "]")
    cells = [" "] * width
    for at in range(column(found.p5), column(found.p95) + 1):
        cells[at] = line
    cells[column(found.p5)], cells[column(found.p95)], cells[column(found.p50)] = left, right, middle
    return "".join(cells)


def svg_chart(buckets: Sequence[Bucket], alarms: frozenset[str], title: str) -> str:
    """The chart as one SVG document; the same input gives the same bytes."""
    rows = [(bucket, found) for bucket in buckets if (found := figures(bucket)) is not None]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="16" fill="#111111">{escape(title)}</text>',
    ]
    if not rows:
        parts.append(f'<text x="{LEFT}" y="{HEIGHT // 2}" fill="#333333">no samples</text>')
        return "\n".join([*parts, "</svg>"]) + "\n"
    lows = sorted({bucket.low for bucket, _ in rows})
    first, last = math.log2(lows[0]), math.log2(lows[-1])
    bottom = math.floor(math.log10(min(found.p5 for _, found in rows)))
    top = math.ceil(math.log10(max(found.p95 for _, found in rows)) + 1e-9)

    def x(low: int) -> float:
        return LEFT + (math.log2(low) - first + 0.5) / (last - first + 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (top - math.log10(value)) / max(top - bottom, 1) * (HEIGHT - TOP - BOTTOM)

    for power in range(bottom, top + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="{COLOURS["grid"]}"/>')
        label = seconds(10.0**power)
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#555555">{label}</text>')
    for low in lows:
        parts.append(
            f'<text x="{x(low):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#555555">{size(low)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 18}" text-anchor="middle" fill="#333333">'
        "prompt length sent by the client (from, in powers of two)</text>"
    )
    for group in sorted({bucket.group for bucket, _ in rows}):
        own = [(bucket, found) for bucket, found in rows if bucket.group == group]
        parts.extend(_band(own, x, y))
        parts.extend(_points(own, alarms, x, y))
    parts.extend(_legend())
    return "\n".join([*parts, "</svg>"]) + "\n"


def _band(rows: Sequence[Row], x: Callable[[int], float], y: Callable[[float], float]) -> Iterator[str]:
    upper = [f"{x(bucket.low):.1f},{y(found.p95):.1f}" for bucket, found in rows]
    lower = [f"{x(bucket.low):.1f},{y(found.p5):.1f}" for bucket, found in reversed(rows)]
    yield f'<polygon points="{" ".join([*upper, *lower])}" fill="{COLOURS["p5"]}" fill-opacity="0.10"/>'
    for name in ("p95", "p50", "p5"):
        line = " ".join(f"{x(bucket.low):.1f},{y(getattr(found, name)):.1f}" for bucket, found in rows)
        yield f'<polyline points="{line}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>'


def _points(
    rows: Sequence[Row], alarms: frozenset[str], x: Callable[[int], float], y: Callable[[float], float]
) -> Iterator[str]:
    for bucket, found in rows:
        alarm = bucket.name in alarms
        colour = COLOURS["alarm"] if alarm else COLOURS["p5"]
        words = f"{bucket.name}: p5 {seconds(found.p5)}, p50 {seconds(found.p50)}, p95 {seconds(found.p95)}"
        words += f" over {found.count:,} requests" + (": too fast" if alarm else "")
        yield (
            f'<circle cx="{x(bucket.low):.1f}" cy="{y(found.p5):.1f}" r="{6 if alarm else 3.5}" fill="{colour}">'
            f"<title>{escape(words)}</title></circle>"
        )


def _legend() -> list[str]:
    parts = []
    for index, (name, words) in enumerate(
        (("p5", "p5"), ("p50", "median"), ("p95", "p95"), ("alarm", "too fast for its length"))
    ):
        at = LEFT + (0, 60, 140, 200)[index]
        parts.append(f'<circle cx="{at + 5}" cy="42" r="4" fill="{COLOURS[name]}"/>')
        parts.append(f'<text x="{at + 14}" y="46" fill="#333333">{words}</text>')
    return parts
