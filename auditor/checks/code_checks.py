"""The code checks by name. Their modules import a parser, so each is loaded by the first file that it looks at."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_params import AdmitParams, SlotParams, SplitParams, StatusParams, TransferParams
from auditor.checks.code_shapes import (
    Shape,
    door_shape,
    over_shape,
    proven_shape,
    release_shape,
    status_shape,
    take_shape,
    transfer_shape,
)

if TYPE_CHECKING:
    from auditor.checks.code_index import CodeIndex
    from auditor.syntax.code_tree import CodeTree


def _later(module: str) -> Callable[[CodeTree, CodeIndex, Any], Iterator[Match]]:
    def run(tree: CodeTree, index: CodeIndex, params: Any) -> Iterator[Match]:
        yield from importlib.import_module(f"auditor.checks.{module}").run(tree, index, params)

    return run


NEEDLES = frozenset({b"def ", b"class "})  # any source file


def _guard_shape(params: AdmitParams, index: CodeIndex, floor: str) -> Shape | None:
    # At high confidence a second verdict is proven, and that says which names the test must hold.
    return proven_shape(params, index) if floor == "high" else over_shape(params, index)


CODE_CHECKS: tuple[CodeCheck[Any], ...] = (
    CodeCheck(
        "negative-state-guard",
        AdmitParams,
        ("guarded",),
        ("test", "subject", "hidden"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("negative_state_guard"),
        _guard_shape,
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
        lambda params, index, floor: door_shape(params, index),
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
        lambda params, index, floor: release_shape(params),
    ),
    CodeCheck(
        "handle-read",
        SlotParams,
        ("unverified",),
        ("method", "read"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("handle_read"),
        lambda params, index, floor: release_shape(params),
    ),
    CodeCheck(
        "transfer-count",
        TransferParams,
        ("uncounted",),
        ("method", "amount"),
        ("python",),
        lambda params: NEEDLES,
        _later("transfer_count"),
        lambda params, index, floor: transfer_shape(params),
    ),
    CodeCheck(
        "reserve-capacity",
        SlotParams,
        ("unbounded",),
        ("method", "take"),
        ("python",),
        lambda params: NEEDLES,
        _later("reserve_capacity"),
        lambda params, index, floor: take_shape(params),
    ),
    CodeCheck(
        "status-only-test",
        StatusParams,
        ("status-only",),
        ("test", "check"),
        ("python", "csharp"),
        lambda params: NEEDLES,
        _later("status_only_test"),
        lambda params, index, floor: status_shape(params),
    ),
)
