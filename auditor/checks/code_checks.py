"""The code checks by name. Their modules import a parser, so each is loaded by the first file that it looks at."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_params import AdmitParams, SlotParams, SplitParams, StatusParams, TransferParams

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


NEEDLES = frozenset({b"def ", b"class "})  # any source file; the shapes below start with a literal and are as cheap


def _upper(words: tuple[str, ...]) -> bytes:
    return rb"(?:[A-Z0-9]+_)*(?:" + _any_of(words).upper() + rb")(?:_[A-Z0-9_]+)?\b"


def admit_shapes(states: StateWords) -> tuple[re.Pattern[bytes], ...]:
    """What a test of being over looks like. Each pattern begins with a literal, which the `re` module searches fast."""
    return _admit_shapes(states)


@lru_cache(maxsize=4)
def _admit_shapes(states: StateWords) -> tuple[re.Pattern[bytes], ...]:
    over, ends = _any_of(states.over), (*states.over, *states.refused)
    either = _any_of(ends)
    stems = _any_of((*states.over, *states.reason))
    capital = b"|".join(re.escape(word.capitalize().encode()) for word in sorted(set(ends)))
    camel = b"|".join(re.escape(word.capitalize().encode()) for word in sorted({*states.over, *states.reason}))
    # The look-ahead for a first letter spares the long alternation at nearly every dot of a file.
    return (
        re.compile(
            rb"\.(?=[ihw_" + _firsts((*states.over, *states.reason)) + rb"])(?:is_|has_|was_|_)*(?:" + stems + rb")"
            rb"(?:_(?:reason|at|by|as|with|cause|time))?\b"
        ),
        re.compile(rb"\.(?=[A-Z])" + _upper(ends)),
        re.compile(rb"\.(?=[A-Z])(?:Is|Has|Was|[A-Z][a-z]+)??(?:" + capital + rb"|" + camel + rb")(?:Reason|At)?\b"),
        re.compile(
            rb"= (?=[\"'A-Z])(?:[\"'](?:" + either + rb"|" + _any_of(ends).upper() + rb")[\"']|" + _upper(ends) + rb")"
        ),
        re.compile(rb"is (?=n?o?t? ?[A-Z])(?:not )?" + _upper(ends)),
        re.compile(rb"[\[][\"'](?:is_)?(?:" + either + rb")[\"']"),
        re.compile(rb"\([\"'](?:" + over + rb")[\"']"),
        re.compile(rb"is_(?:\w+_)?(?:" + over + rb")\("),
        re.compile(rb"case [^\n]*(?i:" + either + rb")"),
    )


def _firsts(words: tuple[str, ...]) -> bytes:
    return "".join(sorted({word[0] for word in words})).encode()


def _door_shape(params: SplitParams, index: CodeIndex) -> tuple[re.Pattern[bytes], ...] | None:
    names = {split.name for split in index.splits}
    if not names:
        return None
    alternatives = _any_of(tuple(names))
    return (
        re.compile(rb":[^\n=]*?\b(?:" + alternatives + rb")\b"),
        re.compile(rb"class (?:" + alternatives + rb")\b"),
    )


def index_shapes(states: StateWords) -> tuple[re.Pattern[bytes], ...]:
    """A terminal predicate: where the index begins. What else it needs follows from what is found there."""
    over = _any_of(states.over)
    return (re.compile(rb"def (?:_|is_|has_|was_|request_|req_|job_|task_)*(?:" + over + rb")(?:_\w+)?\(self"),)


def enum_names(states: StateWords) -> re.Pattern[bytes]:
    """The type's name before a member that names an end: `Status.DONE`."""
    ends = (*states.over, *states.refused)
    return re.compile(rb"\b([A-Z]\w*)\.(?:" + _upper(ends) + rb"|(?:[A-Z][a-z]+)*(?i:" + _any_of(ends) + rb")\b)")


def _method_shape(starts: tuple[str, ...]) -> tuple[re.Pattern[bytes], ...]:
    """A method whose name begins with one of the words."""
    alternatives = _any_of(starts)
    return (re.compile(rb"def _*(?:" + alternatives + rb")\w*\("),)


def _transfer_shape(params: TransferParams) -> tuple[re.Pattern[bytes], ...]:
    success = _any_of(params.success)
    capital = _any_of(tuple(word.capitalize() for word in params.success))
    return (
        re.compile(rb"\.(?=[A-Z])(?:[A-Za-z]+_)*(?:" + success.upper() + rb"|" + capital + rb")\b"),
        re.compile(rb"= (?:[\"'](?i:" + success + rb")[\"'])"),
        re.compile(rb"mark_\w*(?:" + success + rb")"),
    )


def _status_shape(params: StatusParams) -> tuple[re.Pattern[bytes], ...]:
    return (re.compile(rb"/(?:" + _any_of(tuple(entry.lstrip("/") for entry in params.endpoints)) + rb")[\"'?]"),)


CODE_CHECKS: tuple[CodeCheck[Any], ...] = (
    CodeCheck(
        "negative-state-guard",
        AdmitParams,
        ("guarded",),
        ("test", "subject", "hidden"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("negative_state_guard"),
        lambda params, index: admit_shapes(params.states),
        lambda params: params.states,
    ),
    CodeCheck(
        "split-verdict",
        SplitParams,
        ("unguarded-door", "split"),
        ("type", "reads", "verdict", "predicate", "door"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("split_verdict"),
        _door_shape,
        lambda params: params.states,
    ),
    CodeCheck(
        "release-without-invalidation",
        SlotParams,
        ("stale",),
        ("method", "container"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("release_without_invalidation"),
        lambda params, index: _method_shape(params.releasing),
    ),
    CodeCheck(
        "handle-read",
        SlotParams,
        ("unverified",),
        ("method", "read"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("handle_read"),
        lambda params, index: _method_shape(params.releasing),
    ),
    CodeCheck(
        "transfer-count",
        TransferParams,
        ("uncounted",),
        ("method", "amount"),
        ("python",),
        lambda params: NEEDLES,
        _later("transfer_count"),
        lambda params, index: _transfer_shape(params),
    ),
    CodeCheck(
        "reserve-capacity",
        SlotParams,
        ("unbounded",),
        ("method", "take"),
        ("python",),
        lambda params: NEEDLES,
        _later("reserve_capacity"),
        lambda params, index: _method_shape((*params.taking, "pre")),
    ),
    CodeCheck(
        "status-only-test",
        StatusParams,
        ("status-only",),
        ("test", "check"),
        ("python",),
        lambda params: NEEDLES,
        _later("status_only_test"),
        lambda params, index: _status_shape(params),
    ),
)
