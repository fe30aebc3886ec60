"""Distributions that bring the engine along under a number of their own (`ai-dynamo[sglang]`), judged by the release
tables that vendors publish (`images.yaml`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from auditor.launch.versions import FIXED, Verdict, parse_version, specifier_sets, version_verdict
from auditor.model.facts import PackageReference, Unresolved


@lru_cache(maxsize=1)
def _bundles() -> dict[str, dict[str, Any]]:
    from auditor.launch.images import vendors

    return {vendor["package"]: vendor for vendor in vendors() if "package" in vendor}


NAMES = frozenset({"ai-dynamo"})  # the `package` keys of images.yaml, held equal by a test


def is_bundle(fact: PackageReference) -> bool:
    """Whether the reference is to a distribution that can bring the engine along."""
    return fact.name in NAMES


def carries_engine(fact: PackageReference) -> bool:
    """Whether the reference installs the engine: itself, or a bundle with the extra that asks for it."""
    return not is_bundle(fact) or _bundles()[fact.name]["extra"] in fact.extras


def bundle_verdict(fact: PackageReference, fixed: str = FIXED) -> Verdict:
    """The verdict by the vendor's table; a version without a row is unverifiable, and so is a range over such rows."""
    vendor = _bundles()[fact.name]
    for value in (fact.version, fact.specifier):
        if isinstance(value, Unresolved):
            return Verdict("unverifiable", "variable", decide="the value of the variable")
    decide = f"the sglang version that {vendor['name']} brings: run `pip show sglang`"
    if fact.version is not None:
        version = str(fact.version)
        engine = vendor["map"].get(version)
        if engine:
            return Verdict(version_verdict(engine, fixed).verdict, version=engine)
        parsed, oldest = parse_version(version), parse_version(vendor["below"]["before"])
        if parsed is not None and oldest is not None and parsed < oldest:
            return Verdict("vulnerable", version=vendor["below"]["engine_before"])
        return Verdict("unverifiable", "unknown-tag", decide=decide)
    sets = specifier_sets(str(fact.specifier or ""))
    admitted = [vendor["map"][version] for one in sets or () for version in one.filter(vendor["map"])]
    affected = [engine for engine in admitted if version_verdict(engine, fixed).verdict == "vulnerable"]
    if affected:
        return Verdict("admits-vulnerable", None if fact.specifier else "no-version", worst=affected[0])
    return Verdict("unverifiable", "unknown-tag", decide=decide)
