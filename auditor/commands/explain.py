"""`auditor explain RULE`: why it matters, what to do, an exposed and a safe example."""

from __future__ import annotations

import argparse

from auditor.commands.common import document_stream
from auditor.errors import UsageError
from auditor.model.rules import Example, Rule
from auditor.nearest import hint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `explain`."""
    parser.add_argument("rule", metavar="RULE", help="a rule id; `auditor rules` lists them")
    parser.add_argument("--output", metavar="FILE", help="write there instead of standard output")


def run(options: argparse.Namespace) -> int:
    """Print one rule."""
    from auditor.rulebook import load_rules

    rules = {rule.id: rule for rule in load_rules()}
    if options.rule not in rules:
        near = hint(options.rule, rules, "`auditor rules` lists them")
        raise UsageError(f"there is no rule `{options.rule}`; {near}")
    with document_stream(options.output) as stream:
        stream.write(text_of(rules[options.rule]))
    return 0


def text_of(rule: Rule) -> str:
    """The whole explanation as plain text."""
    levels = ", ".join(f"{outcome} is {level}" for outcome, level in rule.levels.items())
    parts = [f"{rule.id}: {rule.title}", f"{rule.family} rule, since {rule.since}; {levels}", rule.why]
    parts += ["What to do", rule.remedy]
    for heading, examples in (("Exposed", rule.bad), ("Safe", rule.good)):
        for example in examples:
            parts.append(f"{heading}: {example.name}")
            parts.append(_files(example))
            parts.extend(f"    reported: {expect.outcome}, on `{expect.at}`" for expect in example.expect)
    parts += [f"Measured: {rule.measured}"] if rule.measured else []
    parts += _words(rule)
    parts.append(
        f"To keep a place that you have judged: a comment on its line or alone on the line above,\n"
        f"    # auditor: ignore[{rule.id}] the reason, in words"
    )
    parts += [f"{reference.title}: {reference.url}" for reference in rule.references]
    return "\n\n".join(parts) + "\n"


def _words(rule: Rule) -> list[str]:
    """The lists of the rule, where it has several: what a team adds its own words to."""
    from textwrap import fill

    from auditor.rule_params import lists_of

    lists = list(lists_of(rule.params))
    if len(lists) < 2:
        return []
    head = f"Words, which [tool.auditor.rules.{rule.id}] changes: `{lists[0][0]} = {{add = [...], remove = [...]}}`"
    return [
        head,
        "\n".join(
            fill(f"{name}: {', '.join(words)}", 100, initial_indent="    ", subsequent_indent="        ")
            for name, words in lists
        ),
    ]


def _files(example: Example) -> str:
    blocks = []
    for path, content in example.files.items():
        body = "\n".join(f"    | {line}" for line in content.rstrip("\n").split("\n"))
        blocks.append(f"    {path}\n{body}")
    return "\n".join(blocks)
