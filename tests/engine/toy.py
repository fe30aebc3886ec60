"""A toy tokenizer and a toy model. The model copies from what it sees: it looks for the last place where the same words
stood before and goes on as it went on there. What it sees are the pages, as with the real one."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

PIECE = re.compile(r" ?[A-Za-z]{1,4}| ?[0-9]|\n|\s|[^\w\s]|\w", re.UNICODE)
END, BEGIN = 0, 1


class Tokenizer:
    """Pieces of up to four letters, single digits and signs; ids in order of first appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = ["", ""]

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Text to ids, with a leading begin mark when `special`."""
        ids = [BEGIN] if special else []
        for piece in PIECE.findall(text):
            number = self._ids.get(piece)
            if number is None:
                number = self._ids[piece] = len(self._pieces)
                self._pieces.append(piece)
            ids.append(number)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text; unknown ones to nothing."""
        return "".join(self._pieces[number] if 0 <= number < len(self._pieces) else "" for number in ids)


def generate(seen: array[int], room: int) -> list[int]:
    """Up to `room` further tokens, by copying what followed the longest known ending before."""
    text = array("i", seen)
    made: list[int] = []
    while len(made) < room:
        following = _follow(text)
        if following is None or following == END:
            break
        made.append(following)
        text.append(following)
    return made


def _follow(text: array[int]) -> int | None:
    data = text.tobytes()
    width = text.itemsize
    for length in (12, 8, 5, 3, 2, 1):
        if len(text) <= length:
            continue
        ending = data[-length * width :]
        at = data.rfind(ending, 0, len(data) - width)
        while at != -1 and at % width:
            at = data.rfind(ending, 0, at + len(ending) - 1)
        if at != -1:
            return text[at // width + length]
    return None
