"""The checks: comparisons in code, given their parameters by rule files. The tuple below is the whole list."""

from __future__ import annotations

from auditor.checks import context_against_pool, image_version, known_advisory, package_version, vendored_source
from auditor.checks.base import AnyCheck, EngineCheck
from auditor.checks.code_checks import CODE_CHECKS

UNREAD_EVIDENCE = EngineCheck("unread-evidence", ("unread",), ("reason",))
UNUSED_IGNORE = EngineCheck("unused-ignore", ("unused", "expired", "malformed"), ("rules", "reason", "until"))

CHECKS: tuple[AnyCheck, ...] = (
    package_version.CHECK,
    image_version.CHECK,
    vendored_source.CHECK,
    known_advisory.CHECK,
    context_against_pool.CHECK,
    *CODE_CHECKS,
    UNREAD_EVIDENCE,
    UNUSED_IGNORE,
)
