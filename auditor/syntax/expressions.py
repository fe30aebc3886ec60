"""Expressions of GitHub workflows, `${{ inputs.tag || 'v1' }}`: the literal that stands when nothing else is given."""

from __future__ import annotations

import re

from auditor.model.records import dataclass

LONGEST = 2_000  # characters of one expression; a longer one is not read
MAX_DEPTH = 8  # of parentheses

EXPRESSION = re.compile(r"\{\{((?:'[^'\r\n]*'|[^'{}\r\n])*)\}\}")
"""From the second character of `${{` on. Braces may stand in strings, nowhere else."""
UNPAIRED = re.compile(r"\{\{([^{}\r\n]*)\}\}")
"""The same where a quote has no second."""
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\|\||&&|[()\[\]]")
_STRING = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*\Z")
_VERSION = re.compile(r"(\d+(?:\.\d+)+)(?:[.-]?(rc|dev)\d)?")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """What `a || b || 'literal'` says: the first operand as written, the further names that are asked before the
    literal, and where the literal stands between its quotes (`None`: no literal ends the expression)."""

    name: str
    others: tuple[Place, ...] = ()
    literal: Place | None = None


def choice_of(text: str) -> Choice:
    """The choice that the text between the braces of an expression makes.

    Of several literals (`cond && 'a' || 'b'`) the last is the default, yet one that states an older version goes
    before it: which of them runs is decided outside of the file, and an exposure in one arm is an exposure.
    """
    operands = _split(text, 0, len(text), "||")
    first = operands[0]
    name = text[first[0] : first[1]]
    literals = _literals(text, 0, len(text), 0)
    if not literals or literals[-1] is None:
        return Choice(name)
    best = literals[-1]
    for place in literals[:-1]:
        if place is not None and _older(text[place[0] : place[1]], text[best[0] : best[1]]):
            best = place
    if best[0] == best[1]:
        return Choice(name)
    others = tuple(place for place in operands[1:-1] if _PLAIN_NAME.match(text[place[0] : place[1]]))
    return Choice(name, others, best)


def sole_literal(text: str, at: int) -> bool:
    """Whether the place is in no expression, or in the only string of its expression."""
    start = text.rfind("${{", max(0, at - LONGEST), at)
    if start < 0 or (found := EXPRESSION.match(text, start + 1, start + LONGEST)) is None or found.end() <= at:
        return True
    return len(_STRING.findall(found.group(1))) <= 1


def _older(text: str, than: str) -> bool:
    """Whether a literal goes before another: it alone names the engine, or it states the older version."""
    if ("sglang" in text) != ("sglang" in than):
        return "sglang" in text
    mine, other = _VERSION.search(text), _VERSION.search(than)
    return mine is not None and (other is None or _key(mine) < _key(other))


def _key(found: re.Match[str]) -> tuple[list[int], bool]:
    return [int(number) for number in found.group(1).split(".")], found.group(2) is None


def _split(text: str, start: int, end: int, operator: str) -> list[Place]:
    """The operands between an operator outside of strings and parentheses, blanks left out."""
    places: list[Place] = []
    depth, first = 0, start
    for token in _TOKEN.finditer(text, start, end):
        written = token.group()
        if written in "([":
            depth += 1
        elif written in ")]":
            depth -= 1
        elif written == operator and depth == 0:
            places.append(_trimmed(text, first, token.start()))
            first = token.end()
    places.append(_trimmed(text, first, end))
    return places


def _trimmed(text: str, start: int, end: int) -> Place:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _literals(text: str, start: int, end: int, depth: int) -> list[Place | None]:
    """What each operand of `||` gives: the place of a literal, `None` where it is something else."""
    found: list[Place | None] = []
    for operand in _split(text, start, end, "||"):
        first, last = _split(text, *operand, "&&")[-1]
        string = _STRING.fullmatch(text, first, last)
        if string is not None:
            found.append((first + 1, last - 1))
        elif depth < MAX_DEPTH and _enclosed(text, first, last):
            found.extend(_literals(text, first + 1, last - 1, depth + 1))
        else:
            found.append(None)
    return found


def _enclosed(text: str, start: int, end: int) -> bool:
    """Whether one pair of parentheses encloses the whole."""
    if not (text.startswith("(", start) and text.startswith(")", end - 1)):
        return False
    depth = 0
    for token in _TOKEN.finditer(text, start, end):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end() == end
    return False
