"""A small part of the Go template language: enough to follow an image or an option from a chart's values to its use.

What is not understood stays a hole. Nothing is guessed: a function that is not listed gives an unknown value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from auditor.model.records import dataclass, field
from auditor.model.spans import Span
from auditor.syntax.go_templates import Action, actions

MAX_DEPTH = 24  # templates that include each other
MAX_STEPS = 20_000  # expressions evaluated for one value

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\(|\)|\||:=|=|,|[^\s()|",]+')


@dataclass(frozen=True, slots=True)
class Piece:
    """Literal text of a result with the place that states it; `hole` names what is unknown instead."""

    text: str
    origin: Span | None = None
    hole: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text result."""

    pieces: tuple[Piece, ...]

    @property
    def known(self) -> str | None:
        """The whole text, `None` when a part of it is unknown."""
        return None if any(piece.hole for piece in self.pieces) else "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Branch:
    """A mapping of the values, by its dotted path."""

    path: str


@dataclass(frozen=True, slots=True)
class Dict:
    """A mapping that a template builds with `dict`."""

    entries: Mapping[str, Result]


Result = Text | Branch | Dict | None
"""`None`: nothing there (a missing key)."""


@dataclass(slots=True)
class Chart:
    """What a template can see: `values` and `chart` by dotted path, `defines` by name."""

    values: Mapping[str, tuple[str, Span]]
    chart: Mapping[str, tuple[str, Span]]
    defines: Mapping[str, str]
    steps: int = 0
    branches: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for path in self.values:
            parts = path.split(".")
            self.branches.update(".".join(parts[:end]) for end in range(1, len(parts)))


@dataclass(slots=True)
class _Frame:
    dot: Result
    root: Result
    names: dict[str, Result]
    depth: int


def evaluate(text: str, chart: Chart) -> Text:
    """A text with actions, evaluated at the root of a chart."""
    root = Branch("")
    return _Reading(chart).body(text, _Frame(root, root, {"$": root}, 0))


def defines_of(text: str) -> dict[str, str]:
    """The named templates of a file: name and body."""
    found: dict[str, str] = {}
    opened: list[tuple[str, int, int]] = []
    depth = 0
    for action in actions(text):
        word = action.inner.split(None, 1)[0] if action.inner else ""
        if word in ("define", "block"):
            name = re.match(r'(?:define|block)\s+["`]([^"`]+)["`]', action.inner)
            opened.append((name.group(1) if name else "", action.end, depth))
            depth += 1
        elif word in ("if", "with", "range"):
            depth += 1
        elif word == "end":
            depth -= 1
            if opened and opened[-1][2] == depth:
                name_text, start, _ = opened.pop()
                if name_text:
                    found[name_text] = text[start : action.start]
    return found


