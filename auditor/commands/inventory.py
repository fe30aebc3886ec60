"""`auditor inventory`: the facts alone, each with its verdict."""

from __future__ import annotations

import argparse
import json
from typing import TextIO

from auditor.commands.common import add_output, add_paths, config_of, document_stream, jobs_of
from auditor.model.findings import JsonValue
from auditor.visible import visible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `inventory`."""
    add_paths(parser)
    add_output(parser, ("terminal", "json"))


def run(options: argparse.Namespace) -> int:
    """List the facts; always 0 unless the call is wrong or a reader failed."""
    from auditor.report.inventory import fact_json
    from auditor.scan import ScanRequest, all_facts, chosen_rules, gather

    request = ScanRequest(tuple(options.paths) or (".",), config_of(options), jobs_of(options))
    facts, _, problems, _, _ = gather(request, chosen_rules(request))
    entries = [entry for entry in (fact_json(fact) for fact in all_facts(facts)) if entry is not None]
    unread: list[JsonValue] = [
        {"path": problem.path, "reason": problem.reason, "kind": problem.kind} for problem in problems
    ]
    with document_stream(options.output) as stream:
        if options.format == "json":
            json.dump({"schema_version": 1, "facts": entries, "unread": unread}, stream, indent=2, ensure_ascii=True)
            stream.write("\n")
        else:
            _lines(entries, unread, stream, options.quiet)
    return 2 if any(problem.kind == "internal" for problem in problems) else 0


def _lines(entries: list[dict[str, JsonValue]], unread: list[JsonValue], stream: TextIO, quiet: bool) -> None:
    for entry in entries:
        place = f"{entry['path']}:{entry['line']}:{entry['column']}"
        stream.write(visible(f"{place}: {_words(entry)}") + "\n")
    if unread and not quiet:
        stream.write("\n")
        for item in unread:
            if isinstance(item, dict):
                stream.write(visible(f"not read: {item['path']}: {item['reason']}") + "\n")
    stream.write(f"{len(entries)} fact{'s' if len(entries) != 1 else ''}\n")


def _words(entry: dict[str, JsonValue]) -> str:
    if entry["kind"] == "launch":
        flags = entry["flags"] if isinstance(entry["flags"], dict) else {}
        words = " ".join(f"{name}={_plain(value)}" for name, value in flags.items())
        return f"launch {entry['entrypoint']} ({entry['role']}) {words}".rstrip()
    if entry["kind"] == "image":
        tag = f":{_plain(entry['tag'])}" if entry["tag"] is not None else ""
        subject = f"image {entry['image']}{tag}" + (f"@{entry['digest']}" if entry["digest"] else "")
    else:
        stated = entry["specifier"] or (f"=={_plain(entry['version'])}" if entry["version"] else "")
        subject = f"package {entry['name']}{_plain(stated)}"
    reason = f" ({entry['reason']})" if entry["reason"] else ""
    return f"{subject}: {entry['verdict']}{reason}"


def _plain(value: JsonValue) -> str:
    return str(value.get("unresolved")) if isinstance(value, dict) else str(value)
