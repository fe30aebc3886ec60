"""The baseline: findings that were there before, kept as one line each so that two branches' files merge as text.

A line is a JSON object with the fingerprint and, for the reader, rule, path, subject and scope. The fingerprint
decides: what a finding is, not its line and not its version. One entry absorbs one finding, because no two findings of
a run share one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from auditor.errors import ConfigError, OutputError
from auditor.model.findings import Finding, Suppression
from auditor.model.records import dataclass, replace
from auditor.own_documents import BASELINE_HEAD
from auditor.whole_file import whole_file

VERSION = 1
_VERSION = re.compile(r"# auditor baseline, version (\d{1,9})\b")
_LONE = re.compile("[\\ud800-\\udfff]")
_MERGE = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
HEAD = BASELINE_HEAD + "; one finding a line, sorted; merge as text, remove lines by hand"


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding of before."""

    fingerprint: str
    rule: str
    path: str
    line: int


def read_baseline(path: str) -> list[Entry]:
    """The entries of a file. Raises `ConfigError` with path and line when it cannot be read or understood."""
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the baseline `{path}`: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the baseline `{path}`: not UTF-8 text") from None
    entries = []
    for number, line in enumerate(lines, 1):
        version = _VERSION.match(line)
        if version is not None and int(version[1]) > VERSION:
            raise ConfigError(
                f"{path}:{number}: a baseline of version {version[1]}, and this auditor reads version {VERSION}; "
                "upgrade it, or write the baseline anew with --write-baseline"
            )
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(_MERGE):
            raise ConfigError(
                f"{path}:{number}: a merge that was not finished; keep the lines of both sides and remove the marks"
            )
        try:
            item = json.loads(line)
            entries.append(Entry(str(item["fingerprint"]), str(item["rule"]), str(item["path"]), number))
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{path}:{number}: not an entry of a baseline; write it anew with --write-baseline"
            ) from None
    return entries


def apply_baseline(
    findings: Sequence[Finding], entries: Iterable[Entry], name: str
) -> tuple[list[Finding], list[Entry]]:
    """The findings, those of the baseline marked, and the entries that match none."""
    known = {entry.fingerprint: entry for entry in entries}
    marked = []
    for finding in findings:
        entry = known.pop(finding.fingerprint, None)
        if entry is not None and finding.suppressed is None:
            finding = replace(finding, suppressed=Suppression("baseline", f"in {name}, line {entry.line}"))
        marked.append(finding)
    return marked, sorted(known.values(), key=lambda entry: entry.line)


def _entry(item: dict[str, str]) -> str:
    """One line; escaped where a file name is not UTF-8 and the file could not hold it otherwise."""
    line = json.dumps(item, ensure_ascii=False)
    return line if _LONE.search(line) is None else json.dumps(item, ensure_ascii=True)


def write_baseline(path: str, findings: Iterable[Finding]) -> int:
    """Write the findings that count, or that an older baseline holds, whole or not at all. Returns their number; raises
    `OutputError`."""
    kept = [finding for finding in findings if finding.suppressed is None or finding.suppressed.kind == "baseline"]
    lines = sorted(
        _entry(
            {
                "path": finding.prefix + finding.span.path,
                "rule": finding.rule,
                "subject": finding.identity[1],
                "scope": finding.identity[2],
                "fingerprint": finding.fingerprint,
            }
        )
        for finding in kept
    )
    try:
        with whole_file(path) as stream:
            stream.write("\n".join([HEAD, *lines]) + "\n")
    except OSError as error:
        raise OutputError(f"cannot write the baseline `{path}`: {error.strerror}") from None
    return len(lines)
