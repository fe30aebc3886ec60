"""`auditor rules`: the catalogue."""

from __future__ import annotations

import argparse
import json

from auditor.commands.common import add_output, document_stream
from auditor.model.findings import JsonValue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rules`."""
    add_output(parser, ("terminal", "json"))


def run(options: argparse.Namespace) -> int:
    """List all rules with their levels."""
    from auditor.rulebook import load_rules

    rules = load_rules()
    with document_stream(options.output) as stream:
        if options.format == "json":
            entries: list[JsonValue] = [
                {
                    "id": rule.id,
                    "family": rule.family,
                    "title": rule.title,
                    "levels": dict(rule.levels),
                    "confidence": rule.confidence,
                    "since": rule.since,
                }
                for rule in rules
            ]
            json.dump({"schema_version": 1, "rules": entries}, stream, indent=2)
            stream.write("\n")
            return 0
        family = ""
        for rule in rules:
            if rule.family != family:
                family = rule.family
                stream.write(f"{family}\n")
            levels = ", ".join(f"{outcome}: {level}" for outcome, level in rule.levels.items())
            stream.write(f"  {rule.id:<32} {rule.title}\n  {'':<32} {levels}\n")
    return 0
