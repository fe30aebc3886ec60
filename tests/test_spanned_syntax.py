"""TOML and JSON with places agree with the plain parsers, and every place is that of its value."""

from __future__ import annotations

import json

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax import json_spans, toml_spans
from auditor.syntax.spanned import Spanned

TOML = """\
# a comment with "quotes"
title = "a \\u00e9 \\"b\\" c"
[tool.x]
'quoted key'.deep = { a = 1, "b" = ['x', "y", # here
  "z",], c = 1979-05-27 07:32:00 }
text = \"\"\"
first \\
   second ""quoted""\"\"\"
raw = '''
C:\\path'''
[[tool.rows]]
n = "one"
[tool.rows.below]
v = true
[[tool.rows]]
n = "two"
"""


def strings_stand_where_they_say(root: Spanned, text: str) -> None:
    for _, node in root.walk():
        if node.text is None:
            continue
        mapped = node.mapped
        assert len(mapped.offsets) == len(node.text) + 1
        for char, offset in zip(node.text, mapped.offsets, strict=False):
            assert text[offset] == char or text[offset] == "\\"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_toml_agrees_with_tomli(newline: str) -> None:
    text = TOML.replace("\n", newline)
    root = toml_spans.parse(SourceFile("x.toml", text))
    strings_stand_where_they_say(root, text)
    assert root.word("tool", "x", "quoted key", "deep", "c") is None
    assert [item.text for item in root.list("tool", "x", "quoted key", "deep", "b")] == ["x", "y", "z"]
    assert [row.word("n") for row in root.list("tool", "rows")] == ["one", "two"]
    assert root.list("tool", "rows")[0].get("below", "v") is not None


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet=st.sampled_from("ab.=[]{}\"'\\#,\n\r \t1u0é"), max_size=60))
def test_any_text_is_toml_or_a_read_error(text: str) -> None:
    source = SourceFile("x.toml", text)
    try:
        root = toml_spans.parse(source)
    except ReadError:
        return
    assert isinstance(tomli.loads(text), dict)
    strings_stand_where_they_say(root, text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_json_agrees_with_json(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    root = json_spans.parse(SourceFile("x.json", text))
    assert root.plain() == value
    for _, node in root.walk():
        quotes = 1 if isinstance(node.value, str) else 0
        assert json.loads(text[node.start - quotes : node.end + quotes]) == node.plain()
    strings_stand_where_they_say(root, text)


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet=st.sampled_from('ab{}[]":,\\/*\n u01tfn'), max_size=40))
def test_any_text_is_json_or_a_read_error(text: str) -> None:
    try:
        root = json_spans.parse(SourceFile("x.json", text))
    except ReadError:
        return
    strings_stand_where_they_say(root, text)


def test_deep_brackets_end_in_a_limit() -> None:
    with pytest.raises(ReadError) as caught:
        json_spans.parse(SourceFile("x.json", "[" * 5000))
    assert caught.value.limit