class _Reading:
    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    # -- templates ----------------------------------------------------------------------------------------------

    def body(self, text: str, frame: _Frame) -> Text:
        found = [action for action in actions(text) if not action.inner.startswith(("/*", "%", "#"))]
        pieces, _ = self.run(text, found, 0, 0, len(text), frame)
        return Text(tuple(pieces))

    def run(
        self, text: str, found: list[Action], index: int, at: int, end: int, frame: _Frame
    ) -> tuple[list[Piece], int]:
        """Everything up to `end`; nested blocks are found by their own ends."""
        pieces: list[Piece] = []
        while index < len(found) and found[index].start < end:
            action = found[index]
            self.literal(pieces, text, at, action)
            at = action.end
            word = action.inner.split(None, 1)[0] if action.inner else ""
            if word in ("if", "with", "range", "define", "block"):
                arms, after = self.arms(found, index)
                pieces.extend(self.choose(text, found, word, arms, frame))
                index = after + 1
                at = found[after].end if after < len(found) else end
                continue
            index += 1
            assignment = re.match(r"(\$[\w]*)\s*:?=\s*(.*)\Z", action.inner, re.DOTALL)
            if assignment:
                frame.names[assignment.group(1)] = self.pipeline(assignment.group(2), frame)
            elif action.inner:
                pieces.extend(self.shown(self.pipeline(action.inner, frame), action.inner).pieces)
        if at < end:
            pieces.append(Piece(text[at:end]))
        return [piece for piece in pieces if piece.text or piece.hole], index

    def literal(self, pieces: list[Piece], text: str, at: int, action: Action) -> None:
        piece = text[at : action.start]
        if text.startswith("{{-", action.start):
            piece = piece.rstrip()
        if at >= 3 and text[at - 3 : at] == "-}}":
            piece = piece.lstrip()
        if piece:
            pieces.append(Piece(piece))

    def arms(self, found: list[Action], index: int) -> tuple[list[tuple[str, int, int]], int]:
        """The arms of a block: condition, index of the first action inside, index of the action that ends it."""
        arms: list[tuple[str, int, int]] = []
        condition, first, depth = found[index].inner, index, 0
        at = index + 1
        while at < len(found):
            inner = found[at].inner
            word = inner.split(None, 1)[0] if inner else ""
            if word in ("if", "with", "range", "define", "block"):
                depth += 1
            elif word == "end":
                if depth == 0:
                    arms.append((condition, first, at))
                    return arms, at
                depth -= 1
            elif word == "else" and depth == 0:
                arms.append((condition, first, at))
                condition, first = inner, at
            at += 1
        arms.append((condition, first, len(found)))
        return arms, len(found)

    def choose(
        self, text: str, found: list[Action], word: str, arms: list[tuple[str, int, int]], frame: _Frame
    ) -> list[Piece]:
        if word in ("range", "define", "block"):
            return [Piece("", None, word)] if word == "range" else []
        for condition, first, last in arms:
            expression = re.sub(r"\A(?:else\s+)?(?:if|with)\s+|\Aelse\s*\Z", "", condition)
            inner = _Frame(frame.dot, frame.root, frame.names, frame.depth)
            if expression:
                value = self.pipeline(re.sub(r"\A\$\w+\s*:=\s*", "", expression), frame)
                truth = self.truth(value)
                if truth is None:
                    return [Piece("", None, expression)]
                if not truth:
                    continue
                if condition.startswith(("with", "else with")):
                    inner.dot = value
            end = found[last].start if last < len(found) else len(text)
            pieces, _ = self.run(text, found, first + 1, found[first].end, end, inner)
            return pieces
        return []

    def truth(self, value: Result) -> bool | None:
        if value is None:
            return False
        if isinstance(value, Text):
            known = value.known
            return None if known is None else known not in ("", "false", "0")
        return True

    def shown(self, value: Result, expression: str) -> Text:
        if isinstance(value, Text):
            return value
        if value is None:
            return Text(())
        return Text((Piece("", None, expression),))

    # -- expressions --------------------------------------------------------------------------------------------

    def pipeline(self, expression: str, frame: _Frame) -> Result:
        self.chart.steps += 1
        if self.chart.steps > MAX_STEPS or frame.depth > MAX_DEPTH:
            return Text((Piece("", None, expression),))
        tokens = _TOKEN.findall(expression)
        value, index = self.piped(tokens, 0, frame)
        return value if index >= len(tokens) else Text((Piece("", None, expression),))

    def piped(self, tokens: list[str], index: int, frame: _Frame) -> tuple[Result, int]:
        """Commands joined by `|` up to a closing bracket."""
        value: Result = None
        first = True
        while index < len(tokens):
            arguments: list[Result] = []
            name = ""
            began = index
            while index < len(tokens) and tokens[index] not in ("|", ")"):
                token = tokens[index]
                if token == "(":  # noqa: S105 - a bracket
                    inner, index = self.piped(tokens, index + 1, frame)
                    index += 1
                    while index < len(tokens) and tokens[index].startswith(".") and len(tokens[index]) > 1:
                        inner = self.member(inner, tokens[index][1:])
                        index += 1
                    arguments.append(inner)
                    continue
                index += 1
                if (
                    index - 1 == began
                    and re.fullmatch(r"[A-Za-z_]\w*", token)
                    and token not in ("true", "false", "nil")
                ):
                    name = token
                else:
                    arguments.append(self.term(token, frame))
            if not first:
                arguments.append(value)
            value = (
                self.call(name, arguments, " ".join(tokens[began:index]), frame)
                if name
                else (arguments[0] if arguments else None)
            )
            first = False
            if index < len(tokens) and tokens[index] == "|":
                index += 1
                continue
            break
        return value, index

    def term(self, token: str, frame: _Frame) -> Result:
        if token[:1] == '"':
            return Text((Piece(re.sub(r"\\(.)", r"\1", token[1:-1])),))
        if token[:1] == "`":
            return Text((Piece(token[1:-1]),))
        if token.startswith("$"):
            name, _, rest = token.partition(".")
            base = frame.names.get(name)
            if base is None and (name == "$" or rest.startswith(("Values.", "Chart."))):
                base = frame.root  # a name that a file gives to the root once, outside of the value
            return self.member(base, rest) if rest else base
        if token.startswith("."):
            return self.member(frame.dot, token[1:]) if len(token) > 1 else frame.dot
        if token == "nil":  # noqa: S105 - a word of the template language
            return None
        return Text((Piece(token),))

    def member(self, base: Result, path: str) -> Result:
        """The value under a dotted path. At the root `Values`, `Chart`; a branch of the values; a `dict`."""
        if isinstance(base, Dict):
            name, _, rest = path.partition(".")
            value = base.entries.get(name)
            return self.member(value, rest) if rest else value
        if not isinstance(base, Branch):
            return None if base is None else Text((Piece("", None, "." + path),))
        whole = f"{base.path}.{path}" if base.path else path
        top, _, rest = whole.partition(".")
        if top == "Chart":
            stated = self.chart.chart.get(rest)
            return Text((Piece(*stated),)) if stated else (Branch(whole) if not rest else None)
        if top == "Values":
            stated = self.chart.values.get(rest)
            if stated is not None:
                return Text((Piece(*stated),))
            return Branch(whole) if not rest or rest in self.chart.branches else None
        return Text((Piece("", None, "." + whole),))

    def call(self, name: str, given: list[Result], written: str, frame: _Frame) -> Result:
        unknown = Text((Piece("", None, written),))
        if name in ("include", "template", "tpl") and given:
            first = given[0].known if isinstance(given[0], Text) else None
            if first is None:
                return unknown
            body = first if name == "tpl" else self.chart.defines.get(first)
            if body is None:
                return unknown
            dot = given[1] if len(given) > 1 else frame.dot
            inner = _Frame(dot, dot, {"$": dot}, frame.depth + 1)
            if inner.depth > MAX_DEPTH:
                return unknown
            self.chart.steps += 1
            return _stripped(self.body(body, inner))
        if name == "default" and len(given) == 2:
            return self.either(given[1], given[0])
        if name in ("coalesce", "or"):
            value: Result = None
            for candidate in reversed(given):
                value = self.either(candidate, value)
            return value
        if name == "and" and given:
            return next((value for value in given if self.truth(value) is False), given[-1])
        if name == "not" and len(given) == 1:
            truth = self.truth(given[0])
            return unknown if truth is None else Text((Piece("false" if truth else "true"),))
        if name in ("eq", "ne") and len(given) == 2:
            left, right = (value.known if isinstance(value, Text) else "" if value is None else None for value in given)
            if left is None or right is None:
                return unknown
            return Text((Piece("true" if (left == right) == (name == "eq") else "false"),))
        if name in ("hasKey", "empty", "kindIs", "typeIs", "len", "gt", "lt", "ge", "le", "index", "lookup"):
            if name == "hasKey" and len(given) == 2 and isinstance(given[1], Text) and given[1].known:
                return Text((Piece("true" if self.member(given[0], given[1].known) is not None else "false"),))
            if name == "empty" and given:
                truth = self.truth(given[0])
                return unknown if truth is None else Text((Piece("false" if truth else "true"),))
            if name == "index" and len(given) >= 2 and isinstance(given[1], Text) and given[1].known:
                return self.member(given[0], given[1].known)
            return unknown
        if name == "get" and len(given) == 2 and isinstance(given[1], Text) and given[1].known:
            return self.member(given[0], given[1].known)
        if name == "dict":
            keys = [value.known if isinstance(value, Text) else None for value in given[::2]]
            return Dict({key: value for key, value in zip(keys, given[1::2], strict=False) if key})
        if name == "required" and len(given) == 2:
            return given[1] if given[1] is not None else unknown
        if name == "ternary" and len(given) == 3:
            truth = self.truth(given[2])
            return unknown if truth is None else given[0] if truth else given[1]
        if name in _SAME and given:
            return given[-1]
        if name in _TRIMS and len(given) == 2 and isinstance(given[0], Text) and isinstance(given[1], Text):
            cut = given[0].known
            return unknown if cut is None else _cut(given[1], cut, name)
        if name == "trunc" and len(given) == 2:
            return given[1]
        if name == "printf" and given and isinstance(given[0], Text) and given[0].known is not None:
            return self.printf(given[0].known, given[1:], written)
        if name == "print":
            return Text(tuple(piece for value in given for piece in self.shown(value, written).pieces))
        return unknown

    def either(self, value: Result, fallback: Result) -> Result:
        """The value, or the fallback where it is empty; what is unknown stays so."""
        return fallback if self.truth(value) is False else value

    def printf(self, form: str, values: list[Result], written: str) -> Text:
        pieces: list[Piece] = []
        rest = list(values)
        for part in re.split(r"(%[-+#0-9.]*[a-zA-Z%])", form):
            if part == "%%":
                pieces.append(Piece("%"))
            elif part.startswith("%") and len(part) > 1:
                value = rest.pop(0) if rest else Text((Piece("", None, written),))
                pieces.extend(self.shown(value, written).pieces)
            elif part:
                pieces.append(Piece(part))
        return Text(tuple(pieces))


