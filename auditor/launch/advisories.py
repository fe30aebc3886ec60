"""Advisories for the engine beyond the one this audit is about: their ranges and the conditions that launches show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from auditor.launch.versions import parse_version, releases, specifier_sets
from auditor.model.facts import EngineLaunch, Flag, Unresolved
from auditor.model.records import dataclass

LOOPBACK = ("127.", "localhost", "::1", "[::1]")


@dataclass(frozen=True, slots=True)
class Advisory:
    """One advisory. Affected are the releases from `introduced` up to before `fixed`, or up to `last_affected` where no
    fixed release is recorded. `flags` (a flag with the values that arm it) and `env` (names of which one must be set)
    are the part of the condition that a launch can show; both empty: nothing in a tree shows it."""

    id: str
    aliases: tuple[str, ...]
    kind: str
    summary: str
    condition: str
    introduced: str
    fixed: str | None
    last_affected: str | None
    flags: Mapping[str, tuple[str, ...]]
    env: tuple[str, ...]

    @property
    def visible(self) -> bool:
        """Whether a launch can show the condition."""
        return bool(self.flags or self.env)

    def affects(self, version: str) -> bool:
        """Whether a version lies in the range, by PEP 440; post releases of the last affected one count as affected."""
        parsed, first = parse_version(version), parse_version(self.introduced)
        if parsed is None or first is None or parsed < first:
            return False
        fixed = parse_version(self.fixed) if self.fixed else None
        if fixed is not None:
            return parsed < fixed
        last = parse_version(self.last_affected or "0")
        return last is not None and (parsed <= last or parsed.base_version == last.base_version)

    def admitted(self, specifier: str) -> bool:
        """Whether a specifier admits a published release in the range."""
        known, sets = releases("sglang"), specifier_sets(specifier)
        if known is None or sets is None:
            return False
        return any(self.affects(version) for one in sets for version in one.filter(known.versions))

    @property
    def outside(self) -> str:
        """The first published release past the range, in words."""
        if self.fixed:
            return f"fixed in {self.fixed}"
        known = releases("sglang")
        last = parse_version(self.last_affected or "0")
        later = [
            version
            for version in (known.versions if known else ())
            if last is not None and (parsed := parse_version(version)) is not None and parsed > last
            and not parsed.is_prerelease and not self.affects(version)
        ]  # fmt: skip
        if later:
            return f"no fixed release is recorded, {later[0]} is the first outside the recorded range"
        return "no release outside the recorded range is known"

    def armed_by(self, launch: EngineLaunch) -> Flag | None:
        """The flag or variable of the launch that meets the condition; `None` where it is not met in full."""
        met: list[Flag] = []
        for name, values in self.flags.items():
            flag = launch.flags.get(name)
            if flag is None or not any(_fits(flag, value) for value in values):
                return None
            met.append(flag)
        if self.env:
            flag = next((launch.env[name] for name in self.env if name in launch.env), None)
            if flag is None:
                return None
            met.append(flag)
        return met[0] if met else None


def _fits(flag: Flag, value: str) -> bool:
    if isinstance(flag.value, Unresolved):
        return False
    text = str(flag.value).lower()
    return not text.startswith(LOOPBACK) if value == "!loopback" else text == value


@lru_cache(maxsize=1)
def advisories() -> tuple[Advisory, ...]:
    """All of the data file, in its order."""
    text = (Path(__file__).resolve().parent / "advisories.json").read_text(encoding="utf-8")
    return tuple(
        Advisory(
            id=row["id"],
            aliases=tuple(row.get("aliases", ())),
            kind=row["kind"],
            summary=row["summary"],
            condition=row["condition"],
            introduced=row["affected"]["introduced"],
            fixed=row["affected"].get("fixed"),
            last_affected=row["affected"].get("last_affected"),
            flags={name: tuple(values) for name, values in row.get("when", {}).get("flags", {}).items()},
            env=tuple(row.get("when", {}).get("env", ())),
        )
        for row in json.loads(text)["sglang"]
    )
