"""What one requirement text names, and where: pins, ranges, checkouts, files, variables, and what is no requirement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.model.facts import Hole, Unresolved
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import piece_of
from auditor.syntax.requirement_lines import requirement, requirement_of_word
from auditor.syntax.words import Word

GIT = "git+https://github.com/sgl-project/sglang.git"


@pytest.mark.parametrize(
    ("text", "name", "kind", "specifier", "version", "ref", "at"),
    [
        ("sglang==0.5.19", "sglang", "pinned", "==0.5.19", "0.5.19", None, "sglang==0.5.19"),
        (
            "  sglang[all, srt]==0.5.19  # gpu",
            "sglang",
            "pinned",
            "==0.5.19",
            "0.5.19",
            None,
            "sglang[all, srt]==0.5.19",
        ),
        ("SGLang >= 0.5 , < 0.6 ; x ~= 'y'", "sglang", "range", ">= 0.5 , < 0.6", None, None, "SGLang >= 0.5 , < 0.6"),
        ("sglang (>=0.5)", "sglang", "range", ">=0.5", None, None, "sglang (>=0.5)"),
        ("sglang==0.5.*", "sglang", "range", "==0.5.*", None, None, "sglang==0.5.*"),
        ("sglang==1.0 --hash=sha256:ab", "sglang", "pinned", "==1.0", "1.0", None, "sglang==1.0"),
        ('sglang==1.0 ; #engine# == "s"', "sglang", "pinned", "==1.0", "1.0", None, "sglang==1.0"),
        (f"sglang @ {GIT}@v0.5.6#subdirectory=python", "sglang", "vcs", None, None, "v0.5.6", None),
        (f"{GIT}", "sglang", "vcs", None, None, None, None),
        (f"{GIT}@main#subdirectory=sgl-kernel", "sgl-kernel", "vcs", None, None, "main", None),
        ("git+ssh://git@host/o/sglang@abc#egg=sglang[all]", "sglang", "vcs", None, None, "abc", None),
        ("https://x.example/sglang-0.5.9%2Bcu1-py3-none-any.whl", "sglang", "file", None, "0.5.9+cu1", None, None),
        ("./w/sglang-0.5.9.tar.gz", "sglang", "file", None, "0.5.9", None, None),
        ("https://github.com/o/sglang/archive/refs/tags/v0.5.9.tar.gz", "sglang", "vcs", None, None, "v0.5.9", None),
        ("sglang", "sglang", "bare", None, None, None, "sglang"),
        ("strands-sglang", "strands-sglang", "bare", None, None, None, "strands-sglang"),
    ],
)
def test_requirement(
    text: str, name: str, kind: str, specifier: str | None, version: str | None, ref: str | None, at: str | None
) -> None:
    source = SourceFile("requirements.txt", text)
    fact = requirement(piece_of(source), source, "")
    assert fact is not None
    assert (fact.name, fact.kind, fact.specifier, fact.version, fact.vcs_ref) == (name, kind, specifier, version, ref)
    assert source.slice(fact.span) == (at or text)


@pytest.mark.parametrize(
    "text", ["", "sglang is good", "# sglang", "sglang=http://sglang:8002", "sglang @someone", "-r x"]
)
def test_what_is_no_requirement(text: str) -> None:
    source = SourceFile("x", text)
    fact = requirement(piece_of(source), source, "")
    assert fact is None


def test_a_variable_in_the_version_stays_open_with_its_default() -> None:
    source = SourceFile("x", "sglang[all]==${V:-0.5.9}+cu1")
    fact = requirement(piece_of(source), source, "")
    assert fact is not None
    assert fact.version == Unresolved("${V:-0.5.9}+cu1", (Hole("V", "0.5.9"), "+cu1"))
    assert source.slice(fact.span) == source.text


def test_a_word_is_read_without_its_quotes() -> None:
    source = SourceFile("x", 'pip install "sglang[all]==0.5.9"')
    word = Word("sglang[all]==0.5.9", source.span(12, 32), '"sglang[all]==0.5.9"', quoted=True)
    fact = requirement_of_word(word, source, "run")
    assert fact is not None
    assert source.slice(fact.span) == "sglang[all]==0.5.9"


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet=st.sampled_from("sglan[]=<>~!0.5@:/#;${}-_ ,*+git\\\n'\"éw"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    source = SourceFile("x", text)
    fact = requirement(piece_of(source), source, "")
    if fact is not None:
        assert source.slice(fact.span) in text
        assert 0 <= fact.span.start.offset <= fact.span.end.offset <= len(text)
