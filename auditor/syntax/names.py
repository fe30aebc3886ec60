"""The words that an identifier is made of, in any spelling: `isFinished`, `is_finished` and `IS_FINISHED` agree."""

from __future__ import annotations

import re
from functools import lru_cache

_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@lru_cache(maxsize=65536)
def words(name: str) -> tuple[str, ...]:
    """`DecodePreallocQueue` -> `("decode", "prealloc", "queue")`; digits stand alone."""
    return tuple(piece.lower() for piece in _PIECES.findall(name))


@lru_cache(maxsize=65536)
def word_set(name: str) -> frozenset[str]:
    """The words of a name without their order."""
    return frozenset(words(name))


def snake(name: str) -> str:
    """`OrderQueue` -> `order_queue`."""
    return "_".join(words(name))
