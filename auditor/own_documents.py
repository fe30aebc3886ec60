"""Documents that report on a tree and are no part of it: baselines, reports left in the workspace, SARIF logs.

They quote findings, versions and whole command lines; read as files of the tree they would be reported again.
"""

from __future__ import annotations

import re

BASELINE_HEAD = "# auditor baseline, version 1"
PROBE = 2048  # bytes at the start of a file in which its kind shows

_HEAD = re.compile(
    rb'\A\s*\{\s*"schema_version":\s*\d+,\s*"(?:tool|facts|base)":'  # scan, inventory, diff
    rb'|\A\s*\{(?:\s*"(?:\$schema|version)":\s*"[^"]*",?){0,2}\s*"runs":\s*\['  # SARIF
    rb'|\A\s*\{\s*"\$schema":\s*"[^"]*sarif[^"]*"'
)


def is_report(data: bytes) -> bool:
    """Whether the bytes are a baseline of ours, a JSON document of ours, or a SARIF log."""
    head = data[:PROBE]
    return head.startswith(BASELINE_HEAD.encode()) or _HEAD.match(head) is not None
