"""What a file's bytes must look like before a code check has it parsed: a search costs a tenth of a parser.

Each pattern begins with a literal, which the `re` module searches fast. A shape may be wider than the check, never
narrower: what it leaves out is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from auditor.checks.code_params import AdmitParams, SlotParams, SplitParams, StatusParams, TransferParams
from auditor.model.records import dataclass

if TYPE_CHECKING:
    from auditor.checks.code_index import CodeIndex
    from auditor.checks.code_words import StateWords

Pattern = re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Shape:
    """A piece of source is of interest where one of `any_of` is found in it, and one of `also` where there are some.
    Of a whole file less is asked first, for speed: that its path has `where` in it and not `aside`, that it is one of
    `paths` or holds one of `words`, that `first` is found in it."""

    any_of: tuple[Pattern, ...]
    also: tuple[Pattern, ...] = ()
    words: tuple[bytes, ...] = ()
    paths: frozenset[str] | None = None
    first: Pattern | None = None
    where: re.Pattern[str] | None = None
    aside: re.Pattern[str] | None = None

    def holds(self, data: bytes, start: int = 0, end: int | None = None) -> bool:
        """Whether the bytes from `start` to `end` have this shape."""
        end = len(data) if end is None else end
        for pattern in self.any_of:  # a loop, because this is asked a hundred thousand times
            if pattern.search(data, start, end):
                break
        else:
            return False
        return not self.also or any(pattern.search(data, start, end) for pattern in self.also)

    def holds_file(self, path: str, data: bytes) -> bool:
        """Whether a whole file has this shape."""
        if (self.where is not None and not self.where.search(path)) or (self.aside and self.aside.search(path)):
            return False
        chosen = not self.words and self.paths is None
        if not (chosen or path in (self.paths or ()) or any(word in data for word in self.words)):
            return False
        return (self.first is None or self.first.search(data) is not None) and self.holds(data)


# Nothing serves from here: tests, benchmarks, simulations, what only watches.
ASIDE_PATHS = re.compile(
    r"(^|/)(tests?|testing|benchmarks?|examples?|simulat\w*|observability|metrics|telemetry|debug\w*)(/|$)|(^|/)(test_|bench)[^/]*$|_test\.\w+$"
)
# Where tests stand. A single file given by name has no folder; the snippets and a hook's file list come like that.
TEST_PATHS = re.compile(
    r"^[^/]*$|(^|/)(tests?|testing|e2e|integration|kits?)(/|$)|(^|/)test_[^/]*$|_test\.py$|(^|/)conftest\.py$"
)

FEW = 8  # words; more of them are searched as fast by the pattern alone


def _few(texts: Iterable[str]) -> tuple[bytes, ...]:
    encoded = {text.encode() for text in texts}
    found = tuple(sorted(word for word in encoded if not any(other in word and other != word for other in encoded)))
    return found if len(found) <= FEW else ()


def _any_of(words: Iterable[str]) -> bytes:
    return b"|".join(re.escape(word.encode()) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def _upper(words: tuple[str, ...]) -> bytes:
    return rb"(?:[A-Z0-9]+_)*(?:" + _any_of(words).upper() + rb")(?:_[A-Z0-9_]+)?\b"


def _firsts(words: tuple[str, ...]) -> bytes:
    return "".join(sorted({word[0] for word in words})).encode()


@lru_cache(maxsize=4)
def guard_shape(states: StateWords) -> Shape:
    """What any test of being over looks like."""
    over, ends = _any_of(states.over), (*states.over, *states.refused)
    either = _any_of(ends)
    stems = _any_of((*states.over, *states.reason))
    capital = b"|".join(re.escape(word.capitalize().encode()) for word in sorted(set(ends)))
    camel = b"|".join(re.escape(word.capitalize().encode()) for word in sorted({*states.over, *states.reason}))
    # The look-ahead for a first letter spares the long alternation at nearly every dot of a file.
    return Shape(
        (
            re.compile(
                rb"\.(?=[ihw_" + _firsts((*states.over, *states.reason)) + rb"])(?:is_|has_|was_|_)*(?:" + stems + rb")"
                rb"(?:_(?:reason|at|by|as|with|cause|time))?\b"
            ),
            re.compile(rb"\.(?=[A-Z])" + _upper(ends)),
            re.compile(
                rb"\.(?=[A-Z])(?:Is|Has|Was|[A-Z][a-z]+)??(?:" + capital + rb"|" + camel + rb")(?:Reason|At)?\b"
            ),
            re.compile(
                rb"= (?=[\"'A-Z])(?:[\"'](?:"
                + either
                + rb"|"
                + _any_of(ends).upper()
                + rb")[\"']|"
                + _upper(ends)
                + rb")"
            ),
            re.compile(rb"is (?=n?o?t? ?[A-Z])(?:not )?" + _upper(ends)),
            re.compile(rb"[\[][\"'](?:is_)?(?:" + either + rb")[\"']"),
            re.compile(rb"\([\"'](?:" + over + rb")[\"']"),
            re.compile(rb"is_(?:\w+_)?(?:" + over + rb")\("),
            re.compile(rb"case [^\n]*(?i:" + either + rb")"),
        ),
        aside=ASIDE_PATHS,
    )


def proven_shape(params: AdmitParams, index: CodeIndex) -> Shape | None:
    """Tests that a second verdict is proven for: of a split type, or of an enumeration that has a refusal as well.
    `None` where the tree has neither."""
    states = params.states
    asked = {name for split in index.splits for name in (*split.predicates, split.reads)}
    owners = {
        enum.name
        for found in index.enums.values()
        for enum in found
        # One end that a test may name, and a refusal beside it.
        if any(map(states.is_refused, enum.members)) and sum(map(states.is_final, enum.members)) > 1
    }
    owners |= {name.rpartition(".")[2] for name in params.known_enums}
    owners |= {alias for alias, name in index.aliases.items() if name in owners}
    patterns = []
    if asked:
        patterns.append(re.compile(rb"[.\"'](?:" + _any_of(asked) + rb")\b"))
    if owners:
        # It begins at the dot, which is found fast, and looks back.
        behind = b"|".join(rb"(?<=\b" + re.escape(name.encode()) + rb"\.)" for name in sorted(owners))
        patterns.append(re.compile(rb"\.(?=[A-Z])(?:" + behind + rb")"))
    if not patterns:
        return None
    few = _few(asked)
    # Which files name a member is known already.
    return Shape(tuple(patterns), words=few, paths=index.naming if few or not asked else None, aside=ASIDE_PATHS)


def door_shape(params: SplitParams, index: CodeIndex) -> Shape | None:
    """A parameter that is annotated with a split type, in a function that stores something; or the type itself."""
    names = {split.name for split in index.splits}
    if not names:
        return None
    alternatives = _any_of(names)
    own = re.compile(rb"class (?:" + alternatives + rb")\b")
    return Shape(
        (re.compile(rb"def \w+\((?:[^()]|\([^()]*\))*?\b(?:" + alternatives + rb")\b"), own),
        (
            re.compile(rb"self\.[^\n]*?\.(?:" + _any_of(params.admits.storing) + rb")\w*\("),
            re.compile(rb"heappush\( *self\."),
            re.compile(rb"self\.[^\n=]*\] *= *[^=]"),
            re.compile(rb"self\.[^\n=]*\+="),
            re.compile(rb"self\.[\w.]+ *= *(?:\(\n|[^\n]*[-+|*] )"),
            own,
        ),
        first=re.compile(rb"(?:" + alternatives + rb")\b"),
    )


def predicate_shape(states: StateWords) -> Shape:
    """A terminal predicate: where the index begins. What else it needs follows from what is found there."""
    return Shape(
        (
            re.compile(
                rb"def (?:_|is_|has_|was_|request_|req_|job_|task_)*(?:" + _any_of(states.over) + rb")(?:_\w+)?\(self"
            ),
        )
    )


_METHOD_END = re.compile(rb"\n(?![ \t]*\n|[ \t]{5,}|\t\t|[ \t]*[#)])")
_SAID = re.compile(rb"#[^\n]*|\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''")
_FIELD = re.compile(rb"\bself\.(\w+)|getattr\(\s*self\b")


def single_field(shape: Shape, data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether a terminal predicate in a piece rests on one field of `self`: only such a verdict can be split."""
    end = len(data) if end is None else end
    for match in shape.any_of[0].finditer(data, start, end):
        indent = match.start() - data.rfind(b"\n", 0, match.start()) - 1
        last = _METHOD_END.search(data, data.find(b"\n", match.end(), end) + 1 or end, end) if indent <= 4 else None
        body = _SAID.sub(b"", data[match.end() : last.start() if last is not None else end])
        found = _FIELD.findall(body)
        if len(set(found)) == 1 or b"" in found:
            return True
    return False


