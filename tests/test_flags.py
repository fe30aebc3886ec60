"""Options of the engine: what a spelling means at a release, and what its value is."""

from __future__ import annotations

import pytest

from auditor.launch.flags import canonical, human_int, spelled, typed


@pytest.mark.parametrize(
    ("spelling", "version", "name", "refused"),
    [
        ("--tp", "0.5.19", "tp-size", False),
        ("--tensor-parallel-size", "0.5.19", "tp-size", False),
        ("--pp", "0.5.3", "pp-size", False),
        ("--pp", "0.5.6", "pp-size", True),
        ("--context", "0.5.20", "context-length", False),
        ("--context", "0.5.21", "context-length", True),
        ("--page", "0.5.22", "page-size", False),
        ("--page", "0.5.23", "page-size", True),
        ("--cuda-graph-max-bs", "0.5.11", "cuda-graph-max-bs-decode", False),
        ("--cuda-graph-max-bs", "0.5.19", "cuda-graph-max-bs-decode", False),
        ("--cuda-graph-max-bs", "0.5.20", "cuda-graph-max-bs-decode", True),
        ("--quant", "0.5.9", "quantization", True),
        ("--enable-kv-cache-sharding", "0.5.21", "enable-kv-cache-sharding", True),
        ("--enable-kv-cache-sharding", "0.5.22.post1", "enable-kv-cache-sharding", False),
        ("--page-size", "0.4.5", "page-size", False),
        ("--enable-ep-moe", "0.5.4", "enable-ep-moe", True),
        ("mem_fraction_static", None, "mem-fraction-static", False),
        ("--max-model-len", None, "max-model-len", False),
    ],
)
def test_meaning_of_a_spelling(spelling: str, version: str | None, name: str, refused: bool) -> None:
    meaning = spelled(spelling, version)
    assert (meaning.name, bool(meaning.problem)) == (name, refused)
    assert canonical(spelling, version) == name


HUMAN = {"131072": 131072, "1M": 10**6, "1Mi": 2**20, "1.5k": 1500, "1.5Ki": None, "1m": None, "": None}


@pytest.mark.parametrize(("text", "number"), HUMAN.items())
def test_human_readable_integers(text: str, number: int | None) -> None:
    assert human_int(text) == number


def test_values_take_the_type_of_their_option() -> None:
    assert (typed("8", "int"), typed("1Mi", "human"), typed("8", "str")) == (8, 2**20, "8")
    assert (typed(".8", "float"), typed("auto", "float")) == (0.8, "auto")


def test_a_number_of_thousands_of_digits_stays_text() -> None:
    from auditor.launch.flags import typed

    assert (typed("9" * 5000, "human"), typed("9" * 5000, "int")) == ("9" * 5000, "9" * 5000)
