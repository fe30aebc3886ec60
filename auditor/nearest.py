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


def nearest_name(word: str, known: Iterable[str]) -> str | None:
    """The catalogue's name that was most likely meant, by its whole or by what stands behind the organisation, without
    regard to case."""
    spelled = {name.lower(): name for name in sorted(known, key=len, reverse=True)}
    behind = {name.rpartition("/")[2]: whole for name, whole in spelled.items()}
    for names, asked in ((spelled, word.lower()), (behind, word.lower().rpartition("/")[2])):
        near = nearest(asked, names)
        if near is not None:
            return names[near]
    return None


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean ...?`, or what to do when nothing is near."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else otherwise
