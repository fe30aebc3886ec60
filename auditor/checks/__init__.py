"""The checks: comparisons in code, given their parameters by rule files. The tuple below is the whole list."""

from __future__ import annotations

from auditor.checks import (
    auto_truncation,
    context_against_pool,
    edge_limit,
    image_version,
    known_advisory,
    launch_flags,
    package_version,
    readiness,
    role_agreement,
    vendored_source,
)
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
    edge_limit.CHECK,
    launch_flags.OVERRIDE,
    launch_flags.CHECKSUM,
    auto_truncation.CHECK,
    role_agreement.CHECK,
    role_agreement.SKEW,
    readiness.CHECK,
    readiness.GATE,
    *CODE_CHECKS,
    UNREAD_EVIDENCE,
    UNUSED_IGNORE,
)
