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
from auditor.model.records import dataclass, replace

if TYPE_CHECKING:
    from auditor.checks.code_index import CodeIndex
    from auditor.checks.code_words import StateWords
    from auditor.model.spans import SourceFile

Pattern = re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Paths:
    """Files by where they stand (a pattern for their folder) or by what they are called."""

    folders: re.Pattern[str]
    names: re.Pattern[str]

    def hold(self, path: str) -> bool:
        """Whether a path is one of them."""
        folder, _, name = path.rpartition("/")
        known = _folders.setdefault(self.folders.pattern, {})
        found = known.get(folder)
        if found is None:
            found = known[folder] = self.folders.search(folder) is not None
        return found or self.names.search(name) is not None


_folders: dict[str, dict[str, bool]] = {}  # by pattern: a tree has six times fewer folders than files


@dataclass(frozen=True, slots=True)
class Shape:
    """A piece of source is of interest where one of `any_of` is found in it, and one of `also` where there are some;
    with `within`, in the function that `any_of` finds the head of.
    Of a whole file less is asked first, for speed: that its path has `where` in it and not `aside`, that it is one of
    `paths` or holds one of `words`, that it defines a function whose name begins as `defines`, that it names a member
    that begins as `member`, that `first` is found in it."""

    any_of: tuple[Pattern, ...]
    also: tuple[Pattern, ...] = ()
    words: tuple[bytes, ...] = ()
    paths: frozenset[str] | None = None
    first: Pattern | None = None
    defines: Pattern | None = None
    member: Pattern | None = None
    where: Paths | None = None
    aside: Paths | None = None
    within: bool = False

    def holds(self, data: bytes, start: int = 0, end: int | None = None) -> bool:
        """Whether the bytes from `start` to `end` have this shape."""
        end = len(data) if end is None else end
        if self.within:
            return any(
                pattern.search(data, match.end(), last)
                for match in self.any_of[0].finditer(data, start, end)
                for last in (_end_of_function(data, match.start(), match.end(), end),)
                for pattern in self.also
            )
        for pattern in self.any_of:  # a loop, because this is asked a hundred thousand times
            if pattern.search(data, start, end):
                break
        else:
            return False
        return not self.also or any(pattern.search(data, start, end) for pattern in self.also)

    def holds_file(self, source: SourceFile) -> bool:
        """Whether a whole file has this shape."""
        path, data = source.path, source.data
        if self.where is not None and not self.where.hold(path):
            return False
        chosen = not self.words and self.paths is None
        if not (chosen or path in (self.paths or ()) or any(word in data for word in self.words)):
            return False
        if self.aside is not None and self.aside.hold(path):
            return False
        if self.defines is not None and not _any_begins(self.defines, source.found(DEFINED)):
            return False
        if self.member is not None and not _any_begins(self.member, source.found(MEMBERS)):
            return False
        return (self.first is None or self.first.search(data) is not None) and self.holds(data)


# The names of functions and of members: one search over a file each, which then serves every shape that asks for names.
DEFINED = re.compile(rb"def (\w+)")
MEMBERS = re.compile(rb"\.([A-Z]\w*)")


_begun: dict[bytes, tuple[set[bytes], set[bytes]]] = {}  # by pattern: names that begin so, and names that do not


def _any_begins(pattern: Pattern, names: frozenset[bytes]) -> bool:
    begin, other = _begun.setdefault(pattern.pattern, (set(), set()))
    if not begin.isdisjoint(names):
        return True
    fresh = names - other  # next to none: most files of a tree use the same names
    found = {name for name in fresh if pattern.match(name)}
    begin |= found
    other |= fresh - found
    return bool(found)


@lru_cache(maxsize=64)
def _not_within(indent: int) -> Pattern:
    return re.compile(rb"\n[ \t]{0,%d}(?=[^\s#)\]}])" % indent)


def _end_of_function(data: bytes, at: int, after: int, end: int) -> int:
    """Where the function ends whose `def` stands at this place: at the next line that is indented no more than its own,
    outside of texts in triple quotes."""
    head = data[data.rfind(b"\n", 0, at) + 1 : at]
    quotes, last = 0, after
    for match in _not_within(len(head) - len(head.lstrip())).finditer(data, after, end):
        quotes += data.count(b'"""', last, match.start()) + data.count(b"'''", last, match.start())
        last = match.start()
        if quotes % 2 == 0:
            return last
    return end


