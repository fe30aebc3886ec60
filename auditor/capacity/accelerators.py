"""The accelerators of the catalogue, and what words of files mean by them: product labels, instance types, slices."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor.model.facts import OR
from auditor.model.records import dataclass, replace

MIB = 2**20
_HERE = Path(__file__).resolve().parent

# Words that tell form, maker or link and never the memory; `nvl` is not one of them, it names cards with more of it.
_NEUTRAL = re.compile(
    r"(?:nvidia|amd|tesla|geforce|quadro|instinct|gpu|accelerator|dgx|hgx|generation|sxm\d?|pcie|hbm\d?e?|nvlink|oam|vf|vcore|ib|\d+x|x\d+)"
)
_SLICE = re.compile(r"-(?:mig-)?(?:[1-7]g|[1-7]c\.[1-7]g)\.(\d+)gb(?:[-+.]me(?:-\w+)?)?")
_SHARED = re.compile(r"-shared$")
_COUNT = re.compile(r":\d+$")
_SIGNS = re.compile(r"[^a-z0-9+]")
_SIZE = re.compile(r"-(\d+)gb?$")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator: memory as the driver reports it (bytes), vendor, CUDA compute capability (or the vendor's own
    number), whether the memory is shared with the host or with other containers, the smallest memory that the name
    stands for, and the least, usual and most that a display or a hypervisor holds of it."""

    name: str
    memory: float
    vendor: str
    capability: float
    unified: bool = False
    smallest: float | None = None
    held: tuple[float, float, float] = (0.0, 0.0, 0.0)


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, Any]:
    return dict(json.loads((_HERE / "gpus.json").read_text(encoding="utf-8"))["gpus"])


@lru_cache(maxsize=1)
def gpus() -> Mapping[str, Gpu]:
    """All accelerators by catalogue name."""
    return {
        name: Gpu(
            name,
            entry["memory_mib"] * MIB,
            entry["vendor"],
            entry["capability"],
            bool(entry.get("unified")),
            entry["smallest_mib"] * MIB if "smallest_mib" in entry else None,
            tuple(float(gib) * 2**30 for gib in entry.get("held_gib", (0, 0, 0))),  # type: ignore[arg-type]
        )
        for name, entry in _entries().items()
    }


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    return {_plain(alias): name for name, entry in _entries().items() for alias in (name, *entry["aliases"])}


@lru_cache(maxsize=1)
def _run_together() -> Mapping[str, str]:
    """The names without anything between their words (`rtxa5000`, `NVIDIAA10080GBPCIe`), but for those of two cards."""
    found: dict[str, set[str]] = {}
    for written, name in _names().items():
        found.setdefault(_SIGNS.sub("", written), set()).add(name)
    return {written: cards.pop() for written, cards in found.items() if len(cards) == 1}


@lru_cache(maxsize=1)
def _machines() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(pattern), name) for name, entry in _entries().items() for pattern in entry.get("machines", ())
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


@lru_cache(maxsize=1024)
def find_gpu(name: str) -> Gpu | None:
    """The accelerator that a word of a file means: a catalogue name, an alias, a node label, an instance type. A slice
    (`…-MIG-3g.40gb`) has its own memory, a time-sliced card (`…-SHARED`) shares it with other containers."""
    word = _plain(_COUNT.sub("", name).rstrip("!"))
    shared = _SHARED.search(word) is not None
    word = _SHARED.sub("", word)
    sliced = _SLICE.search(word)
    found = _whole(word[: sliced.start()] if sliced else word)
    if found is None:
        return None
    if sliced is not None:
        found = _slice(found, int(sliced.group(1)), sliced.group().strip("-").removeprefix("mig-"))
    return replace(found, name=f"{found.name} (shared)", unified=True) if shared else found


def gpus_named(words: str) -> tuple[Gpu, ...]:
    """What `H100 or H200` can be, in order, a word that several cards go by (`B200+`) being each of them; nothing when
    one of the words is unknown."""
    found: dict[str, Gpu] = {}
    for word in words.split(OR):
        one = find_gpu(word)
        cards = (one,) if one is not None else of_family(_COUNT.sub("", word))
        if not cards:
            return ()
        found.update({card.name: card for card in cards})
    return tuple(found.values())


def of_family(family: str) -> tuple[Gpu, ...]:
    """The accelerators that the machines of a family (`p5`, `a3`) have, or that go by one word (`B200+`, `rtx6000`)."""
    word = _SIGNS.sub("", family.lower())
    return tuple(
        gpus()[name]
        for name, entry in _entries().items()
        if any(word == _SIGNS.sub("", known) for known in entry.get("families", ()))
    )


def _slice(whole: Gpu, gigabytes: int, profile: str) -> Gpu:
    """A part of a card by its profile. Profiles are eighths of the memory, of which the driver keeps up to a twentieth
    (`nvidia-smi mig -lgip` shows 9.75 GiB of 1g.10gb, 39.5 of 3g.40gb)."""
    eighths = max(1, round(8 * gigabytes * 2**30 / whole.memory))
    memory = min(1.0, eighths / 8) * whole.memory
    return replace(whole, name=f"{whole.name} {profile}", memory=memory, smallest=0.95 * memory)


def _whole(word: str) -> Gpu | None:
    names = _names()
    if word in names:
        return gpus()[names[word]]
    for pattern, name in _machines():
        if pattern.fullmatch(word):
            return gpus()[name]
    parts = [part for part in word.split("-") if not _NEUTRAL.fullmatch(part)]
    bare = "-".join(parts)
    if bare in names:
        return gpus()[names[bare]]
    together = _run_together().get(_SIGNS.sub("", word))
    if together is not None:
        return gpus()[together]
    size = _SIZE.search(bare)
    found = gpus().get(names.get(bare[: size.start()], "")) if size else None
    if size is None or found is None:
        return None
    stated, least, most = int(size.group(1)), (found.smallest or found.memory) / 2**30, found.memory / 2**30
    if stated < 0.65 * least:
        return _slice(found, stated, f"{stated}gb")  # `H100_40GB`: a share of the card
    return found if 0.9 * least <= stated <= 1.1 * most + 1 else None
