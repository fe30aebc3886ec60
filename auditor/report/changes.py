"""What changed between two revisions, for a terminal, for a pull request and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import TextIO

from auditor.capacity.of_launch import LaunchPool
from auditor.changes import Change, Changes, Setting
from auditor.model.findings import Finding
from auditor.report.json_document import finding_json, place
from auditor.report.markdown import escaped
from auditor.visible import visible

SCHEMA_VERSION = 1
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def write_terminal(changes: Changes, stream: TextIO) -> None:
    """The comparison as lines for a terminal, whatever stands in the tree."""
    draft = StringIO()
    _write_lines(changes, draft)
    stream.writelines(visible(line) + "\n" for line in draft.getvalue().split("\n")[:-1])


def _write_lines(changes: Changes, stream: TextIO) -> None:
    """One block for each change, what it opens and closes, and the command that runs the gate again."""
    stream.write(f"{changes.base[:12]} -> {changes.head[:12]}\n")
    if _nothing(changes):
        stream.write("nothing that moves the KV pool or the engine's version\n")
        return
    for change in changes.changes:
        start = change.span.start
        stream.write(
            f"\n{_SIGNS[change.state]} {change.span.path}:{start.line}:{start.column} {change.kind} {_title(change)}\n"
        )
        for setting in change.settings:
            stream.write(f"    {setting.name}: {_shift(setting)}\n")
        for line in _outcome(change):
            stream.write(f"    {line}\n")
    for heading, findings in _sections(changes):
        if findings:
            stream.write(f"\n{heading}:\n")
        for finding, why in findings:
            start = finding.span.start
            where = f"{finding.span.path}:{start.line}:{start.column}"
            stream.write(f"  {where} {finding.level} [{finding.rule}] {finding.message}\n")
            if why:
                stream.write(f"    {why}\n")
    commands = gate_commands(changes)
    if commands:
        stream.write("\nA capacity change is a security change. Run the gate again once it is deployed:\n")
        stream.writelines(f"  {command}\n" for command in commands)
    if changes.worse:
        stream.write("\nExposure got worse:\n")
        stream.writelines(f"  {line}\n" for line in changes.worse)
    else:
        stream.write("\nExposure did not get worse.\n")
    for line in changes.unread:
        stream.write(f"not read: {line}\n")


def write_markdown(changes: Changes, stream: TextIO) -> None:
    """The same for the summary of a job or the comment of a pull request."""
    stream.write(f"### KV pool and engine version: `{changes.base[:12]}` to `{changes.head[:12]}`\n\n")
    if _nothing(changes):
        stream.write("Nothing that moves the KV pool or the engine's version.\n")
        return
    stream.write("**Exposure got worse.**\n\n" if changes.worse else "Exposure did not get worse.\n\n")
    stream.writelines(f"- {escaped(line)}\n" for line in changes.worse)
    if changes.worse:
        stream.write("\n")
    if changes.changes:
        stream.write("| | where | what | changed | before | after |\n| --- | --- | --- | --- | --- | --- |\n")
    for change in changes.changes:
        what = f"{change.kind} {_title(change)}"
        moved = "<br>".join(escaped(f"{setting.name}: {_shift(setting)}") for setting in change.settings)
        before, after = _ends(change)
        where = f"`{change.span.path}:{change.span.start.line}`".replace("|", "\\|")
        stream.write(
            f"| {change.state} | {where} | {escaped(what)} | {moved} | {escaped(before)} | {escaped(after)} |\n"
        )
    for heading, findings in _sections(changes):
        if findings:
            stream.write(f"\n**{heading}**\n\n")
        for finding, why in findings:
            where = f"`{finding.span.path}:{finding.span.start.line}`"
            more = f" ({escaped(why)})" if why else ""
            stream.write(f"- {where} {finding.level} `{finding.rule}`: {escaped(finding.message)}{more}\n")
    commands = gate_commands(changes)
    if commands:
        stream.write("\nA capacity change is a security change. Run the gate again once it is deployed:\n\n```\n")
        stream.writelines(f"{command}\n" for command in commands)
        stream.write("```\n")


def _nothing(changes: Changes) -> bool:
    return not any((changes.changes, changes.opened, changes.closed, changes.hidden, changes.uncovered))


def _sections(changes: Changes) -> tuple[tuple[str, list[tuple[Finding, str]]], ...]:
    """The lists of findings under their headings, each finding with what else is to say of it."""
    return (
        ("Opened", [(finding, "") for finding in changes.opened]),
        ("Closed", [(finding, "") for finding in changes.closed]),
        ("Still there, and no longer shown", [(item.finding, item.by) for item in changes.hidden]),
        ("There before, and shown by the new configuration", [(finding, "") for finding in changes.uncovered]),
    )


def write_json(changes: Changes, stream: TextIO) -> None:
    """The whole comparison as one object."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "base": changes.base,
        "head": changes.head,
        "changes": [_change_json(change) for change in changes.changes],
        "opened": [finding_json(finding) for finding in changes.opened],
        "closed": [finding_json(finding) for finding in changes.closed],
        "hidden": [
            {"by": item.by, "excused": item.excused, "finding": finding_json(item.finding)} for item in changes.hidden
        ],
        "uncovered": [finding_json(finding) for finding in changes.uncovered],
        "gate": gate_commands(changes),
        "worse": list(changes.worse),
        "unread": list(changes.unread),
    }
    json.dump(document, stream, indent=2, ensure_ascii=True)
    stream.write("\n")


