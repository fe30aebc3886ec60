"""Where each character of a YAML scalar's value stands: the folding, escaping and chomping rules with offsets kept."""

from __future__ import annotations

from auditor.syntax.mapped import Mapped

_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX = {"x": 2, "u": 4, "U": 8}
_BREAKS = "\n\r\x85\u2028\u2029"


def content_of(text: str, start: int, end: int, style: str, value: str) -> Mapped:
    """The `value` that the parser read between two offsets, character by character. Where our reading of the rules
    gives another text than the parser's, every character stands at the start of the scalar: coarse, never wrong."""
    if style in ("", "'", '"'):
        inner = (start + 1, end - 1) if style else (start, end)
        if end - start >= 2 * bool(style) and text[inner[0] : inner[1]] == value and inner[1] >= inner[0]:
            return Mapped(value, range(inner[0], inner[1] + 1))
        chars, offsets = _flow(text, inner[0], max(inner), style)
    else:
        chars, offsets = _block(text, start, end, style, value)
    if "".join(chars) != value:
        return Mapped(value, [start] * len(value) + [max(end, start)])
    offsets.append(offsets[-1] + 1 if offsets else start)
    return Mapped(value, offsets)


def _flow(text: str, start: int, end: int, style: str) -> tuple[list[str], list[int]]:
    """A plain or quoted scalar: escapes, doubled quotes, and folded line ends."""
    chars: list[str] = []
    offsets: list[int] = []
    index = start
    while index < end:
        char = text[index]
        if char in " \t" or char in _BREAKS:
            index = _fold(text, index, end, chars, offsets)
        elif style == "'" and char == "'":
            chars.append("'")
            offsets.append(index)
            index += 2
        elif style == '"' and char == "\\":
            index = _escape(text, index, end, chars, offsets)
        else:
            chars.append(char)
            offsets.append(index)
            index += 1
    return chars, offsets


def _fold(text: str, index: int, end: int, chars: list[str], offsets: list[int]) -> int:
    """White space inside a flow scalar: blanks stay unless a line ends; one line end is a blank, more are line ends."""
    start = index
    while index < end and text[index] in " \t":
        index += 1
    if index >= end or text[index] not in _BREAKS:
        chars.extend(text[start:index])
        offsets.extend(range(start, index))
        return index
    breaks: list[int] = []
    while index < end and (text[index] in _BREAKS or text[index] in " \t"):
        if text[index] in _BREAKS:
            breaks.append(index)
            if text[index : index + 2] == "\r\n":
                index += 1
        index += 1
    if len(breaks) == 1:
        chars.append(" ")
        offsets.append(breaks[0])
    else:
        chars.extend("\n" * (len(breaks) - 1))
        offsets.extend(breaks[1:])
    return index


def _escape(text: str, index: int, end: int, chars: list[str], offsets: list[int]) -> int:
    """One backslash escape of a double-quoted scalar; returns the offset behind it."""
    code = text[index + 1 : index + 2]
    if code in _HEX:
        digits = text[index + 2 : index + 2 + _HEX[code]]
        try:
            chars.append(chr(int(digits, 16)))
        except (ValueError, OverflowError):
            chars.append("?")
        offsets.append(index)
        return index + 2 + len(digits)
    if code and code in _BREAKS:
        index += 3 if text[index + 1 : index + 3] == "\r\n" else 2
        while index < end and (text[index] in " \t" or text[index] in _BREAKS):
            if text[index] in _BREAKS:
                chars.append("\n")
                offsets.append(index)
                if text[index : index + 2] == "\r\n":
                    index += 1
            index += 1
        return index
    chars.append(_ESCAPES.get(code, code))
    offsets.append(index)
    return index + 2


def _block(text: str, start: int, end: int, style: str, value: str) -> tuple[list[str], list[int]]:
    """A literal or folded block: the indentation is the one written or that of the first line with text."""
    line_end = start
    while line_end < len(text) and text[line_end] not in _BREAKS:
        line_end += 1
    header = text[start + 1 : line_end].split("#", 1)[0].strip()
    chomp = "-" if "-" in header else "+" if "+" in header else ""
    explicit = next((int(char) for char in header if char.isdigit()), 0)
    lines = _lines(text, min(_skip_break(text, line_end), end), end)
    if not explicit:
        filled = [first for first in (_indent(text, line) for line in lines) if first >= 0]
        blank = [line[1] - line[0] for line in lines if _indent(text, line) < 0]
        return _fold_block(text, lines, filled[0] if filled else max(blank, default=0), style, chomp)
    best: tuple[list[str], list[int]] = ([], [])
    for indent in range(explicit, explicit + 200):  # the parent's indentation is not in the events: the one that fits
        best = _fold_block(text, lines, indent, style, chomp)
        if "".join(best[0]) == value or not best[0]:
            break
    return best


def _skip_break(text: str, index: int) -> int:
    if text[index : index + 2] == "\r\n":
        return index + 2
    return index + 1 if index < len(text) else index


def _lines(text: str, index: int, end: int) -> list[tuple[int, int, int]]:
    """Start, end without the line end, and start of the next line, of each line between two offsets."""
    lines: list[tuple[int, int, int]] = []
    while index < end:
        stop = index
        while stop < end and text[stop] not in _BREAKS:
            stop += 1
        following = _skip_break(text, stop) if stop < end else stop
        lines.append((index, stop, following))
        index = following
    return lines


def _indent(text: str, line: tuple[int, int, int]) -> int:
    """The number of leading spaces of a line; -1 when nothing follows them."""
    index = line[0]
    while index < line[1] and text[index] == " ":
        index += 1
    return index - line[0] if index < line[1] else -1


def _fold_block(
    text: str, lines: list[tuple[int, int, int]], indent: int, style: str, chomp: str
) -> tuple[list[str], list[int]]:
    chars: list[str] = []
    offsets: list[int] = []
    leading: int | None = None  # the line end behind the last line of text, not yet written
    trailing: list[int] = []  # the empty lines behind it
    was_blank = False
    for first, stop, following in lines:
        body = first
        while body < stop and body - first < indent and text[body] == " ":
            body += 1
        line_break = stop if following > stop else None
        if body >= stop:
            if line_break is not None:
                trailing.append(line_break)
            continue
        blank = text[body] in " \t"
        if leading is not None:
            if style == ">" and not was_blank and not blank:
                if not trailing:
                    chars.append(" ")
                    offsets.append(leading)
            else:
                chars.append("\n")
                offsets.append(leading)
        chars.extend("\n" * len(trailing))
        offsets.extend(trailing)
        trailing = []
        was_blank = blank
        chars.extend(text[body:stop])
        offsets.extend(range(body, stop))
        leading = line_break
    if chomp != "-" and leading is not None:
        chars.append("\n")
        offsets.append(leading)
    if chomp == "+":
        chars.extend("\n" * len(trailing))
        offsets.extend(trailing)
    return chars, offsets