_SAME = frozenset(
    {"quote", "squote", "toString", "trim", "lower", "nindent", "indent", "trimAll", "int", "int64", "tostring"}
)
_TRIMS = frozenset({"trimPrefix", "trimSuffix"})


def _cut(value: Text, cut: str, name: str) -> Text:
    pieces = list(value.pieces)
    if name == "trimSuffix" and pieces and not pieces[-1].hole and pieces[-1].text.endswith(cut) and cut:
        pieces[-1] = Piece(pieces[-1].text[: -len(cut)], pieces[-1].origin)
    if name == "trimPrefix" and pieces and not pieces[0].hole and pieces[0].text.startswith(cut):
        pieces[0] = Piece(pieces[0].text[len(cut) :], pieces[0].origin)
    return Text(tuple(pieces))


def _stripped(value: Text) -> Text:
    """The text without white space around it: what an include gives to a value."""
    pieces = list(value.pieces)
    while pieces and not pieces[0].hole and not pieces[0].text.strip():
        pieces.pop(0)
    while pieces and not pieces[-1].hole and not pieces[-1].text.strip():
        pieces.pop()
    if pieces and not pieces[0].hole:
        pieces[0] = Piece(pieces[0].text.lstrip(), pieces[0].origin)
    if pieces and not pieces[-1].hole:
        pieces[-1] = Piece(pieces[-1].text.rstrip(), pieces[-1].origin)
    return Text(tuple(pieces))
