"""The checks: comparisons in code, given their parameters by rule files. The tuple below is the whole list."""

from __future__ import annotations

from auditor.checks.base import AnyCheck

CHECKS: tuple[AnyCheck, ...] = ()
