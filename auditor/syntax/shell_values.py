"""What shell words mean: evaluated text in fragments, variables as the same file sets them, field splitting."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from auditor.model.facts import Definition, Hole, Unresolved, Value
from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import Literal, Piece, Substitution, Variable, WordToken
from auditor.syntax.words import Word

MAX_TEXT = 200_000
"""How long a text may grow by expansion, in characters; past it variables are left as holes."""
MAX_FIELDS = 4_000
"""How many words one array or expansion may have."""
MAX_EXPANDED = 40_000
"""How many words all expansions of one text may give together; past it variables stay whole."""
MAX_WEIGHT = 8_000
"""How large the default of a variable may be: fragments, and 32 characters count as one; past it it is not known."""
MAX_DEPTH = 8
"""How deep defaults may stand in each other; deeper ones are flattened."""
MAX_FLAT = 4_000
"""How long a flattened default may be, in characters, and of how many fragments; past it it is not known."""
MAX_NODES = 500
"""How many parts a value from outside of the text may have, its defaults included; past it it is not known."""
LONG = 64
"""From how many parts on a variable that is added to is not evaluated again for each addition."""

Branch = tuple[tuple[int, int, bool | None], ...]
"""The conditional arms around a place, outermost first: block, arm, and whether the arm is taken (`None`: unknown)."""


class Fragment(NamedTuple):
    """A piece of an evaluated word: literal text, or a hole with its text as written. `offsets` are file offsets of the
    characters of `text`; `inner` is what the hole's default is made of; `weight` and `depth` are its size and how deep
    defaults stand in each other."""

    text: str
    offsets: Sequence[int]
    quoted: bool = False
    hole: Hole | None = None
    inner: tuple[Fragment, ...] | None = None
    weight: int = 1
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ShellWord(Word):
    """A word after expansion. `branch` is set where the word came from a conditional append to an array."""

    fragments: tuple[Fragment, ...] = ()
    branch: Branch = ()


@dataclass(slots=True)
class Binding:
    """One definition of a variable: `parts` for a scalar, `words` for an array, each with the arm that added it."""

    span: Span
    branch: Branch
    parts: list[tuple[tuple[Fragment, ...], Branch]] = field(default_factory=list)
    words: list[tuple[ShellWord, Branch]] | None = None


def mapped_of(fragments: Iterable[Fragment]) -> Mapped:
    """The text of fragments with the place of each character; holes as written."""
    text: list[str] = []
    offsets: list[int] = []
    for fragment in fragments:
        text.append(fragment.text)
        offsets.extend(fragment.offsets)
    offsets.append(offsets[-1] + 1 if offsets else 0)
    return Mapped("".join(text), offsets)


def value_of(fragments: Sequence[Fragment]) -> Value:
    """The value of a word: text, or `Unresolved` as soon as one fragment is a hole."""
    if len(fragments) == 1 and fragments[0].hole is None:
        return fragments[0].text
    if all(fragment.hole is None for fragment in fragments):
        return "".join(fragment.text for fragment in fragments)
    parts: list[str | Hole] = []
    for fragment in fragments:
        if fragment.hole is not None:
            parts.append(fragment.hole)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += fragment.text
        elif fragment.text:
            parts.append(fragment.text)
    return Unresolved("".join(fragment.text for fragment in fragments), tuple(parts))


def flatten(fragments: Iterable[Fragment], depth: int = 0) -> list[Fragment]:
    """Fragments with every hole that has a default replaced by what the default is made of."""
    flat: list[Fragment] = []
    for fragment in fragments:
        if fragment.inner is not None and depth < 20:
            inner = flatten(fragment.inner, depth + 1)
            if len(flat) + len(inner) > MAX_FIELDS:
                flat.append(fragment)
            else:
                flat.extend(inner)
        else:
            flat.append(fragment)
    return flat


def known_text(fragments: Iterable[Fragment]) -> str | None:
    """The text that stands when nothing outside of the file sets a variable; `None` when a hole has no default."""
    flat = flatten(fragments)
    if any(fragment.hole is not None for fragment in flat):
        return None
    return "".join(fragment.text for fragment in flat)


def leaf(word: Word, source: SourceFile) -> tuple[Value, Span]:
    """Where the text of a word comes from: of a word that is one variable, the place of its definition in this file
    (or of the default written at the use) and the value there; otherwise the word itself."""
    fragments = word.fragments if isinstance(word, ShellWord) else ()
    value, span = word.value, word.span
    for _ in range(20):
        if len(fragments) != 1 or fragments[0].inner is None:
            break
        inner = fragments[0].inner
        if not any(fragment.text for fragment in inner) or not any(len(fragment.offsets) for fragment in inner):
            break
        fragments = inner
        # the value keeps the outermost holes that another file may still set; the place is the text to change
        if value is word.value and fragments[0].hole is not None:
            value = value_of(fragments)
        span = span_of(fragments, source)
    return value, span


def default_literal(word: ShellWord) -> Mapped | None:
    """The text written as the default of a word that is one variable, when nothing in the file sets the variable."""
    fragments = word.fragments
    while len(fragments) == 1 and (hole := fragments[0].hole) is not None:
        inner = fragments[0].inner
        if inner is None or hole.origin is not None:
            return None
        fragments = inner
    return mapped_of(fragments) if fragments and all(part.hole is None for part in fragments) else None


def span_of(fragments: Sequence[Fragment], source: SourceFile) -> Span:
    """The smallest span that covers fragments in the order of the file."""
    offsets = [offset for fragment in fragments for offset in (*fragment.offsets[:1], *fragment.offsets[-1:])]
    return source.span(min(offsets), max(offsets) + 1) if offsets else source.span(0, 0)


class Scope:
    """The variables of one shell text while it is read from top to bottom."""

    def __init__(self, source: SourceFile, outer: Mapping[str, Definition] | None = None) -> None:
        self.source = source
        self.outer = outer or {}
        self.bindings: dict[str, list[Binding]] = {}
        self.exported: dict[str, None] = {}
        self.branch: Branch = ()
        self.found: list[Substitution] = []
        self.blocks = 0
        self.budget = MAX_EXPANDED

    # -- definitions --------------------------------------------------------------------------------------------

    def bind(self, name: str, binding: Binding) -> None:
        kept = [old for old in self.bindings.get(name, []) if old.branch[: len(binding.branch)] != binding.branch]
        if binding.branch and any(state is False for _, _, state in binding.branch):
            kept = self.bindings.get(name, [])
        self.bindings[name] = [*kept[-30:], binding]

    def assign(self, name: str, fragments: tuple[Fragment, ...], span: Span, *, append: bool = False) -> None:
        """`NAME=text` or `NAME+=text`."""
        first = fragments[0].hole if fragments else None
        if not append and first is not None and first.name == name and first.origin is not None and len(fragments) > 1:
            append, fragments = True, fragments[1:]  # NAME="$NAME more" adds to what was there
        current = self.current(name) if append else None
        if current is not None and current.words is None:
            if len(current.parts) < MAX_FIELDS:
                current.parts.append((fragments, self.branch))
            return
        if append and current is None and self.bindings.get(name):
            return
        self.bind(name, Binding(span, self.branch, [(fragments, self.branch)]))

    def assign_array(self, name: str, words: list[ShellWord], span: Span, *, append: bool = False) -> None:
        """`NAME=(...)` or `NAME+=(...)`."""
        current = self.current(name) if append else None
        if current is not None and current.words is not None:
            if len(current.words) + len(words) < MAX_FIELDS:
                current.words.extend((word, self.branch) for word in words)
            return
        self.bind(name, Binding(span, self.branch, words=[(word, self.branch) for word in words]))

    def reaches(self, branch: Branch) -> bool | None:
        """Whether what was said in `branch` holds here: `True`, `False`, or `None` for a conditional arm that may have
        been taken."""
        here = {block: arm for block, arm, _ in self.branch}
        answer: bool | None = True
        for block, arm, state in branch:
            if block in here:
                if here[block] != arm:
                    return False
            elif state is False:
                return False
            elif state is None:
                answer = None
        return answer

    def current(self, name: str) -> Binding | None:
        """The definition that holds here: the last one that certainly does, else the last one that may."""
        certain = possible = None
        for binding in self.bindings.get(name, ()):
            holds = self.reaches(binding.branch)
            if holds:
                certain, possible = binding, None
            elif holds is None:
                possible = binding
        return certain or possible

    def alternatives(self, name: str) -> list[Binding]:
        """All definitions that may hold here, in order."""
        found: list[Binding] = []
        for binding in self.bindings.get(name, ()):
            holds = self.reaches(binding.branch)
            if holds:
                found = [binding]
            elif holds is None:
                found.append(binding)
        return found

    def fragments(self, binding: Binding) -> tuple[Fragment, ...]:
        """What a definition amounts to here; of an array its first word, as a shell reads it."""
        if binding.words is not None:
            return binding.words[0][0].fragments if binding.words else ()
        return tuple(
            fragment for part, branch in binding.parts if self.reaches(branch) is not False for fragment in part
        )

    def array(self, name: str) -> list[ShellWord] | None:
        """The words of an array, those of arms that may have been taken included."""
        binding = self.current(name)
        if binding is None:
            return None
        if binding.words is None:
            return [self.word(self.fragments(binding), False, "")]
        return [word for word, branch in binding.words if self.reaches(branch) is not False]

    # -- evaluation ---------------------------------------------------------------------------------------------

    def word(self, fragments: tuple[Fragment, ...], quoted: bool, raw: str, span: Span | None = None) -> ShellWord:
        span = span or span_of(fragments, self.source)
        raw = raw or "".join(fragment.text for fragment in fragments)
        return ShellWord(value_of(fragments), span, raw, quoted, None, fragments)

    def new_block(self) -> int:
        """A number for one conditional construct."""
        self.blocks += 1
        return self.blocks

    def evaluate(self, pieces: Iterable[Piece]) -> tuple[Fragment, ...]:
        """Pieces as one text, without field splitting."""
        return tuple(fragment for piece in pieces for fragment in self.fragment(piece))

    def fragment(self, piece: Piece) -> tuple[Fragment, ...]:
        if isinstance(piece, Literal):
            return (Fragment(piece.text, piece.offsets, piece.quoted),)
        offsets = range(piece.start, piece.start + len(piece.written))
        if isinstance(piece, Substitution):
            self.found.append(piece)
            return (Fragment(piece.written, offsets, piece.quoted, Hole(piece.written)),)
        return self.variable(piece, offsets)

    def variable(self, piece: Variable, offsets: range) -> tuple[Fragment, ...]:
        def hole(inner: tuple[Fragment, ...] | None, origin: Span | None = None) -> Fragment:
            """The variable with what its default is made of; a default over the bounds is not known."""
            weight, depth = _size(inner or ())
            if inner is not None and depth > MAX_DEPTH and weight <= MAX_WEIGHT:
                inner = tuple(flatten(inner))
                weight, depth = _size(inner)
                if len(inner) > MAX_FLAT or sum(len(part.text) for part in inner) > MAX_FLAT:
                    inner = None
            if inner is None or weight > MAX_WEIGHT or depth > MAX_DEPTH:
                return Fragment(piece.written, offsets, piece.quoted, Hole(piece.name))
            made = Hole(piece.name, value_of(inner), origin)
            return Fragment(piece.written, offsets, piece.quoted, made, inner, weight, depth)

        if piece.operator == "arithmetic":
            number = self.arithmetic(piece.name)
            if number is not None and piece.name.replace(" ", "").translate(_NO_DIGITS) == "":
                return (Fragment(str(number), _spread(len(str(number)), piece.start, piece.end), piece.quoted),)
            if number is None:
                return (hole(None),)
            return (hole((Fragment(str(number), _spread(len(str(number)), piece.start, piece.end)),)),)
        binding = self.current(piece.name)
        known: tuple[Fragment, ...] | None = None
        origin: Span | None = None
        if binding is not None:
            known, origin = self.fragments(binding), binding.span
        elif (definition := self.outer.get(piece.name)) is not None:
            known, origin = self.of_definition(definition), definition.span
        text = None if known is None else known_text(known)
        if piece.operator in (":+", "+"):
            present = binding is not None and (bool(binding.words) if binding.words is not None else text != "")
            if binding is None and known is not None:
                present = text != ""
            return self.evaluate(piece.argument) if present else ()
        if binding is not None and piece.operator.startswith(":") and self.reaches(binding.branch) is not True:
            text = "" if text is None else text  # set in an arm that need not run: the default is what ships
            known = known if text else ()
        unset = known is None or (text == "" and piece.operator.startswith(":"))
        if unset and piece.operator in (":-", "-", ":=", "="):
            argument = self.evaluate(piece.argument)
            fragment = hole(argument)
            if piece.operator in (":=", "=") and known is None:
                span = self.source.span(piece.start, piece.end)
                self.bind(piece.name, Binding(span, self.branch, [((fragment,), self.branch)]))
            return (fragment,)
        return (hole(known, origin),)

    def added_to(self, piece: Piece, name: str) -> Fragment | None:
        """The `$NAME` of a `NAME="$NAME more"` that has grown long, not evaluated: the definition holds it already."""
        if not isinstance(piece, Variable) or piece.name != name or piece.operator or piece.array:
            return None
        binding = self.current(name)
        if binding is None or binding.words is not None or len(binding.parts) < LONG:
            return None
        offsets = range(piece.start, piece.start + len(piece.written))
        return Fragment(piece.written, offsets, piece.quoted, Hole(name, None, binding.span))

    def of_definition(self, definition: Definition) -> tuple[Fragment, ...]:
        """Fragments of a definition that a reader of the surrounding format made."""
        span = definition.span
        value = definition.value
        if isinstance(value, Unresolved):
            return self.of_parts(value, span, [MAX_NODES])
        text = _text(value)
        written = self.source.text[span.start.offset : span.end.offset] if span.path == self.source.path else ""
        start = written.find(text) if text else -1
        if start >= 0:
            first = span.start.offset + start
            return (Fragment(text, range(first, first + len(text))),)
        return (Fragment(text, _spread(len(text), span.start.offset, span.end.offset)),)

    def of_parts(self, value: Unresolved, span: Span, left: list[int]) -> tuple[Fragment, ...]:
        """Fragments of a value with variables: each part where it stands in the text of the definition; `left` counts
        down the parts that may still be looked at."""
        start, end = span.start.offset, span.end.offset
        text = self.source.text if span.path == self.source.path else ""
        found: list[Fragment] = []
        for index, part in enumerate(value.parts):
            if isinstance(part, str):
                at = text.find(part, start, end)
                exact = at >= 0
                offsets: Sequence[int] = range(at, at + len(part)) if exact else _spread(len(part), start, end)
                found.append(Fragment(part, offsets))
                start = at + len(part) if exact else start
                continue
            following = value.parts[index + 1] if index + 1 < len(value.parts) else None
            stop = text.find(following, start, end) if isinstance(following, str) else end
            written = text[start:stop] if start < stop <= len(text) else f"${{{part.name}}}"
            offsets = range(start, stop) if start < stop <= len(text) else _spread(len(written), start, end)
            inner: tuple[Fragment, ...] | None = None
            left[0] -= 1
            if isinstance(part.default, Unresolved) and left[0] > 0:
                inner = self.of_parts(part.default, part.origin or span, left)
            elif part.default is not None and not isinstance(part.default, Unresolved):
                default = _text(part.default)
                inner = (Fragment(default, _spread(len(default), start, max(stop, start + 1))),)
            weight, depth = _size(inner) if inner is not None else (1, 0)
            if left[0] <= 0:
                weight = MAX_WEIGHT + 1
            found.append(Fragment(written, offsets, False, part, inner, weight, depth))
            start = max(start, stop)
        return tuple(found)

    def arithmetic(self, text: str) -> int | None:
        def number(match: re.Match[str]) -> str:
            binding = self.current(match.group(1))
            known = known_text(self.fragments(binding)) if binding is not None else None
            return known if known is not None and known.strip("-").isdigit() else "?"

        return _calculate(re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", number, text))

    def expand(self, token: WordToken) -> list[ShellWord]:
        """The words that one word becomes: arrays spread, unquoted variables split at blanks."""
        ends = token_ends(token)
        span = self.source.span(*ends) if ends is not None else None
        if len(token.pieces) == 1 and isinstance(token.pieces[0], Variable):
            piece = token.pieces[0]
            if piece.array and piece.operator in ("", ":-", "-"):
                words = self.array(piece.name) if self.budget > 0 else None
                if words is not None:
                    self.budget -= len(words)
                    return words
            elif piece.operator in ("+", ":+") and not piece.quoted:
                return self.expand_argument(piece)
        fields: list[list[Fragment]] = [[]]
        split = False
        for part in token.pieces:
            for fragment in self.fragment(part):
                spliced = self.spliced(fragment, alone=len(token.pieces) == 1)
                if spliced is None:
                    fields[-1].append(fragment)
                    continue
                split = True
                fields[-1].extend(spliced[0])
                fields.extend(list(field) for field in spliced[1:])
        if not split:
            return [self.word(tuple(fields[0]), token.quoted, token.raw, span)] if token.pieces else []
        return [self.word(tuple(field), token.quoted, "") for field in fields if field]

    def expand_argument(self, piece: Variable) -> list[ShellWord]:
        """The words of `${X:+--flag "$X"}`, unquoted."""
        words: list[ShellWord] = []
        fields: list[list[Fragment]] = [[]]
        if piece.array and len(piece.argument) == 1 and isinstance(piece.argument[0], Variable):
            return self.array(piece.argument[0].name) or []
        for fragment in self.variable(piece, range(piece.start, piece.end)):
            splits = fragment.hole is None and not fragment.quoted
            spliced = _split([fragment]) if splits else [[fragment]]
            fields[-1].extend(spliced[0])
            fields.extend(list(field) for field in spliced[1:])
        words.extend(self.word(tuple(field), False, "") for field in fields if field)
        return words

    def spliced(self, fragment: Fragment, *, alone: bool) -> list[list[Fragment]] | None:
        """Fields of an unquoted variable whose value is known and is not just one word; `None` keeps the hole."""
        if fragment.quoted or fragment.hole is None or fragment.inner is None:
            return None
        if self.budget <= 0:
            return None
        flat = flatten(fragment.inner)
        text = "".join(part.text for part in flat if part.hole is None)
        if len(text) > MAX_TEXT:
            return None
        if re.search(r"\s", text) or not "".join(part.text for part in flat) or (alone and text.startswith("-")):
            fields = _split(flat)
            self.budget -= len(fields)
            return fields
        return None


def _size(inner: Iterable[Fragment]) -> tuple[int, int]:
    """Weight and depth of a variable whose default is made of these fragments."""
    weight, depth = 1, 0
    for part in inner:
        weight += part.weight + len(part.text) // 32
        depth = max(depth, part.depth + 1)
    return weight, depth


def _split(fragments: Iterable[Fragment]) -> list[list[Fragment]]:
    """Fields of evaluated text at blanks, each with its offsets; holes stay whole."""
    fields: list[list[Fragment]] = [[]]
    for fragment in fragments:
        if fragment.hole is not None:
            fields[-1].append(fragment)
            continue
        at = 0
        for match in re.finditer(r"\s+", fragment.text):
            if match.start() > at:
                fields[-1].append(
                    Fragment(fragment.text[at : match.start()], fragment.offsets[at : match.start()], fragment.quoted)
                )
            fields.append([])
            at = match.end()
        if at < len(fragment.text):
            fields[-1].append(Fragment(fragment.text[at:], fragment.offsets[at:], fragment.quoted))
    return fields


def piece_ends(pieces: Iterable[Piece]) -> tuple[int, int] | None:
    """The file offsets between which pieces stand, `None` when they have no text."""
    first = last = -1
    for piece in pieces:
        if isinstance(piece, Literal):
            if not len(piece.offsets):
                continue
            start, end = piece.offsets[0], piece.offsets[-1] + 1
        else:
            start, end = piece.start, piece.end
        if first < 0 or start < first:
            first = start
        last = max(last, end)
    return (first, last) if first >= 0 else None


def token_ends(token: WordToken) -> tuple[int, int] | None:
    """The file offsets between which a word stands, the elements of an array included."""
    own = piece_ends(token.pieces)
    if not token.array:
        return own
    places = [ends for element in token.array if (ends := token_ends(element)) is not None]
    places += [own] if own is not None else []
    return (min(start for start, _ in places), max(end for _, end in places)) if places else None


def _spread(count: int, start: int, end: int) -> tuple[int, ...]:
    """Offsets for text that does not stand in the file as it is: inside the span, never decreasing."""
    last = max(start, end - 1)
    inside = min(count, last - start)
    return (*range(start, start + inside), *(last,) * (count - inside))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_NO_DIGITS = {ord(char): None for char in "0123456789+-*/%()<>"}
_BINARY: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: lambda left, right: left << min(right, 64),
}


def _calculate(text: str) -> int | None:
    """The value of an integer expression of at most 200 characters, `None` when it is not one."""
    text = text.strip()
    if len(text) > 200 or not re.fullmatch(r"[0-9+\-*/%()<> \t]+", text):
        return None
    try:
        tree = ast.parse(re.sub(r"/+", "//", text).replace("****", "**"), mode="eval").body
        return _fold(tree, 0)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _fold(node: ast.AST, depth: int) -> int:
    if depth > 40:
        raise ValueError("too deep")
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_fold(node.operand, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _fold(node.left, depth + 1), _fold(node.right, depth + 1)
        if abs(left) > 10**15 or abs(right) > 10**15:
            raise ValueError("too large")
        return _BINARY[type(node.op)](left, right)
    raise ValueError("no integer expression")
