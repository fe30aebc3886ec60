"""`auditor gate`: pool against context, versions and agreement, read from the engine that runs. Fails closed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from auditor.commands.common import document_stream
from auditor.errors import UsageError
from auditor.launch.versions import FIXED
from auditor.live.options import (
    HEADROOM,
    add_access_options,
    add_output_options,
    factor,
    positive,
    seconds,
    token,
    tokens,
)

if TYPE_CHECKING:
    from auditor.live.server_info import Worker
    from auditor.model.findings import JsonValue

DESCRIPTION = """\
Asks each worker for /server_info and /v1/models and checks, fail closed: the version, the KV pool against the context
length, the front's limit, truncation, every data-parallel rank, and that prefill and decode agree.
Exit code: 0 pass, 1 fail, 2 wrong usage, 3 undecided (no answer, or a field that is missing)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `auditor gate`."""
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="URL_OR_FILE",
        help="a worker, or a file with what it answered (`-` is standard input)",
    )
    parser.add_argument("--prefill", nargs="+", action="extend", default=[], metavar="URL", help="prefill workers")
    parser.add_argument("--decode", nargs="+", action="extend", default=[], metavar="URL", help="decode workers")
    parser.add_argument(
        "--headroom",
        type=factor,
        default=HEADROOM,
        metavar="X",
        help=f"how many context windows the pool must hold (default {HEADROOM})",
    )
    parser.add_argument(
        "--edge-limit", type=tokens, metavar="TOKENS", help="the longest prompt that your front lets through"
    )
    parser.add_argument(
        "--minimum-version", default=FIXED, metavar="VERSION", help=f"the oldest engine that passes (default {FIXED})"
    )
    parser.add_argument(
        "--context-length",
        type=tokens,
        metavar="TOKENS",
        help="the context length, for a document that does not hold it",
    )
    parser.add_argument(
        "--all-addresses",
        action="store_true",
        help="ask every address that a host name stands for: all workers behind a headless service",
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="try connection failures again, and wait until all workers agree, for this long (default 0)",
    )
    parser.add_argument(
        "--interval", type=positive, default=5.0, metavar="SECONDS", help="pause between two tries (default 5)"
    )
    add_access_options(parser, timeout=10.0)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the gate; the exit code."""
    import asyncio
    from pathlib import Path

    from packaging.version import InvalidVersion, Version

    from auditor.live.gate import Criteria, agree, front_limit, judge
    from auditor.live.http import Access, Secret
    from auditor.live.outcome import exit_code, verdict
    from auditor.live.render import document, say, terminal, terminal_width, wants_colour
    from auditor.live.server_info import read_worker
    from auditor.live.targets import Observation, observe, target

    try:
        Version(options.minimum_version)
    except InvalidVersion:
        raise UsageError(f"--minimum-version `{options.minimum_version}` is no version") from None
    targets = [target("unknown", text) for text in options.targets]
    targets += [target("prefill", text) for text in options.prefill]
    targets += [target("decode", text) for text in options.decode]
    if not targets:
        raise UsageError("no worker given: auditor gate URL, or --prefill URL... --decode URL...")
    if sum(one.text == "-" for one in targets) > 1:
        raise UsageError("standard input can stand for one worker only")
    secret = token(options)
    access = Access(
        timeout=options.timeout,
        token=Secret(secret) if secret is not None else None,
        ca_file=Path(options.ca_file) if options.ca_file is not None else None,
    )

    def read(seen: list[Observation] | tuple[Observation, ...]) -> list[tuple[Observation, Worker]]:
        return [
            (one, read_worker(one.target.text, one.target.role, one.documents, options.context_length)) for one in seen
        ]

    observations = asyncio.run(
        observe(
            targets,
            access,
            all_addresses=options.all_addresses,
            wait=options.wait,
            interval=options.interval,
            agreed=lambda seen: agree(read(list(seen))),
            waiting=lambda text: say(f"waiting: {text}", options.quiet),
        )
    )
    pairs = read(observations)
    results = judge(pairs, Criteria(options.minimum_version, options.headroom, options.edge_limit))
    outcome = verdict(results)
    code = exit_code(outcome, options.unknown)
    workers = [worker for one, worker in pairs if one.documents.server_info is not None]
    limit = front_limit(workers) if len(workers) == len(pairs) else None
    if options.format == "json":
        report = document(
            "gate",
            outcome,
            code,
            results,
            {"front_limit_tokens": limit, "workers": [_described(worker) for worker in workers]},
        )
    else:
        shown = f"{limit:,} prompt tokens" if limit is not None else "unknown: a worker does not show it"
        report = terminal(
            "gate",
            outcome,
            code,
            results,
            colour=wants_colour(options.output),
            width=terminal_width(options.output),
            head=[_line(worker) for worker in workers],
            tail=[f"limit to configure at the front: {shown}"],
        )
    with document_stream(options.output) as stream:
        stream.write(report)
    return code


def _described(worker: Worker) -> JsonValue:
    return {
        "name": worker.name,
        "role": worker.role,
        "version": worker.version,
        "context_tokens": worker.context,
        "pool_tokens": {"low": worker.capacity.low, "high": worker.capacity.high},
        "largest_prompt_tokens": worker.largest_prompt,
        "rank_pool_tokens": list(worker.ranks),
        "page_size": worker.page_size,
        "kv_cache_dtype": worker.kv_cache_dtype,
    }


def _line(worker: Worker) -> str:
    def number(value: int | None) -> str:
        return f"{value:,}" if value is not None else "unknown"

    return (
        f"  {worker.role:<8} {worker.name}  sglang {worker.version or 'unknown'}  pool {number(worker.capacity.low)}  "
        f"context {number(worker.context)}  longest prompt {number(worker.largest_prompt)}"
    )
