"""Affected sets: the verdict on a version, a specifier, or a source checkout of the engine.

A range is the set of published releases that it admits (`releases.json`, with the day it was read), never its lower
bound. Two kinds of versions count although the catalogue does not hold them: a bound that the specifier names itself,
and the next post release of an affected one, which a specifier such as `>=0.5.21,!=0.5.21` would install the day it
appears. What is newer than the catalogue is judged by number.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from auditor.model.facts import PackageReference, Unresolved
from auditor.model.records import dataclass, replace

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

VerdictWord = Literal["vulnerable", "admits-vulnerable", "safe", "unverifiable"]
FIXED = "0.5.22"
UPSTREAM = re.compile(r"[/:]sgl-project/sglang(?:\.git)?/?$", re.IGNORECASE)
_TAG = re.compile(r"(?:refs/tags/)?v?(\d+(?:\.\d+)+(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)$", re.IGNORECASE)
_TAG_OF_FORK = re.compile(r"(?:refs/tags/)?v?(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?(?:\.post\d+)?)[-+._][A-Za-z0-9.+_-]+$")
_COMMIT = re.compile(r"[0-9a-f]{7,64}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reference can mean. `reason` says why it is unverifiable, `version` is the single version that it means,
    `worst` the oldest affected release that a range admits, `decide` what would decide an unverifiable one; `whole`
    says of a range that every release that it admits is affected."""

    verdict: VerdictWord
    reason: str | None = None
    version: str | None = None
    worst: str | None = None
    decide: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Releases:
    """The published versions of one package, oldest first; the day they were read; what each stretch of them does."""

    read_on: str
    versions: tuple[str, ...]
    guards: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Releases]:
    text = (Path(__file__).resolve().parent / "releases.json").read_text(encoding="utf-8")
    return {
        name: Releases(
            entry["read_on"],
            tuple(entry["versions"]),
            tuple((guard["from"], guard["says"]) for guard in entry.get("guards", ())),
        )
        for name, entry in json.loads(text).items()
    }


def releases(package: str) -> Releases | None:
    """The catalogue of one package, `None` where there is none."""
    return _catalogue().get(package)


def guard_story(version: str, package: str = "sglang") -> str:
    """What this version does with a rejected request, in words that follow its name in a sentence."""
    known = releases(package)
    parsed = parse_version(version)
    if known is None or parsed is None:
        return "is affected"
    if parsed >= _version(FIXED):
        return "is at or above the floor"
    return next((says for start, says in reversed(known.guards) if parsed >= _version(start)), "is affected")


def _version(text: str) -> Version:
    from packaging.version import Version

    return Version(text)


def parse_version(text: str) -> Version | None:
    """The version by PEP 440, or `None`."""
    from packaging.version import Version

    try:
        return Version(text)
    except ValueError:  # no version, or a number of more digits than Python converts
        return None


def version_verdict(version: str, fixed: str = FIXED) -> Verdict:
    """The verdict on one version by PEP 440 order: pre and dev releases before, post and local ones with or after."""
    parsed = parse_version(version)
    if parsed is None:
        return Verdict("unverifiable", "unknown-tag", decide="a version that PEP 440 can order")
    return Verdict("vulnerable" if parsed < _version(fixed) else "safe", version=version)


def specifier_verdict(specifier: str, fixed: str = FIXED, package: str = "sglang") -> Verdict:
    """The verdict on a specifier: PEP 440, or the operators of Poetry and conda (`^`, `~`, `*`, `||`)."""
    return _specifier_verdict(specifier.strip(), fixed, package)


@lru_cache(maxsize=512)
def _specifier_verdict(specifier: str, fixed: str, package: str) -> Verdict:
    sets = specifier_sets(specifier)
    if sets is None:
        return Verdict("unverifiable", "no-version", decide="a specifier that PEP 440 can read")
    known = releases(package)
    published = [_version(text) for text in known.versions] if known else []
    floor = _version(fixed)
    admitted: set[Version] = set()
    for one in sets:
        admitted.update(one.filter(published))
    affected = sorted(version for version in admitted if version < floor)
    if affected:
        whole = len(affected) == len(admitted) and not _reaches(sets, floor)
        single = str(affected[0]) if whole and len(affected) == 1 and _exact(sets) else None
        if single:
            return Verdict("vulnerable", version=single)
        return Verdict("admits-vulnerable", worst=str(affected[0]), whole=whole)
    possible = sorted(
        version
        for version in {*_named(sets), *_next_posts(published, floor)}
        if version < floor and any(one.contains(version, prereleases=True) for one in sets)
    )
    if possible:
        return Verdict("admits-vulnerable", worst=str(possible[0]), whole=not admitted and not _reaches(sets, floor))
    return Verdict("safe")


def _reaches(sets: list[SpecifierSet], floor: Version) -> bool:
    """Whether some version at or above the floor fits: the floor, its next numbers, or one far ahead."""
    parts = [*floor.release, 0, 0, 0][:3]
    ahead = [str(floor), f"{floor}.post1", f"{parts[0]}.{parts[1]}.{parts[2] + 1}", f"{parts[0]}.{parts[1] + 1}"]
    ahead += [
        f"{parts[0] + 1}",
        f"{parts[0]}.{parts[1]}.{parts[2] + 900}",
        f"{parts[0]}.{parts[1] + 900}",
        "900",
        "1!0",
    ]
    return any(one.contains(_version(text), prereleases=True) for one in sets for text in ahead)


