"""docs/formats.md says what the reader registry says."""

from __future__ import annotations

import pytest

from auditor.formats import formats_markdown
from auditor.readers import READERS
from tests.trees import READY, ROOT


@pytest.mark.skipif(not READY, reason="not all readers are there yet")
def test_the_format_page_is_current() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert page == formats_markdown(), "run `python -m auditor.docs`"


def test_every_reader_says_what_it_reads_and_what_it_does_not() -> None:
    assert [reader.name for reader in READERS if not (reader.title and reader.reads and reader.skips)] == []
    for reader in READERS:
        assert all(pattern == pattern.lower() for pattern in (*reader.patterns, *reader.excludes)), reader.name
