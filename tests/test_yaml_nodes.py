"""YAML nodes: values as a YAML parser gives them, and the place of every character."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.model.spans import SourceFile
from auditor.syntax.yaml_nodes import MapNode, ScalarNode, documents, walk

TEXT = """\
a: &x !tag "he\\tl\\
   lo w
   x"
c: 'it''s
  fine

  yes'
d: >-
  one
  two

   more
e: |2+
   ind
  x

f: plain
  line  # comment
"""


def scalars(text: str) -> list[tuple[str, str, str]]:
    """Path, value and the text under the span, of every scalar."""
    source = SourceFile("x.yaml", text)
    return [
        (".".join(path), node.value, source.slice(node.span))
        for root in documents(source).roots
        for path, node in walk(root)
        if isinstance(node, ScalarNode)
    ]


def test_each_style_keeps_its_value_and_its_place() -> None:
    assert scalars(TEXT) == [
        ("a", "he\tllo w x", "he\\tl\\\n   lo w\n   x"),
        ("c", "it's fine\nyes", "it''s\n  fine\n\n  yes"),
        ("d", "one two\n\n more", "one\n  two\n\n   more"),
        ("e", " ind\nx\n\n", " ind\n  x\n\n"),
        ("f", "plain line", "plain\n  line"),
    ]


def test_a_character_inside_a_block_is_found_where_it_stands() -> None:
    source = SourceFile("x.yaml", "run: |\n  one\n  sglang==0.5.19\n")
    root = documents(source).roots[0]
    assert isinstance(root, MapNode)
    node = root.get("run")
    assert isinstance(node, ScalarNode)
    at = node.value.index("sglang")
    assert source.slice(node.mapped.span(source, at, at + 14)) == "sglang==0.5.19"


def test_a_bad_document_does_not_hide_its_neighbours() -> None:
    source = SourceFile("x.yaml", "a: 1\n---\nb: [open\nc: 2\n---\nd: 3\n")
    answer = documents(source)
    assert [root.own[0].key.value for root in answer.roots if isinstance(root, MapNode)] == ["a", "d"]
    assert [source.position(error.offset or 0).line for error in answer.errors] == [4]


def test_merges_are_seen_in_order_and_never_beat_what_is_written() -> None:
    source = SourceFile("x.yaml", "b: &b {i: 1, j: 2}\nc: &c {j: 3, k: 4}\nm:\n  <<: *b\n  <<: [*c, *b]\n  i: 0\n")
    root = documents(source).roots[0]
    assert isinstance(root, MapNode)
    merged = root.map("m")
    assert merged is not None
    assert [
        (entry.key.value, entry.value.value) for entry in merged.entries if isinstance(entry.value, ScalarNode)
    ] == [
        ("i", "0"),
        ("j", "2"),
        ("k", "4"),
    ]


def test_a_ring_of_aliases_ends() -> None:
    assert scalars("a: &a\n  b: *a\n  c: 1\n") == [("a.b", "", ""), ("a.c", "1", "1")]


def test_aliases_are_not_expanded() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert [value for _, value, _ in scalars("\n".join(lines))] == ["x"]


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "{b: " * 5000])
def test_depth_is_bounded(text: str) -> None:
    answer = documents(SourceFile("x.yaml", text))
    assert answer.roots == ()
    assert [error.limit for error in answer.errors] == [True]


PIECES = st.lists(
    st.sampled_from(
        [*"ab:-\"'|>#&*!{}[], \n\t?", "- ", "a: ", "|\n ", ">-\n  ", '"x\n  y"', "\r\n", "é", "💥", "\n---\n"]
    ),
    max_size=25,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_any_text_gives_nodes_in_place_or_errors(text: str) -> None:
    source = SourceFile("x.yaml", text)
    answer = documents(source)
    try:
        expected = [
            event.value for event in yaml.parse(text, Loader=yaml.CSafeLoader) if isinstance(event, yaml.ScalarEvent)
        ]
    except yaml.YAMLError:
        assert answer.errors
        expected = None
    found = 0
    for root in answer.roots:
        for _, node in walk(root):
            if isinstance(node, ScalarNode):
                found += 1
                offsets = list(node.mapped.offsets)
                assert node.mapped.text == node.value
                assert offsets == sorted(offsets)
                assert 0 <= offsets[0] <= offsets[-1] <= len(text)
                assert len(offsets) == len(node.value) + 1
    if expected is not None and not answer.errors:
        assert found <= len(expected)
