"""The nearest right spelling of a wrong word, for error messages."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant: close by letters, or holding what was written; `None` without one."""
    from difflib import get_close_matches

    words = sorted(known)
    close = get_close_matches(word, words, 1)
    if close:
        return close[0]
    held = [candidate for candidate in words if word and (word.lower() in candidate or candidate in word.lower())]
    return held[0] if held else None


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean ...?`, or what to do when nothing is near."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else otherwise
