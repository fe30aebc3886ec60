"""What the user says about the tree and about the audit: `[tool.auditor]` in pyproject.toml, or auditor.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one audit. `assume` says what the tree does not (`gpu`); `params` overrides rule parameters by
    rule id; empty tuples and mappings stand for "as the tool does by itself"."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    profile: str = "default"
    fail_on: str = "error"
    exclude: tuple[str, ...] = ()
    submodules: bool = False
    assume: Mapping[str, str] = field(default_factory=dict)