def _exact(sets: list[SpecifierSet]) -> bool:
    return all(any(clause.operator in ("==", "===") and "*" not in clause.version for clause in one) for one in sets)


def _named(sets: list[SpecifierSet]) -> set[Version]:
    found = set()
    for one in sets:
        for clause in one:
            version = parse_version(clause.version.removesuffix(".*"))
            if version is not None and clause.operator in (">=", "<=", "~=", "==", "==="):
                found.add(version)
    return found


def _next_posts(published: list[Version], floor: Version) -> set[Version]:
    last: dict[str, int] = {}
    for version in published:
        if version < floor and not version.is_prerelease:
            last[version.base_version] = max(last.get(version.base_version, 0), version.post or 0)
    return {_version(f"{base}.post{number + 1}") for base, number in last.items()}


def specifier_sets(text: str) -> list[SpecifierSet] | None:
    """The specifier as a union of PEP 440 sets; `None` where it is none. Understands besides PEP 440: `^1.2`, `~1.2`,
    `*`, `1.2.*`, a bare version, clauses apart by blanks, `||` and `|` for a union, `>=1.2.*`, `>=1.2+local`."""
    if re.search(r"\d{300}", text):
        return None  # no version has such a number, and Python refuses to convert it
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    sets = []
    for alternative in re.split(r"\|\|?", text.strip().strip("()")):
        clauses: list[str] = []
        joined = re.sub(r"(===|==|~=|!=|<=|>=|<|>|\^|~|=)\s+", r"\1", alternative)
        for clause in re.split(r"[,\s]+", joined.strip()):
            if clause:
                clauses.extend(_clauses(clause))
        try:
            sets.append(SpecifierSet(",".join(clauses)))
        except InvalidSpecifier:
            return None
    return sets


def _clauses(clause: str) -> list[str]:
    found = re.match(r"(===|==|~=|!=|<=|>=|<|>|\^|~|=)?(.*)$", clause)
    operator, version = (found.group(1) or "", found.group(2)) if found else ("", clause)
    if version in ("*", "") and operator in ("", "=", "=="):
        return []
    if operator in ("^", "~"):
        return _caret(version) if operator == "^" else _tilde(version)
    if operator in ("", "="):
        return [f"=={version}"]
    if operator in (">=", "<=", ">", "<", "~="):
        version = version.removesuffix(".*").split("+", 1)[0]
        if operator == "~=" and "." not in version:
            return _tilde(version)
    return [operator + version]


def _numbers(version: str) -> list[int]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return [int(part) for part in found.group(1).split(".")] if found else []


def _caret(version: str) -> list[str]:
    numbers = _numbers(version)
    if not numbers:
        return ["^" + version]
    index = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
    above = [*numbers[:index], numbers[index] + 1]
    return [f">={version}", "<" + ".".join(map(str, above))]


def _tilde(version: str) -> list[str]:
    numbers = _numbers(version)
    if not numbers:
        return ["~" + version]
    kept = numbers[: max(1, min(2, len(numbers)))]
    above = [*kept[:-1], kept[-1] + 1]
    return [f">={version}", "<" + ".".join(map(str, above))]


def vcs_verdict(ref: str | None, url: str | None, fixed: str = FIXED) -> Verdict:
    """The verdict on a source checkout: a release tag is its version, a branch or a commit is unverifiable."""
    fork = bool(url) and not UPSTREAM.search(url or "")
    tag = _TAG.match(ref or "") or (_TAG_OF_FORK.match(ref or "") if fork else None)
    if tag and "." in tag.group(1):
        return version_verdict(tag.group(1), fixed)
    if ref and _COMMIT.match(ref) and re.search(r"\d", ref):
        return Verdict("unverifiable", "commit", decide="the release tag that contains the commit (`git describe`)")
    if fork:
        return Verdict("unverifiable", "fork", decide="the guards in the fork's code (`auditor scan` of its checkout)")
    shown = f"`{ref}`" if ref else "the default branch"
    return Verdict("unverifiable", "branch", decide=f"a release tag in place of {shown}")


def package_verdict(fact: PackageReference, fixed: str = FIXED, package: str = "sglang") -> Verdict:
    """The verdict on a package reference: every version that it can mean."""
    from auditor.launch.bundles import bundle_verdict, is_bundle

    if is_bundle(fact):
        return bundle_verdict(fact, fixed)
    if isinstance(fact.version, str):
        verdict = version_verdict(fact.version, fixed)
        if verdict.reason is None or fact.specifier is None:
            return verdict
    for value in (fact.version, fact.specifier, fact.vcs_ref):
        if isinstance(value, Unresolved):
            names = ", ".join(f"`{name}`" for name in value.names)
            return Verdict("unverifiable", "variable", decide=f"the value of {names}" if names else "its value")
    if fact.kind == "vcs":
        return vcs_verdict(str(fact.vcs_ref) if fact.vcs_ref is not None else None, fact.vcs_url, fixed)
    if fact.kind in ("file", "source", "locked") and not fact.specifier:
        return Verdict("unverifiable", "no-version", decide="the version of the file that is installed")
    if not fact.specifier or fact.specifier == "*":
        verdict = specifier_verdict("", fixed, package)
        return replace(verdict, reason="no-version") if verdict.verdict == "admits-vulnerable" else verdict
    return specifier_verdict(str(fact.specifier), fixed, package)
