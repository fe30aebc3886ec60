"""The code checks by name. Their modules import a parser, so each is loaded by the first file that it looks at."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_params import AdmitParams, SplitParams

if TYPE_CHECKING:
    from auditor.checks.code_index import CodeIndex
    from auditor.checks.code_words import StateWords
    from auditor.syntax.code_tree import CodeTree


def _later(module: str) -> Callable[[CodeTree, CodeIndex, Any], Iterator[Match]]:
    def run(tree: CodeTree, index: CodeIndex, params: Any) -> Iterator[Match]:
        yield from importlib.import_module(f"auditor.checks.{module}").run(tree, index, params)

    return run


def _any_of(words: tuple[str, ...]) -> bytes:
    return b"|".join(re.escape(word.encode()) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def _end_needles(params: AdmitParams | SplitParams) -> frozenset[bytes]:
    """The state words as they are written in attributes, in enumerations and in camel case."""
    found = set()
    for word in (*params.states.over, *params.states.refused):
        if len(word) > 3:
            found |= {word.encode(), word.upper().encode(), word.capitalize().encode()}
    return frozenset(found)


def _admit_shape(params: AdmitParams, index: CodeIndex) -> re.Pattern[bytes]:
    words = _any_of((*params.states.over, *params.states.reason, *params.states.refused))
    return re.compile(
        rb"(?i)\b(?:if|elif|while|not|and|or|case|isinstance|filter|switch)\b[^\n]*[._\"'( ]\w*(?:" + words + rb")"
    )


def _door_shape(params: SplitParams, index: CodeIndex) -> re.Pattern[bytes] | None:
    names = {split.name for split in index.splits}
    if not names:
        return None
    return re.compile(rb"(?::[^\n]*|class\s+)\b(?:" + _any_of(tuple(names)) + rb")\b")


def index_shape(states: StateWords) -> re.Pattern[bytes]:
    """Lines that the index needs: a terminal predicate, an enumeration, a constant that names an end."""
    over, ends = _any_of(states.over), _any_of((*states.over, *states.refused))
    return re.compile(
        rb"(?i:\bdef\s+\w*(?:" + over + rb")\w*\s*\()|\bclass\s+\w+\s*\([^)\n]*Enum|\benum\s+\w"
        rb"|(?m:^[ \t]+[A-Z_0-9]*(?i:" + ends + rb")[A-Z_0-9]*\s*(?::[^=\n]*)?=[^=])"
    )


CODE_CHECKS: tuple[CodeCheck[Any], ...] = (
    CodeCheck(
        "negative-state-guard",
        AdmitParams,
        ("guarded",),
        ("test", "subject", "hidden"),
        ("python",),
        _end_needles,
        _later("negative_state_guard"),
        _admit_shape,
        lambda params: params.states,
    ),
    CodeCheck(
        "split-verdict",
        SplitParams,
        ("unguarded-door", "split"),
        ("type", "reads", "verdict", "predicate", "door"),
        ("python",),
        _end_needles,
        _later("split_verdict"),
        _door_shape,
        lambda params: params.states,
    ),
)