# Nothing serves from here: tests, benchmarks, simulations, what only watches.
ASIDE_PATHS = Paths(
    re.compile(
        r"(?:^|/)(?:tests?|testing|benchmarks?|examples?|simulat\w*|observability|metrics|telemetry|debug\w*)(?:/|$)"
    ),
    re.compile(r"^(?:test_|bench)|_test\.\w+$"),
)
# Where tests stand. A single file given by name has no folder; the snippets and a hook's file list come like that.
TEST_PATHS = Paths(
    re.compile(r"^$|(?:^|/)(?:tests?|testing|e2e|integration|kits?|(?:[\w.]*\.)?(?:[A-Z][a-z]+)?Tests)(?:/|$)"),
    re.compile(r"^test_|_test\.py$|^conftest\.py$|Tests?\.cs$"),
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


def _open_types(params: AdmitParams, index: CodeIndex) -> set[str]:
    """The enumerations that have a refusal beside an end that a test may name."""
    states = params.states
    owners = {
        enum.name
        for found in index.enums.values()
        for enum in found
        # One end that a test may name, and a refusal beside it.
        if any(map(states.is_barred, enum.members)) and sum(map(states.is_end, enum.members)) > 1
    }
    owners |= {name.rpartition(".")[2] for name in params.known_enums}
    return owners | {alias for alias, name in index.aliases.items() if name in owners}


def _open_sets(params: AdmitParams, index: CodeIndex) -> set[str]:
    """The named sets of states of such enumerations."""
    owners = _open_types(params, index)
    return {
        name for name, found in index.sets.items() if any(entry.enum.rpartition(".")[2] in owners for entry in found)
    }


def _type_patterns(owners: set[str]) -> tuple[Pattern, ...]:
    if not owners:
        return ()
    # It begins at the dot, which is found fast, and looks back.
    behind = b"|".join(rb"(?<=\b" + re.escape(name.encode()) + rb"\.)" for name in sorted(owners))
    return (re.compile(rb"\.(?=[A-Z])(?:" + behind + rb")"),)


def _set_patterns(names: set[str]) -> tuple[Pattern, ...]:
    if not names:
        return ()
    known = rb"(?:" + _any_of(names) + rb")\b"
    return re.compile(rb" in [\w.(*{]*?\b" + known), re.compile(rb"\b" + known + rb"\.Contains\(")


def over_shape(params: AdmitParams, index: CodeIndex) -> Shape:
    """What any test of being over looks like; that of an enumeration with a refusal, or of membership in a named set of
    its states, whatever the state is called."""
    shape = guard_shape(params.states)
    more = (*_type_patterns(_open_types(params, index)), *_set_patterns(_open_sets(params, index)))
    return replace(shape, any_of=(*shape.any_of, *more))


def proven_shape(params: AdmitParams, index: CodeIndex) -> Shape | None:
    """Tests that a second verdict is proven for: of a split type, or of an enumeration that has a refusal as well.
    `None` where the tree has neither."""
    asked = {name for split in index.splits for name in (*split.predicates, split.reads)}
    patterns: list[Pattern] = []
    if asked:
        # The name stands first in the pattern, so that it is searched for as a literal; what is before it comes then.
        encoded = [re.escape(name.encode()) for name in sorted(asked)]
        patterns += [re.compile(name + rb"(?<=[.\"']" + name + rb")\b") for name in encoded]
    patterns += _type_patterns(_open_types(params, index))
    if not patterns:
        return None
    sets = _open_sets(params, index)
    patterns += _set_patterns(sets)
    few = _few(asked | sets)
    # Which files name a member is known already.
    paths = index.naming if few or not (asked or sets) else None
    return Shape(tuple(patterns), words=few, paths=paths, aside=ASIDE_PATHS)


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


@lru_cache(maxsize=4)
def predicate_shape(states: StateWords) -> Shape:
    """A terminal predicate: where the index begins. What else it needs follows from what is found there."""
    name = rb"(?:_|is_|has_|was_|request_|req_|job_|task_)*(?:" + _any_of((*states.over, *states.served)) + rb")"
    return Shape((re.compile(rb"def " + name + rb"(?:_\w+)?\(self"),), defines=re.compile(name))


_METHOD_END = re.compile(rb"\n(?![ \t]*\n|[ \t]{5,}|\t\t|[ \t]*[#)])")
_SAID = re.compile(rb"#[^\n]*|\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''")
_FIELD = re.compile(rb"\bself\.(\w+)|getattr\(\s*self\b")


def single_field(shape: Shape, data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether a terminal predicate in a piece rests on one field of `self`, which is set again after it was made: only
    such a verdict can be split, into it and the one that is folded into it later."""
    end = len(data) if end is None else end
    for match in shape.any_of[0].finditer(data, start, end):
        indent = match.start() - data.rfind(b"\n", 0, match.start()) - 1
        last = _METHOD_END.search(data, data.find(b"\n", match.end(), end) + 1 or end, end) if indent <= 4 else None
        body = _SAID.sub(b"", data[match.end() : last.start() if last is not None else end])
        found = set(_FIELD.findall(body))
        if b"" in found or (len(found) == 1 and _set_again(found.pop(), data, start, end)):
            return True
    return False


_INIT = re.compile(rb"def __init__\(")


def _set_again(name: bytes, data: bytes, start: int, end: int) -> bool:
    """Whether a field of `self` is assigned to in another method than `__init__`."""
    made = [
        (match.start(), _end_of_function(data, match.start(), match.end(), end))
        for match in _INIT.finditer(data, start, end)
    ]
    sets = re.compile(rb"self\." + re.escape(name) + rb"\b[^=\n!<>]*=(?!=)")
    return any(
        not any(first <= match.start() < last for first, last in made) for match in sets.finditer(data, start, end)
    )


@lru_cache(maxsize=4)
def member_shape(states: StateWords) -> Shape:
    """A member that names an end, of any enumeration: `.DONE`, `.Done`, `.FINISHED_LENGTH`."""
    ends = (*states.over, *states.refused, *states.served, *states.ruined)
    capital = _any_of(word.capitalize() for word in ends)
    name = rb"(?:" + _upper(ends) + rb"|(?:[A-Z][a-z]+)??(?:" + capital + rb")\b)"
    return Shape((re.compile(rb"\.(?=[A-Z])" + name),), member=re.compile(name), aside=ASIDE_PATHS)


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


def _method(starts: Iterable[str], more: bytes = b"") -> tuple[Pattern, Pattern]:
    """The definition of a function whose name begins with one of the words, and the name alone."""
    name = rb"_*(?:" + _any_of(starts) + more + rb")"
    return re.compile(rb"def " + name + rb"\w*\("), re.compile(name)


def release_shape(params: SlotParams) -> Shape:
    """A method that gives something back by its name, and something that goes into a list."""
    method, name = _method(params.releasing, rb"|[a-z]+_back|check_in")
    return Shape(
        (method,),
        (
            re.compile(rb"\.(?:append|extend|add|put|push|insert|update|enqueue|write|offer|return|try_)"),
            re.compile(rb"(?:heappush|insort\w*)\("),
            re.compile(rb"\+="),
            re.compile(rb"\] *= *[^=]"),
            re.compile(rb"= *[^\n]*(?:[-+|*(\[]|$)", re.MULTILINE),
        ),
        defines=name,
        within=True,
    )


def take_shape(params: SlotParams) -> Shape:
    """A method that hands something out by its name, and a take from a list."""
    method, name = _method((*params.taking, "pre"))
    return Shape(
        (method,),
        (
            re.compile(rb"\.(?:pop|get_nowait|dequeue)"),
            re.compile(rb"(?:heappop|islice)\( *self\."),
            re.compile(rb"self\.[^\n]*?\[ *:"),
        ),
        defines=name,
        within=True,
    )


def transfer_shape(params: TransferParams) -> Shape:
    """A state that says all has arrived."""
    success = _any_of(params.success)
    capital = _any_of(word.capitalize() for word in params.success)
    return Shape(
        (
            re.compile(rb"\.(?=[A-Z])(?:[A-Za-z]+_)*(?:" + success.upper() + rb"|" + capital + rb")\b"),
            re.compile(rb"[=(,:] ?(?:[\"'](?i:" + success + rb")[\"'])"),
            re.compile(rb"mark_\w*(?:" + success + rb")"),
        )
    )


def status_shape(params: StatusParams) -> Shape:
    """A path that generates, in a text."""
    endpoints = _any_of(entry.lstrip("/") for entry in params.endpoints)
    # The address may stand apart from the test: in a constant, a fixture, a helper.
    return Shape((re.compile(rb"/(?:" + endpoints + rb")[\"'?]"),), (re.compile(rb"def [tT]est"),), where=TEST_PATHS)
