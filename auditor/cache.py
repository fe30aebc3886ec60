"""What is known of each file from the last audit of the same tree, kept in the user's cache folder.

An answer is kept for a file by its path and the digest of its bytes, under a `stage`: the digest of whatever else the
answer depends on (the rule's words, the index). One file of JSON for each root and set of rules; it holds what the last
run asked and nothing older. Everything that can be wrong with it (missing, damaged, of another version, not writable)
costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from auditor import __version__
from auditor.model.spans import SourceFile
from auditor.packing import digest
from auditor.quick import cache_folder
from auditor.whole_file import whole_file

FORMAT = 1  # raise it when the layout of the file changes
KEPT_DAYS = 30  # of a tree that was not audited since

MISSING: Any = object()


class FactCache:
    """The answers of one tree. `know` gives those that are there, `learn` adds new ones, `save` writes them."""

    def __init__(self, place: str, made_by: str) -> None:
        self.place = place
        self._made_by = made_by
        self._before, self._known = _load(place, made_by)
        self._digests: dict[str, str] = {}
        self._stages: dict[str, dict[str, Any]] = {}
        self._changed = False

    def know(self, stage: str, sources: Sequence[SourceFile]) -> list[Any]:
        """What is known of each of the files at this stage, as it was packed; `MISSING` where nothing is."""
        before = self._known.get(stage, {})
        asked = self._stages.setdefault(stage, {})
        self._digests.update({source.path: source.digest for source in sources})
        if not before:
            return [MISSING] * len(sources)
        found = []
        for source in sources:
            path = source.path
            answer = before.get(path, MISSING) if self._before.get(path) == source.digest else MISSING
            if answer is not MISSING:
                asked[path] = answer
            found.append(answer)
        return found

    def learn(self, stage: str, sources: Sequence[SourceFile], packed: Sequence[Any]) -> None:
        """Keep an answer for each of the files, packed."""
        self._digests.update({source.path: source.digest for source in sources})
        self._stages.setdefault(stage, {}).update(
            {source.path: answer for source, answer in zip(sources, packed, strict=True)}
        )
        self._changed = self._changed or bool(sources)

    def save(self) -> None:
        """Write what this run asked, if it asked anything new. A folder that cannot be written costs time only."""
        if not self._changed and self._digests == self._before:
            return
        folder = os.path.dirname(self.place)
        try:
            os.makedirs(folder, exist_ok=True)
            with whole_file(self.place, mode=0o600) as stream:
                # `dumps` runs in C; `dump` does not
                stream.write(json.dumps([FORMAT, self._made_by, self._digests, self._stages], separators=(",", ":")))
            _prune(folder)
        except OSError:
            return


def cache_of(root: str, *settings: object) -> FactCache:
    """The cache of a tree under these settings (rules, profile)."""
    name = digest(os.path.realpath(root), *settings)[:24]
    return FactCache(os.path.join(cache_folder(), f"facts-{name}.json"), _made_by())


def _load(place: str, made_by: str) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The digests of the files and, by stage, the answers of a cache file; both empty where it is of no use."""
    try:
        with open(place, encoding="utf-8") as stream:
            known = json.loads(stream.read())
    except (OSError, ValueError, RecursionError):
        return {}, {}
    if not (isinstance(known, list) and len(known) == 4 and known[:2] == [FORMAT, made_by]):
        return {}, {}
    digests, stages = known[2:]
    if not isinstance(digests, dict) or not isinstance(stages, dict):
        return {}, {}
    return digests, {name: answers for name, answers in stages.items() if isinstance(answers, dict)}


def _made_by() -> str:
    """The version, and each module of this program with its size and time: an answer of other code is not one."""
    here = os.path.dirname(os.path.abspath(__file__))
    stats = []
    for folder in (here, *(os.path.join(here, name) for name in ("checks", "syntax", "model"))):
        for entry in os.scandir(folder):
            if entry.name.endswith(".py"):
                about = entry.stat()
                stats.append((entry.path, about.st_size, about.st_mtime_ns))
    return digest(__version__, tuple(sorted(stats)))


def _prune(folder: str) -> None:
    """Remove what was kept of trees that nobody audits any more."""
    oldest = time.time() - KEPT_DAYS * 86_400
    for entry in os.scandir(folder):
        if entry.name.startswith("facts-") and entry.stat().st_mtime < oldest:
            os.unlink(entry.path)
