"""Prompts of an exact length in tokens, counted by the engine itself: with its tokenizer, or by its usage figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from auditor.live.generation import Api, Prompt, generate, tokenize
from auditor.live.http import NoAnswer, Session
from auditor.live.sentinels import SENTENCE, WORDS, Pieces, Sentinel, sentinel, text_prompt, token_prompt
from auditor.model.records import dataclass, field

Kind = Literal["plant", "under", "over"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Lengths in tokens. `limit` is the first one that must be refused, min(context, pool) - 6; `edge` the longest that
    the front lets through, `pool` what decode holds."""

    limit: int
    context: int
    edge: int | None = None
    pool: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """One request to be made."""

    name: str
    kind: Kind
    length: int
    room: int


@dataclass(frozen=True, slots=True)
class Way:
    """How prompts are sent: the API, and the token ids that they are made of or the filler word of text prompts."""

    api: Api
    counted: Literal["tokenizer", "usage"]
    pieces: Pieces | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and to which model to send; `tokenizers` are addresses that may answer /tokenize, the front first."""

    front: str
    model: str
    tokenizers: tuple[str, ...]


@dataclass
class Run:
    """One run: the seed, what was sent so far, and how to tell that something happens."""

    seed: str
    place: Place
    limits: Limits
    say: Callable[[str], None] = lambda _: None
    sentinels: list[Sentinel] = field(default_factory=list)
    tokenizer: str = ""


async def find_pieces(open_session: Session, run: Run) -> Pieces | None:
    """What token prompts are made of, from the first address that has a tokenizer; `None` when none has."""
    for base in run.place.tokenizers:
        try:
            plain = await tokenize(open_session, base, run.place.model, SENTENCE, False)
            special = await tokenize(open_session, base, run.place.model, SENTENCE, True)
        except NoAnswer:
            continue
        if plain and special[-len(plain) :] == plain:
            run.tokenizer = base
            return Pieces(tuple(special[: -len(plain)]), tuple(plain))
        if plain:
            run.tokenizer = base
            return Pieces((), tuple(plain))
    return None


async def make_prompt(
    open_session: Session, run: Run, way: Way, asked: Probe, own: Sentinel
) -> tuple[Prompt | None, int]:
    """The prompt of a probe and its length; `None` when the engine gives no way to count it."""
    if way.pieces is not None:
        try:
            record = await tokenize(open_session, run.tokenizer, run.place.model, own.record, False)
            question = await tokenize(open_session, run.tokenizer, run.place.model, own.question, False)
        except NoAnswer:
            return None, 0
        if not record or not question:
            return None, 0
        return token_prompt(way.pieces, record, question, asked.length), asked.length
    # By usage: this very prompt is counted short, twice, which gives the tokens of one more record; a further word is
    # one token (`find_word`).
    few, many, words, chat = 2, 10, 16, way.api == "chat"
    low = await _count(open_session, run, way, text_prompt(own, way.word, few, words, chat=chat))
    high = await _count(open_session, run, way, text_prompt(own, way.word, many, words, chat=chat))
    if low is None or high is None or high <= low or (high - low) % (many - few) or asked.length < low:
        return None, 0
    records, rest = divmod(asked.length - low, (high - low) // (many - few))
    return text_prompt(own, way.word, few + records, words + rest, chat=chat), asked.length


async def _count(open_session: Session, run: Run, way: Way, text: str) -> int | None:
    """The tokens of a prompt as the usage figures count them."""
    reply = await generate(open_session, run.place.front, way.api, run.place.model, text, 1)
    return reply.prompt_tokens if reply.status == 200 else None


async def find_word(open_session: Session, run: Run, way: Way) -> Way | None:
    """A filler word of which the usage figures say that one more is exactly one token more."""
    own = sentinel(run.seed, f"{way.api}/count")
    for word in WORDS:
        counts = []
        for words in (64, 192, 320):
            count = await _count(open_session, run, way, text_prompt(own, word, 2, words, chat=way.api == "chat"))
            if count is None:
                return None
            counts.append(count)
        if (counts[1] - counts[0], counts[2] - counts[1]) == (128, 128):
            return Way(way.api, "usage", None, word)
    return None
