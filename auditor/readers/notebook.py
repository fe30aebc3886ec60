"""Jupyter notebooks: the shell lines of code cells (`!pip install`, `%pip install`, `%%bash`). Outputs are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.syntax import json_spans
from auditor.syntax.mapped import Mapped, join
from auditor.syntax.spanned import Spanned

_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|script\s+(?:ba)?sh|!)[^\n]*\n")
_SHELL_LINE = re.compile(r"^[ \t]*(?:!{1,2}|%(?=(?:pip|conda|uv|mamba)\b)|%sx\b|%system\b)", re.MULTILINE)


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of each shell text, scope by the number of its cell."""
    root = json_spans.parse(source)
    for number, cell in enumerate(root.list("cells"), 1):
        if cell.word("cell_type") != "code":
            continue
        text = _source(cell.get("source"))
        context = LaunchContext(scope=f"cell {number}")
        whole = _SHELL_CELL.match(text.text)
        if whole:
            yield from script_facts(text.piece(whole.end(), len(text)), source, context)
            continue
        for line in _SHELL_LINE.finditer(text.text):
            end = _end(text.text, line.end())
            yield from script_facts(text.piece(line.end(), end), source, context)


def _source(node: Spanned | None) -> Mapped:
    if node is None:
        return Mapped("", (0,))
    if node.text is not None:
        return node.mapped
    parts = [item.mapped for item in node.items if item.text]
    return join(parts) if parts else Mapped("", (node.start,))


def _end(text: str, start: int) -> int:
    """Where the shell line ends that begins at `start`: continued lines belong to it."""
    end = text.find("\n", start)
    while end > 0 and text[:end].rstrip(" \t\r").endswith("\\"):
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end