@lru_cache(maxsize=4)
def member_shape(states: StateWords) -> Shape:
    """A member that names an end, of any enumeration: `.DONE`, `.Done`, `.FINISHED_LENGTH`."""
    ends = (*states.over, *states.refused)
    capital = _any_of(word.capitalize() for word in ends)
    return Shape((re.compile(rb"\.(?=[A-Z])(?:" + _upper(ends) + rb"|(?:[A-Z][a-z]+)??(?:" + capital + rb")\b)"),))


_OWNER = re.compile(rb"[A-Z]\w*\Z")


def enum_names(states: StateWords, data: bytes) -> set[str]:
    """The types of which a file names a member that says an end: `Status` for `Status.DONE`."""
    found = set()
    for match in member_shape(states).any_of[0].finditer(data):
        owner = _OWNER.search(data, max(0, match.start() - 80), match.start())
        if owner is not None:
            found.add(owner.group().decode("ascii", "replace"))
    return found


def class_shape(names: Iterable[str]) -> Shape:
    """The definitions of the types of these names."""
    return Shape((re.compile(rb"class (?:" + _any_of(names) + rb")\b"),))


def use_shape(names: Iterable[str]) -> Shape:
    """A field or a call of one of these names."""
    return Shape((re.compile(rb"[. \"'](?:" + _any_of(names) + rb")\b"),), words=_few(names))


