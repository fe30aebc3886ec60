"""The engine's command line options: canonical names, aliases, types and unique prefixes, for each engine version.

Figures stand in `flags.json`: for each spelling without dashes rows of canonical name, kind, and the first and last
sampled version (index into `versions`) that had it, read from the option definitions of the published wheels.
The engine parses with argparse: any unique prefix of an option is the option, the last one written wins.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import islice, takewhile
from typing import Literal

from auditor.model.facts import Value
from auditor.model.records import dataclass

Kind = Literal["int", "human", "float", "str", "flag", "optional-flag", "ints", "strs", "floats", "removed"]

_SUFFIXES = {
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_HUMAN = re.compile(r"([+-]?[0-9]+)(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?")
MAX_DIGITS = 30  # far above any count of tokens; Python refuses to convert numbers of some thousand digits
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(?:rc\d+)?(?:\.post(\d+))?")

RENAMED: Mapping[str, str] = {
    "cuda-graph-max-bs": "cuda-graph-max-bs-decode",
    "cuda-graph-bs": "cuda-graph-bs-decode",
    "nsa-prefill-backend": "dsa-prefill-backend",
    "nsa-decode-backend": "dsa-decode-backend",
    "mamba-scheduler-strategy": "mamba-radix-cache-strategy",
    "piecewise-cuda-graph-max-tokens": "cuda-graph-max-bs-prefill",
    "piecewise-cuda-graph-tokens": "cuda-graph-bs-prefill",
}
"""Options that got a new name: one key for all versions (sglang wheels 0.5.11 to 0.5.20)."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option as one version knows it: `name` is the canonical long name without dashes."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Spelling:
    """What a written option means. `option` is `None` for a name that no version has; `problem` says why the engine
    would refuse it, empty when it would not."""

    name: str
    option: Option | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    option: Option
    first: int
    last: int


@lru_cache(maxsize=1)
def _data() -> tuple[tuple[str, ...], dict[str, tuple[_Row, ...]]]:
    document = json.loads((files("auditor.launch") / "flags.json").read_text(encoding="utf-8"))
    table = {
        spelling: tuple(_Row(Option(RENAMED.get(name, name), kind), first, last) for name, kind, first, last in rows)
        for spelling, rows in document["options"].items()
    }
    return tuple(document["versions"]), table


def _release(version: str) -> tuple[tuple[int, ...], int] | None:
    match = _RELEASE.match(version)
    if match is None:
        return None
    return tuple(int(part) for part in match.group(1).split(".")), int(match.group(2) or 0)


def _indexes(version: str | None) -> tuple[int, ...]:
    """The sampled versions that stand for `version`: itself, or its neighbours on both sides, the older one first;
    empty when the version is not known."""
    wanted = _release(version) if version else None
    if wanted is None:
        return ()
    releases = [_release(sampled) or ((), 0) for sampled in _data()[0]]
    if wanted in releases:
        return (releases.index(wanted),)
    above = sum(release <= wanted for release in releases)
    return tuple(index for index in (above - 1, above) if 0 <= index < len(releases))


@lru_cache(maxsize=4096)
def spelled(spelling: str, version: str | None = None) -> Spelling:
    """The meaning of an option as written (`--tp`, `tensor-parallel-size`, `tp_size`), at one engine version or, with
    `version=None`, at the newest one that accepts it."""
    versions, table = _data()
    text = spelling.removeprefix("--") if spelling.startswith("--") else spelling
    indexes = _indexes(version)
    problem = ""
    for index in indexes:
        option, why = _at(text, index, table)
        if option is not None:
            return Spelling(option.name, option)
        problem = problem or why
    newest = _any_version(text, versions, table)
    if newest.option is None or not indexes:
        return newest
    return Spelling(newest.name, newest.option, problem or f"`--{text}` is no option of sglang {version}")


def _any_version(text: str, versions: Sequence[str], table: Mapping[str, tuple[_Row, ...]]) -> Spelling:
    problem = ""
    for index in range(len(versions) - 1, -1, -1):
        option, why = _at(text, index, table)
        if option is not None:
            return Spelling(option.name, option)
        problem = problem or why  # the newest version's word
    if "_" in text:
        return _any_version(text.replace("_", "-"), versions, table)
    return Spelling(text, None, problem)


@lru_cache(maxsize=32)
def _names(index: int) -> tuple[str, ...]:
    return tuple(
        sorted(name for name, rows in _data()[1].items() if any(row.first <= index <= row.last for row in rows))
    )


def _at(text: str, index: int, table: Mapping[str, tuple[_Row, ...]]) -> tuple[Option | None, str]:
    """The option at one sampled version, or why it is refused; both empty when nothing begins like this."""
    for row in table.get(text, ()):
        if row.first <= index <= row.last:
            if row.option.kind == "removed":
                return None, f"`--{text}` is refused by sglang {_data()[0][index]}"
            return row.option, ""
    if not text:
        return None, ""
    names = _names(index)
    first = bisect_left(names, text)
    candidates = list(takewhile(lambda name: name.startswith(text), islice(names, first, None)))
    options = {next(row.option for row in table[name] if row.first <= index <= row.last) for name in candidates}
    if len(candidates) == 1:
        return options.pop(), ""
    if candidates:
        shown = ", ".join(f"`--{name}`" for name in candidates[:3])
        return None, f"`--{text}` is ambiguous in sglang {_data()[0][index]}: {shown}"
    return None, ""


def canonical(spelling: str, version: str | None = None) -> str:
    """The canonical long name without dashes; an unknown name comes back as it is."""
    return spelled(spelling, version).name


def is_known(spelling: str) -> bool:
    """Whether some version has exactly this option (no prefix)."""
    return spelling.removeprefix("--") in _data()[1]


def typed(text: str, kind: Kind | None) -> Value:
    """The value of an option as the engine would read it; text that does not fit the kind stays text."""
    stripped = text.strip()
    if kind == "human":
        number = human_int(stripped)
        return text if number is None else number
    if kind in ("int", "float", None):
        try:
            return int(stripped)
        except ValueError:  # no number, or one of more digits than Python converts
            pass
        if kind != "int":
            try:
                return float(stripped)
            except ValueError:
                return text
    if kind in ("flag", "optional-flag") and stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    return text


def human_int(text: str) -> int | None:
    """`1M` is 1,000,000 and `1Mi` 1,048,576; decimals only with decimal suffixes; case matters. `None` when it is none
    (sglang 0.5.11+, `utils/common.py:human_readable_int`)."""
    match = _HUMAN.fullmatch(text)
    if match is None:
        return None
    whole, fraction, suffix = match.groups()
    if fraction is None:
        if len(whole) > MAX_DIGITS:
            return None
        return int(whole) * _SUFFIXES.get(suffix or "", 1)
    if suffix is None or suffix.endswith("i"):
        return None
    return round(float(whole + fraction) * _SUFFIXES[suffix])
