"""`auditor latency`: long prompts that answer too fast, from request logs of a gateway or an engine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.commands.common import document_stream
from auditor.errors import UsageError
from auditor.live.options import add_output_options, positive, share, tokens

if TYPE_CHECKING:
    from auditor.live.latency import Bucket
    from auditor.live.latency_log import Tally
    from auditor.live.outcome import Result
    from auditor.model.findings import JsonValue

DESCRIPTION = """\
Reads JSON lines (plain or gzip, any size, in bounded memory) and compares the time to the first token over prompt
lengths: a longer prompt that answers faster than shorter ones, or faster than its own baseline, skipped its prefill.
Lines that are cut off or something else are counted and passed over.
Exit code: 0 pass, 1 alarm, 2 wrong usage, 3 undecided (too few requests)."""


CHART_COLUMNS = 110  # where no terminal says how wide it is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `auditor latency`."""
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("logs", nargs="+", metavar="LOG", help="files of JSON lines (`-` is standard input)")
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where a field stands: length, ttft, cached, status, queue or group; PATH is dotted keys, `len:PATH` "
        "counts items or characters there",
    )
    parser.add_argument(
        "--unit",
        choices=("s", "ms", "us", "ns"),
        help="unit of the time to the first token (default: from the field's name, else seconds)",
    )
    parser.add_argument(
        "--long-from", type=tokens, default=8192, metavar="TOKENS", help="lengths that are judged (default 8192)"
    )
    parser.add_argument(
        "--min-samples", type=tokens, default=20, metavar="N", help="requests that a bucket needs (default 20)"
    )
    parser.add_argument(
        "--cache-share",
        type=share,
        default=0.1,
        metavar="X",
        help="a request with more than this share of its prompt from the cache is a cache hit (default 0.1)",
    )
    parser.add_argument(
        "--max-rate", type=positive, metavar="N", help="alarm on any request above so many prompt tokens a second"
    )
    parser.add_argument("--baseline", metavar="FILE", help="compare with the figures of this file")
    parser.add_argument(
        "--baseline-ratio",
        type=share,
        default=0.7,
        metavar="X",
        help="alarm when p5 falls below this share of the baseline's (default 0.7)",
    )
    parser.add_argument("--write-baseline", metavar="FILE", help="write the figures, unless there is an alarm")
    parser.add_argument("--plot", metavar="FILE.svg", help="write the chart as SVG")
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read the logs; the exit code."""
    from auditor.live.chart import svg_chart, terminal_chart
    from auditor.live.latency import Thresholds, baseline_document, collect, judge, read_baseline
    from auditor.live.latency_fields import UNITS, Fields, parse_field, place
    from auditor.live.latency_log import Tally, samples
    from auditor.live.outcome import exit_code, verdict
    from auditor.live.render import document, say, terminal, terminal_width, wants_colour

    if options.plot is not None and not options.plot.lower().endswith(".svg"):
        raise UsageError("--plot writes SVG alone: name a file that ends in .svg")
    if len({path for path in options.logs if path == "-"}) < options.logs.count("-"):
        raise UsageError("standard input can be read once only")
    unit = UNITS[options.unit] if options.unit is not None else None
    named = {}
    for text in options.field:
        name, path = parse_field(text)
        named[name] = place(path, unit if name == "ttft" else None if name == "queue" else 1.0)
    baseline = None
    if options.baseline is not None:
        baseline = read_baseline(_text(options.baseline), options.baseline)
    thresholds = Thresholds(
        long_from=options.long_from,
        minimum=options.min_samples,
        baseline_ratio=options.baseline_ratio,
        cache_share=options.cache_share,
        max_rate=options.max_rate,
    )
    tally = Tally()
    buckets = collect(samples(options.logs, Fields(named, unit), tally), thresholds)
    results = [*judge(buckets, thresholds, baseline), *_remarks(tally)]
    outcome = verdict(results)
    code = exit_code(outcome, options.unknown)
    alarms = frozenset(result.subject for result in results if result.status == "fail")
    if options.write_baseline is not None:
        if outcome == "fail":
            say("the baseline is not written: it would hold what raised the alarm", options.quiet)
        else:
            with document_stream(options.write_baseline) as stream:
                stream.write(baseline_document(buckets, options.min_samples))
    if options.plot is not None:
        with document_stream(options.plot) as stream:
            stream.write(svg_chart(buckets, alarms, "Time to first token by prompt length"))
    if options.format == "json":
        report = document(
            "latency",
            outcome,
            code,
            results,
            {
                "lines": _lines(tally),
                "fields": {name: tally.paths[name] for name in sorted(tally.paths)},
                "buckets": [_bucket(one) for one in buckets],
            },
        )
    else:
        width = terminal_width(options.output)
        encoding = "utf-8" if options.output is not None else (sys.stdout.encoding or "ascii").lower()
        chart = terminal_chart(buckets, alarms, width or CHART_COLUMNS, encoding.startswith("utf"))
        report = terminal(
            "latency",
            outcome,
            code,
            results,
            head=chart,
            tail=[_summary(tally)],
            colour=wants_colour(options.output),
            width=width,
        )
    with document_stream(options.output) as stream:
        stream.write(report)
    return code


def _remarks(tally: Tally) -> list[Result]:
    from auditor.live.outcome import Result

    remarks = []
    if tally.lines and not tally.samples:
        text = (
            "no line holds a length and a time that can be used; name the fields: --field length=... --field ttft=..."
        )
        remarks.append(Result("fields", "undecided", text))
    length = tally.paths.get("length")
    if length is not None and "meta_info" in length:
        text = (
            f"the length is the engine's own count (`{length}`): a prompt that it refused counts as one token there. "
            "Take the gateway's log, or --field length=... for what the client sent"
        )
        remarks.append(Result("length-source", "note", text))
    remarks.extend(Result("truncated", "note", "the file ends too early", path) for path in tally.truncated)
    return remarks


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"`{path}` cannot be read") from None


def _lines(tally: Tally) -> JsonValue:
    return {
        "read": tally.lines,
        "samples": tally.samples,
        "left_out": {reason: tally.reasons[reason] for reason in sorted(tally.reasons)},
    }


def _summary(tally: Tally) -> str:
    left = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.reasons.items()))
    return f"{tally.lines:,} lines, {tally.samples:,} requests" + (f"; left out: {left}" if left else "")


def _bucket(bucket: Bucket) -> JsonValue:
    from auditor.live.latency import figures

    found = figures(bucket)
    return {
        "group": bucket.group,
        "from": bucket.low,
        "to": bucket.low * 2 - 1,
        "requests": bucket.times.count,
        "cache_hits": bucket.hits,
        "p5": float(f"{found.p5:.4g}") if found is not None else None,
        "p50": float(f"{found.p50:.4g}") if found is not None else None,
        "p95": float(f"{found.p95:.4g}") if found is not None else None,
    }
