"""docs/rules.md and docs/formats.md from rules and readers: `python -m auditor.docs` writes, tests check."""

from __future__ import annotations

from pathlib import Path

from auditor.formats import formats_markdown
from auditor.model.rules import Example, Rule
from auditor.rulebook import load_rules

HEAD = """# Rules

Made from the rule files by `python -m auditor.docs`; edit those. Ids are permanent. Levels: `error` is exposed on
evidence in the tree, `warning` exposed on an admissible reading, `note` undecidable from the tree. Under
`--profile strict` notes become warnings, warnings errors, and what is off comes on.
"""


def rules_markdown() -> str:
    """The whole page."""
    rules = load_rules()
    parts = [HEAD]
    parts.append(
        "| rule | family | what it says | default levels |\n| --- | --- | --- | --- |\n" + "\n".join(map(_row, rules))
    )
    parts.extend(_section(rule) for rule in rules)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _row(rule: Rule) -> str:
    levels = ", ".join(f"{outcome} {level}" for outcome, level in rule.levels.items())
    return f"| [`{rule.id}`](#{rule.id}) | {rule.family} | {rule.title} | {levels} |"


def _section(rule: Rule) -> str:
    parts = [f"## {rule.id}", f"**{rule.title}.** Since {rule.since}; confidence {rule.confidence}.", rule.why]
    parts.append("| outcome | default | strict | message |\n| --- | --- | --- | --- |\n" + "\n".join(_outcomes(rule)))
    if rule.measured:
        parts.append(f"Measured: {rule.measured}")
    parts.append(f"**What to do.** {rule.remedy}")
    for word, examples in (("Exposed", rule.bad), ("Safe", rule.good)):
        for example in examples:
            parts.append(f"{word}: {example.name}")
            parts.extend(_files(example))
    if rule.references:
        parts.append("\n".join(f"- [{reference.title}]({reference.url})" for reference in rule.references))
    return "\n\n".join(parts)


def _outcomes(rule: Rule) -> list[str]:
    raised = {"note": "warning", "warning": "error", "error": "error", "off": "off"}
    return [
        f"| `{outcome}` | {level} | {rule.strict.get(outcome) or raised[level]} | {rule.messages[outcome]} |".replace(
            "\n", " "
        )
        for outcome, level in rule.levels.items()
    ]


def _files(example: Example) -> list[str]:
    blocks = []
    for path, content in example.files.items():
        fence = "```"
        while fence in content:
            fence += "`"
        blocks.append(f"`{path}`\n\n{fence}\n{content.rstrip()}\n{fence}")
    return blocks


def write_schema(folder: Path) -> None:
    """The JSON Schema of the configuration, beside the code that reads it."""
    import json

    from auditor.config_reading import schema

    (folder / "config.schema.json").write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_schema(Path(__file__).resolve().parent)
    folder = Path(__file__).resolve().parent.parent / "docs"
    (folder / "rules.md").write_text(rules_markdown(), encoding="utf-8")
    (folder / "formats.md").write_text(formats_markdown(), encoding="utf-8")
