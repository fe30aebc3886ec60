"""`auditor canary`: sentinels at the limit and past it; what comes back decides, not the status."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from auditor.commands.common import document_stream
from auditor.errors import UsageError
from auditor.live.options import add_access_options, add_output_options, token, tokens

if TYPE_CHECKING:
    from auditor.live.canary import Made
    from auditor.live.generation import Api
    from auditor.live.http import Access
    from auditor.live.prompts import Limits, Place, Run, Way
    from auditor.live.targets import Observation, Target
    from auditor.model.findings import JsonValue

DESCRIPTION = """\
Plants sentinels, then sends prompts at the limit, one token past it and just below the context length: those must be
refused. Prompts under the limit must give their own sentinel back. No sentinel of another prompt may ever come back.

On a vulnerable system this can bring other tenants' text to light. Only SHA-256 sums are kept; --show-text shows it.
It sends several prompts of the greatest length that the engine takes: run it before tenants do, or off peak.
Exit code: 0 pass, 1 fail, 2 wrong usage, 3 undecided."""
WARNING = "on a vulnerable system the canary can bring other tenants' text to light; only SHA-256 sums are kept"
MAX_PLANTS = 8
TEXT_SHOWN = 400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `auditor canary`."""
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("url", metavar="URL", help="where tenants send their prompts: the front, or the engine itself")
    parser.add_argument(
        "--prefill",
        nargs="+",
        action="extend",
        default=[],
        metavar="URL",
        help="prefill workers, asked for limits only",
    )
    parser.add_argument(
        "--decode", nargs="+", action="extend", default=[], metavar="URL", help="decode workers, asked for limits only"
    )
    parser.add_argument(
        "--limit",
        type=tokens,
        metavar="TOKENS",
        help="the first prompt length that must be refused, min(context, pool) - 6; asked of the engine by default",
    )
    parser.add_argument("--context-length", type=tokens, metavar="TOKENS", help="the context length, likewise")
    parser.add_argument(
        "--edge-limit", type=tokens, metavar="TOKENS", help="the longest prompt that your front lets through"
    )
    parser.add_argument("--model", metavar="NAME", help="the model to ask for (default: the first one served)")
    parser.add_argument(
        "--api",
        choices=("auto", "completions", "generate", "chat"),
        default="auto",
        help="the API to use (default: the first one on which a short prompt gives its sentinel back)",
    )
    parser.add_argument("--seed", metavar="TEXT", help="make the same sentinels as the run that printed this seed")
    parser.add_argument(
        "--plants",
        type=tokens,
        metavar="N",
        help=f"planting prompts (default: enough to fill the pool of decode once, at most {MAX_PLANTS})",
    )
    parser.add_argument(
        "--rounds",
        type=tokens,
        default=1,
        metavar="N",
        help="how often the prompts over the limit are sent; more than once where a front has many workers (default 1)",
    )
    parser.add_argument(
        "--show-text", action="store_true", help="show what was generated; it may be somebody else's text"
    )
    add_access_options(parser, timeout=600.0)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the canary; the exit code."""
    import asyncio
    import secrets
    from pathlib import Path

    from auditor.live.http import Access, Secret
    from auditor.live.outcome import Result, exit_code, verdict
    from auditor.live.render import document, say, terminal, terminal_width, wants_colour
    from auditor.live.targets import target

    front = target("unknown", options.url)
    targets = [front]
    targets += [target("prefill", text) for text in options.prefill]
    targets += [target("decode", text) for text in options.decode]
    if any(one.url is None for one in targets):
        raise UsageError("the canary needs running engines: http://host:port")
    if options.seed is not None and not options.seed.strip():
        raise UsageError("--seed must not be empty")
    secret = token(options)
    access = Access(
        timeout=options.timeout,
        token=Secret(secret) if secret is not None else None,
        ca_file=Path(options.ca_file) if options.ca_file is not None else None,
    )
    say(WARNING, options.quiet)
    seed = options.seed or secrets.token_hex(8)
    state, way, made, reason = asyncio.run(_fly(options, access, seed, targets))
    results = [one.result for one in made] if reason is None else [Result("limits", "undecided", reason)]
    outcome = verdict(results)
    code = exit_code(outcome, options.unknown)
    limits = state.limits if state is not None else None
    if options.format == "json":
        report = document(
            "canary",
            outcome,
            code,
            results,
            {
                "seed": seed,
                "api": way.api if way is not None else None,
                "counted_by": way.counted if way is not None else None,
                "limits": _limits_document(limits),
                "requests": [_request_document(one, options.show_text) for one in made],
            },
        )
    else:
        head = [f"  {options.url}  seed {seed}" + (f"  {way.api}, counted by {way.counted}" if way else "")]
        if limits is not None:
            head.append(f"  first refused length {limits.limit:,}  context {limits.context:,}")
        tail = _texts(made) if options.show_text else []
        report = terminal(
            "canary",
            outcome,
            code,
            results,
            head=head,
            tail=tail,
            colour=wants_colour(options.output),
            width=terminal_width(options.output),
        )
    with document_stream(options.output) as stream:
        stream.write(report)
    return code


async def _fly(
    options: argparse.Namespace, access: Access, seed: str, targets: list[Target]
) -> tuple[Run | None, Way | None, list[Made], str | None]:
    from auditor.live.canary import find_way, plan, plants_for, probe
    from auditor.live.http import session
    from auditor.live.prompts import Run
    from auditor.live.render import say
    from auditor.live.targets import observe
    from auditor.model.records import replace

    seen = await observe(targets, replace(access, timeout=min(access.timeout, 30.0)))
    limits, reason = _limits(options, seen)
    if limits is None:
        return None, None, [], reason
    place = _place(options, seen)
    if place is None:
        return None, None, [], "no model name: /v1/models does not answer; name it with --model"
    state = Run(seed, place, limits, lambda text: say(text, options.quiet))
    apis: tuple[Api, ...] = ("completions", "generate", "chat") if options.api == "auto" else (options.api,)
    count = options.plants or plants_for(limits, MAX_PLANTS)
    probes = plan(limits, count, options.rounds)
    total = sum(one.length for one in probes)
    say(f"{len(probes)} prompts, {total:,} prompt tokens to {place.front}", options.quiet)
    async with session(access) as open_session:
        way, first = await find_way(open_session, state, apis)
        made = [first]
        if way is not None:
            for one in probes:
                made.append(await probe(open_session, state, way, one))
    return state, way, made, None


def _limits(options: argparse.Namespace, seen: tuple[Observation, ...]) -> tuple[Limits | None, str | None]:
    from auditor.live.prompts import Limits
    from auditor.live.server_info import context_of_models, read_worker

    workers = [
        read_worker(one.target.text, one.target.role, one.documents)
        for one in seen
        if one.documents.server_info is not None
    ]
    missing = [one.target.text for one in seen[1:] if one.documents.server_info is None]
    if options.limit is None and missing:
        return None, f"{missing[0]}: {'; '.join(next(one.problems for one in seen if one.target.text == missing[0]))}"
    known = [worker.limit for worker in workers if worker.limit is not None]
    limit = options.limit or min(known, default=None)
    contexts = [worker.context for worker in workers if worker.context is not None]
    context = options.context_length or min(contexts, default=None) or context_of_models(seen[0].documents.models)
    if limit is None:
        problems = "; ".join(seen[0].problems)
        text = "the limit is unknown: name workers with --prefill and --decode, or the length with --limit"
        return None, f"{text} ({problems})" if problems else text
    if context is None:
        return None, "the context length is unknown: name it with --context-length"
    if limit >= context:
        raise UsageError(f"--limit {limit} is not below the context length {context}")
    holders = [worker for worker in workers if worker.role == "decode"] or workers
    pools = [worker.capacity.low for worker in holders if worker.capacity.low is not None]
    return Limits(limit, context, options.edge_limit, max(pools, default=None)), None


def _place(options: argparse.Namespace, seen: tuple[Observation, ...]) -> Place | None:
    from auditor.live.prompts import Place
    from auditor.live.server_info import model_ids

    model = options.model
    for one in seen:
        names = model_ids(one.documents.models)
        if model is None and names:
            model = names[0]
    if model is None:
        return None
    addresses = tuple(dict.fromkeys(one.target.url for one in seen if one.target.url is not None))
    return Place(addresses[0], model, addresses)


def _limits_document(limits: Limits | None) -> JsonValue:
    if limits is None:
        return None
    return {
        "first_refused_tokens": limits.limit,
        "context_tokens": limits.context,
        "edge_limit_tokens": limits.edge,
        "decode_pool_tokens": limits.pool,
    }


def _request_document(made: Made, show_text: bool) -> JsonValue:
    document: dict[str, JsonValue] = {
        "name": made.probe.name,
        "kind": made.probe.kind,
        "length": made.probe.length,
        "http_status": made.reply.status,
        "prompt_tokens": made.reply.prompt_tokens,
        "sha256": made.reply.digest,
        "status": made.result.status,
    }
    if show_text:
        document["text"] = made.reply.text[:TEXT_SHOWN]
    return document


def _texts(made: list[Made]) -> list[str]:
    from auditor.live.render import printable

    return [f"  {one.probe.name}: {printable(one.reply.text[:TEXT_SHOWN])!r}" for one in made if one.reply.text]
