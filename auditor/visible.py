"""Text of the audited tree on its way to a terminal or a log: control characters stand as pictures of themselves.

A file name or a source line may hold escape sequences, line ends or marks that turn the reading direction; shown as
they are, they would move the cursor, forge lines of the report or begin a command of a CI runner.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def visible(text: str) -> str:
    """The text with every control character replaced by one that shows, so that columns stay."""
    return _CONTROLS.sub(_picture, text) if _CONTROLS.search(text) else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
