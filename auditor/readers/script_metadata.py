"""Inline metadata of single-file scripts (PEP 723): the `# /// script` block is TOML behind comment marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.declared import listed
from auditor.readers.pyproject import settled
from auditor.syntax import toml_spans

_BLOCK = re.compile(r"^# /// script[ \t]*\r?$\n((?:^#(?: .*)?\r?$\n?)+?)^# ///[ \t]*\r?$", re.MULTILINE)


def read(source: SourceFile) -> Iterator[Fact]:
    """The requirements of the block, with uv's sources and overrides."""
    found = _BLOCK.search(source.text)
    if not found:
        return
    inside = re.sub(r"^#", " ", found.group(1), flags=re.MULTILINE)
    text = _blank(source.text[: found.start(1)]) + inside + _blank(source.text[found.end(1) :])
    block = SourceFile(source.path, text)  # every offset is that of the script
    root = toml_spans.parse(block)
    stated = list(listed(root.list("dependencies"), source, "script"))
    yield from settled(stated, root.table("tool", "uv"), source)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)