def _method(starts: Iterable[str]) -> tuple[Pattern, ...]:
    return (re.compile(rb"def _*(?:" + _any_of(starts) + rb")\w*\("),)


def release_shape(params: SlotParams) -> Shape:
    """A method that gives something back by its name, and something that goes into a list."""
    return Shape(
        (*_method(params.releasing), re.compile(rb"def _*(?:[a-z]+_back|check_in)\w*\(")),
        (
            re.compile(rb"\.(?:append|extend|add|put|push|insert|update|enqueue|write|offer|return|try_)"),
            re.compile(rb"(?:heappush|insort\w*)\("),
            re.compile(rb"\+="),
            re.compile(rb"\] *= *[^=]"),
            re.compile(rb"= *[^\n]*(?:[-+|*(\[]|$)", re.MULTILINE),
        ),
    )


def take_shape(params: SlotParams) -> Shape:
    """A method that hands something out by its name, and a take from a list."""
    return Shape(
        _method((*params.taking, "pre")),
        (
            re.compile(rb"\.(?:pop|get_nowait|dequeue)"),
            re.compile(rb"(?:heappop|islice)\( *self\."),
            re.compile(rb"self\.[^\n]*?\[ *:"),
        ),
    )


def transfer_shape(params: TransferParams) -> Shape:
    """A state that says all has arrived."""
    success = _any_of(params.success)
    capital = _any_of(word.capitalize() for word in params.success)
    return Shape(
        (
            re.compile(rb"\.(?=[A-Z])(?:[A-Za-z]+_)*(?:" + success.upper() + rb"|" + capital + rb")\b"),
            re.compile(rb"= (?:[\"'](?i:" + success + rb")[\"'])"),
            re.compile(rb"mark_\w*(?:" + success + rb")"),
        )
    )


def status_shape(params: StatusParams) -> Shape:
    """A path that generates, in a text."""
    endpoints = _any_of(entry.lstrip("/") for entry in params.endpoints)
    return Shape((re.compile(rb"/(?:" + endpoints + rb")[\"'?]"),), where=TEST_PATHS)
