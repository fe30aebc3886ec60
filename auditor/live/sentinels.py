"""Sentinels and the prompts that carry them, made from a seed: a run can be repeated, and nothing real is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from auditor.model.records import dataclass

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
CODE_LENGTH = 12  # 60 bits: never by chance in a model's output
SENTENCE = " The river runs past the old mill and on to the sea."
WORDS = (" the", " a", " of", " and", " to")  # filler of text prompts: one token each in the usual vocabularies


@dataclass(frozen=True, slots=True)
class Sentinel:
    """A code that appears in one prompt of one run and nowhere else. `name` is the name of the prompt."""

    name: str
    register: str
    code: str

    @property
    def record(self) -> str:
        """The line that states the code."""
        return f"Register {self.register} lists the code {self.code}.\n"

    @property
    def question(self) -> str:
        """The line that a model goes on with the code."""
        return f"\nRegister {self.register} lists the code"


def sentinel(seed: str, name: str) -> Sentinel:
    """The sentinel of one prompt."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    letters = "".join(ALPHABET[byte % 24] for byte in digest[:4])
    code = "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[4 : 4 + CODE_LENGTH])
    return Sentinel(name, letters, code)


def comes_back(text: str, own: Sentinel, room: int) -> bool:
    """Whether the answer is the code that was asked for. With `room` for a few tokens only, its beginning is enough:
    four characters or more, and nothing else."""
    if own.code in text:
        return True
    start = text.strip().strip(".\"'`")
    return room < CODE_LENGTH + 4 and 4 <= len(start) < CODE_LENGTH and own.code.startswith(start)


def foreign(text: str, own: Sentinel, all_sentinels: Sequence[Sentinel]) -> tuple[Sentinel, ...]:
    """The sentinels of other prompts that stand in a text. Any one is a leak."""
    return tuple(other for other in all_sentinels if other.code != own.code and other.code in text)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The token ids that prompts are put together from: what the tokenizer sets before a text, and filler."""

    begin: tuple[int, ...]
    filler: tuple[int, ...]


def token_prompt(pieces: Pieces, record: Sequence[int], question: Sequence[int], length: int) -> list[int] | None:
    """A prompt of exactly `length` tokens: its record over and over, filler for the rest, the question; `None` when it
    does not fit. Whichever page of it is read by somebody else, the code is in it."""
    spare = length - len(pieces.begin) - len(question)
    records, rest = divmod(spare, len(record))
    if records < 1:
        return None
    filler = (list(pieces.filler) * (rest // len(pieces.filler) + 1))[:rest]
    return [*pieces.begin, *(list(record) * records), *filler, *question]


def text_prompt(own: Sentinel, word: str, records: int, words: int, *, chat: bool = False) -> str:
    """The same as text, with so many records and filler words; a chat model is asked in a sentence."""
    question = f"\nWhich code does register {own.register} list? Answer with the code alone." if chat else own.question
    return own.record * records + word.strip() + word * words + question
