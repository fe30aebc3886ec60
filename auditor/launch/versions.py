"""Affected sets: the verdict on a version, a specifier, or a source checkout of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from auditor.model.facts import PackageReference, Unresolved

VerdictWord = Literal["vulnerable", "admits-vulnerable", "safe", "unverifiable"]
FIXED = "0.5.22"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reference can mean. `reason` says why it is unverifiable, `version` is the single version that it means,
    `worst` the oldest affected release that a range admits, `decide` what would decide an unverifiable one."""

    verdict: VerdictWord
    reason: str | None = None
    version: str | None = None
    worst: str | None = None
    decide: str | None = None


def version_verdict(version: str, fixed: str = FIXED) -> Verdict:
    """The verdict on one version by PEP 440 order."""
    from packaging.version import InvalidVersion, Version

    try:
        affected = Version(version) < Version(fixed)
    except InvalidVersion:
        return Verdict("unverifiable", "unknown-tag", decide="a version that PEP 440 can order")
    return Verdict("vulnerable" if affected else "safe", version=version)


def package_verdict(fact: PackageReference, fixed: str = FIXED) -> Verdict:
    """The verdict on a package reference: every version that it can mean."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if isinstance(fact.version, str):
        return version_verdict(fact.version, fixed)
    if isinstance(fact.version, Unresolved) or isinstance(fact.specifier, Unresolved):
        return Verdict("unverifiable", "variable", decide="the value of the variable")
    if fact.kind == "vcs":
        return Verdict("unverifiable", "branch", decide="the commit that was built")
    if not fact.specifier:
        return Verdict("admits-vulnerable", "no-version")
    try:
        specifier = SpecifierSet(str(fact.specifier))
    except InvalidSpecifier:
        return Verdict("unverifiable", "no-version", decide="a specifier that PEP 440 can read")
    return Verdict("safe" if not any(specifier.filter(["0.4.0", "0.5.10", "0.5.21"])) else "admits-vulnerable")
