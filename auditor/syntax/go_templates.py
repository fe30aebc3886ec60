"""Masks template actions (`{{ ... }}`, `{% ... %}`) with text of the same length, so that every offset stays true.

What stands alone on its lines (conditions, loops, includes of whole blocks) becomes empty lines; what stands inside a
value becomes a filler that YAML reads as plain text, and `yaml_nodes` shows the file's own characters in its place.
"""

from __future__ import annotations

import re

from auditor.model.records import dataclass
from auditor.syntax.yaml_nodes import MASK

_ACTION = re.compile(
    r"\{\{-?\s*/\*.*?\*/\s*-?\}\}|\{\{`.*?`\}\}|\{\{(?:\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|[^{}\"`]|\{(?!\{)|\}(?!\})|(?=\{\{)(?!))*\}\}"
    r"|\{%-?.*?-?%\}|\{#.*?#\}",
    re.DOTALL,
)
_OTHER = re.compile(_ACTION.pattern + r"|<%-?.*?-?%>|<<[^<>\r\n]*>>|<#.*?#>", re.DOTALL)
_CONTROL = re.compile(
    r"\{\{-?\s*(?:/\*|if\b|else\b|end\b|range\b|with\b|define\b|block\b|break\b|continue\b|\$[\w.]*\s*:?=|fail\b|_)"
    r"|\{%|\{#|<%|<#"
)


@dataclass(frozen=True, slots=True)
class Action:
    """One action with its place; `inner` is the expression without braces and trim markers."""

    start: int
    end: int
    inner: str


def actions(text: str) -> list[Action]:
    """The actions of a text in order."""
    found: list[Action] = []
    for match in (_OTHER if "<%" in text else _ACTION).finditer(text):
        raw = match.group(0)
        inner = raw[2:-2].strip()
        inner = inner.removeprefix("-").removesuffix("-").strip() if not inner.startswith("/*") else inner
        found.append(Action(match.start(), match.end(), inner))
    return found


def masked(text: str) -> str:
    """The text with its actions masked, of the same length and with the same line ends."""
    found = actions(text)
    if not found:
        return text
    chars = list(text)
    alone = _alone(text, found)
    for action in found:
        raw = text[action.start : action.end]
        first, last = action.start, action.end
        filler = MASK
        if action.start in alone:
            filler = "\n"  # an empty line is nothing to YAML; one of blanks could be the first line of a block
            first = text.rfind("\n", 0, first) + 1
            line_end = text.find("\n", last)
            last = len(text) if line_end < 0 else line_end
        elif _CONTROL.match(raw) is not None and _at_edge(text, action):
            filler = " "
        for index in range(first, last):
            if text[index] not in "\r\n":
                chars[index] = filler
    return "".join(chars)


def _alone(text: str, found: list[Action]) -> set[int]:
    """Starts of the actions on whose lines nothing but actions stands."""
    alone: set[int] = set()
    group: list[Action] = []
    for index, action in enumerate(found):
        if group and text[group[-1].end : action.start].strip(" \t"):
            group = []
        if not group:
            line = text.rfind("\n", 0, action.start) + 1
            if text[line : action.start].strip():
                continue
        group.append(action)
        following = found[index + 1].start if index + 1 < len(found) else len(text)
        line_end = text.find("\n", action.end)
        line_end = len(text) if line_end < 0 else line_end
        if following < line_end:
            continue
        if not text[action.end : line_end].strip():
            alone.update(part.start for part in group)
        group = []
    return alone


def _at_edge(text: str, action: Action) -> bool:
    """Whether an action is the first or the last text on its line: a condition around what it shares the line with."""
    line = text.rfind("\n", 0, action.start) + 1
    end = text.find("\n", action.end)
    end = len(text) if end < 0 else end
    return not text[line : action.start].strip() or not text[action.end : end].strip()