def gate_commands(changes: Changes) -> list[str]:
    """The commands that read the running workers of what changed, with their ports; hosts are the reader's to fill."""
    moving = [change for change in changes.changes if change.state != "removed"]
    if not moving:
        return []
    launches = [change for change in moving if change.kind == "launch"]
    ports = {
        role: sorted({change.port for change in launches if change.role == role}) for role in ("prefill", "decode")
    }
    commands = []
    if ports["prefill"] or ports["decode"]:
        words = [f"--{role} http://{role.upper()}_HOST:{port}" for role in ports for port in ports[role] or [30000]]
        commands.append("auditor gate " + " ".join(words))
    rest = sorted({change.port for change in launches if change.role not in ports}) or ([] if commands else [30000])
    commands += [f"auditor gate http://HOST:{port}" for port in rest]
    return commands


def _title(change: Change) -> str:
    role = f" ({change.role})" if change.kind == "launch" and change.role in ("prefill", "decode") else ""
    scope = f" in {change.scope}" if change.scope else ""
    return f"{change.subject}{role}{scope}: {change.state}"


def _shift(setting: Setting) -> str:
    before = "not given" if setting.before is None else setting.before or "on"
    after = "not given" if setting.after is None else setting.after or "on"
    return f"{before} -> {after}"


def _outcome(change: Change) -> Iterator[str]:
    before, after = _ends(change)
    if change.kind == "launch":
        if change.state != "added":
            yield f"KV pool before: {before}"
        if change.state != "removed":
            yield f"KV pool {'after' if change.state == 'changed' else 'estimate'}: {after}"
    elif before != after:
        yield f"verdict: {before or 'not there'} -> {after or 'not there'}"


def _ends(change: Change) -> tuple[str, str]:
    if change.kind == "launch":
        return _pool(change.pool_before), _pool(change.pool_after)
    return change.verdict_before or "", change.verdict_after or ""


def _pool(pool: LaunchPool | None) -> str:
    if pool is None:
        return ""
    context = f"context {pool.context:,}" if pool.context is not None else "context not known"
    if pool.estimate is None:
        return f"cannot be estimated ({'; '.join(pool.missing)}); {context}"
    tokens = pool.estimate.tokens
    low, high = int(tokens.low), int(tokens.high)
    size = f"{low:,} tokens" if low == high else f"{low:,} to {high:,} tokens, {int(tokens.expected):,} expected"
    return f"{size}; {context}; {pool.word}"


def _change_json(change: Change) -> dict[str, object]:
    return {
        "kind": change.kind,
        "state": change.state,
        "subject": change.subject,
        "scope": change.scope,
        **place(change.span),
        "settings": [
            {"name": setting.name, "before": setting.before, "after": setting.after} for setting in change.settings
        ],
        "pool_before": _pool_json(change.pool_before),
        "pool_after": _pool_json(change.pool_after),
        "verdict_before": change.verdict_before,
        "verdict_after": change.verdict_after,
        "worse": list(change.worse),
    }


def _pool_json(pool: LaunchPool | None) -> dict[str, object] | None:
    if pool is None:
        return None
    tokens = None
    if pool.estimate is not None:
        tokens = {key: int(getattr(pool.estimate.tokens, key)) for key in ("low", "expected", "high")}
    return {
        "pool_tokens": tokens,
        "context_tokens": pool.context,
        "context_source": pool.context_source,
        "verdict": pool.word,
        "missing": list(pool.missing),
    }
