"""The engine's own code kept in a tree: where its doors are and which of the admission guards its modules define.

The facts are definitions of the domain `engine-guard`; their scope is the folder that holds `disaggregation/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile

_LINE = re.compile(r"^[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]+(\w+)", re.MULTILINE)
_CALL = re.compile(
    r"^(?![ \t]*(?:def|#)).*?\b(is_unadmitted_reject|_retire_aborted_prefill_result)[ \t]*\(", re.MULTILINE
)
_DOORS = {"PrefillBootstrapQueue": "prefill", "DecodePreallocQueue": "decode"}
_ENGINE = re.compile(r"^class SchedulerDisaggregation(?:Prefill|Decode)Mixin\b", re.MULTILINE)
_GUARDS = ("is_unadmitted_reject", "_retire_aborted_prefill_result")


def read(source: SourceFile) -> Iterator[Fact]:
    """Doors with the guards that their file asks, and guards with the place of their definition."""
    text = source.text
    folder = root_of(source.path)
    asked = {found.group(1) for found in _CALL.finditer(text) if "#" not in found.group(0)}
    for found in _LINE.finditer(text):
        name = found.group(1)
        span = source.span(found.start(1), found.end(1))
        if name in _DOORS and _ENGINE.search(text):
            yield Definition(f"door {_DOORS[name]}", " ".join(sorted(asked)), "engine-guard", folder, span)
        elif name in _GUARDS:
            yield Definition(f"guard {name}", name, "engine-guard", folder, span)


def root_of(path: str) -> str:
    """The folder above `disaggregation/`, else the folder of the file."""
    folders = path.split("/")[:-1]
    if "disaggregation" in folders:
        folders = folders[: len(folders) - 1 - folders[::-1].index("disaggregation")]
    return "/".join(folders)
