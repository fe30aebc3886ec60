"""The JSON document of a scan, as the contract fixes it: sorted, stable, one object."""

from __future__ import annotations

import json
from typing import TextIO

from auditor import __version__
from auditor.checklist import checklist, checklist_json
from auditor.model.facts import Related
from auditor.model.findings import LEVELS, Finding, JsonValue, ScanResult
from auditor.model.spans import Span
from auditor.report import ReportOptions

SCHEMA_VERSION = 1


def write(result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
    """Write the document and a final line end."""
    json.dump(document(result), stream, indent=2, ensure_ascii=True)
    stream.write("\n")


def document(result: ScanResult) -> dict[str, JsonValue]:
    """The whole document as plain values."""
    counts: dict[str, JsonValue] = {level: sum(finding.level == level for finding in result.active) for level in LEVELS}
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "auditor", "version": __version__},
        "root": ".",
        "findings": [finding_json(finding) for finding in result.findings],
        "unread": [unread_json(problem.path, problem.reason, problem.kind) for problem in result.problems],
        "checklist": checklist_json(checklist(result)),
        "summary": {
            "files": result.stats.files,
            "read": result.stats.read,
            "findings": counts,
            "suppressed": len(result.findings) - len(result.active),
            "notes": list(result.stats.notes),
        },
    }


def unread_json(path: str, reason: str, kind: str) -> dict[str, JsonValue]:
    """One entry of `unread`."""
    return {"path": path, "reason": reason, "kind": kind}


def place(span: Span) -> dict[str, JsonValue]:
    """Path, line, column and their ends, all from 1."""
    return {
        "path": span.path,
        "line": span.start.line,
        "column": span.start.column,
        "end_line": span.end.line,
        "end_column": span.end.column,
    }


def finding_json(finding: Finding) -> dict[str, JsonValue]:
    """One finding."""
    suppressed = finding.suppressed
    return {
        "rule": finding.rule,
        "level": finding.level,
        "confidence": finding.confidence,
        "message": finding.message,
        **place(finding.span),
        "fingerprint": finding.fingerprint,
        "remedy": finding.remedy,
        "related": [related_json(related) for related in finding.related],
        "flow": [related_json(related) for related in finding.flow],
        "properties": dict(finding.properties),
        "edits": [{**place(edit.span), "text": edit.text} for edit in finding.edits],
        "suppressed": {"kind": suppressed.kind, "reason": suppressed.reason} if suppressed else None,
    }


def related_json(related: Related) -> dict[str, JsonValue]:
    """One related place."""
    return {**place(related.span), "message": related.message}
