"""TOML with places. `tomli` decides what is valid; the reader below only says where each value stands, and raises
`ReadError` where it would not give the same values."""

from __future__ import annotations

import re

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.spanned import Spanned

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_INLINE_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"[^\s,\]}#]+(?: \d{2}:[\d:.Z+-]+)?")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_LONG_BASIC = re.compile(r'"""((?:[^"\\]|\\.|"(?!""))*"{0,2})"""', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''((?:[^']|'(?!''))*'{0,2})'''", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([ \t]*\r?\n\s*)|(.))", re.DOTALL)
_SIMPLE = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


def check(source: SourceFile) -> dict[str, object]:
    """The plain document by `tomli`. Raises `ReadError` with the place of the error."""
    import tomli

    try:
        return tomli.loads(source.text)
    except tomli.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        offset = source.offset(int(place.group(1)), int(place.group(2))) if place else len(source.text)
        raise ReadError("not valid TOML", offset) from None
    except RecursionError:
        raise ReadError("nested too deeply for a TOML file", 0, limit=True) from None


def parse(source: SourceFile) -> Spanned:
    """The document with places. Raises `ReadError`."""
    plain = check(source)
    node = _Parser(source.text).document()
    if not _same(node, plain):
        raise ReadError("the places of the values in this TOML file are not known")
    return node


def _same(node: Spanned, plain: object) -> bool:
    """Whether both hold the same keys, lists and strings; other scalars have no place that matters."""
    if isinstance(plain, dict):
        return node.pairs.keys() == plain.keys() and all(_same(node.pairs[key], plain[key]) for key in plain)
    if isinstance(plain, list):
        return len(node.items) == len(plain) and all(map(_same, node.items, plain))
    if isinstance(plain, str):
        return isinstance(node.value, str) and node.value.replace("\r\n", "\n") == plain
    return not isinstance(node.value, (dict, list, str))


class _Parser:
    """Reads valid TOML; on anything unexpected it raises `ReadError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Spanned:
        root = Spanned({}, 0, len(self.text))
        table = root
        self._blank()
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header(root)
            else:
                self._pair(table)
            self._blank()
        return root

    def _blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _space(self) -> None:
        found = _INLINE_BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _take(self, token: str) -> None:
        if not self.text.startswith(token, self.at):
            raise ReadError(f"`{token}` is expected in this TOML file", self.at)
        self.at += len(token)

    def _header(self, root: Spanned) -> Spanned:
        start = self.at
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        self._space()
        keys = self._keys()
        self._take("]]" if double else "]")
        node = root
        for key in keys[:-1]:
            node = self._below(node, key, start)
        last = keys[-1]
        if double:
            array = node.pairs.get(last)
            if array is None:
                array = node.pairs[last] = Spanned([], start, self.at, key=start)
            table = Spanned({}, start, self.at, key=start)
            array.items.append(table)
            return table
        return self._below(node, last, start)

    def _below(self, node: Spanned, key: str, start: int) -> Spanned:
        found = node.pairs.get(key)
        if found is None:
            found = node.pairs[key] = Spanned({}, start, self.at, key=start)
        if isinstance(found.value, list):
            if not found.value:
                raise ReadError("an empty array of tables in this TOML file", start)
            return found.value[-1]
        if not isinstance(found.value, dict):
            raise ReadError("a key of this TOML file is no table", start)
        return found

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while True:
            self._space()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1
            self._space()
            keys.append(self._key())

    def _key(self) -> str:
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return str(self._value().value)
        found = _BARE.match(self.text, self.at)
        if not found:
            raise ReadError("a key is expected in this TOML file", self.at)
        self.at = found.end()
        return found.group()

    def _pair(self, table: Spanned) -> None:
        start = self.at
        keys = self._keys()
        for key in keys[:-1]:
            table = self._below(table, key, start)
        self._take("=")
        self._space()
        node = self._value()
        node.key = start
        table.pairs[keys[-1]] = node

    def _value(self) -> Spanned:
        char = self.text[self.at : self.at + 1]
        if char in ('"', "'"):
            return self._string()
        if char == "[":
            return self._list()
        if char == "{":
            return self._table()
        found = _WORD.match(self.text, self.at)
        if not found:
            raise ReadError("a value is expected in this TOML file", self.at)
        start, self.at = self.at, found.end()
        word = found.group()
        return Spanned(True if word == "true" else False if word == "false" else None, start, self.at)

    def _list(self) -> Spanned:
        start = self.at
        self.at += 1
        items: list[Spanned] = []
        self._blank()
        while not self.text.startswith("]", self.at):
            items.append(self._value())
            self._blank()
            if self.text.startswith(",", self.at):
                self.at += 1
                self._blank()
            elif not self.text.startswith("]", self.at):
                raise ReadError("`]` is expected in this TOML file", self.at)
        self.at += 1
        return Spanned(items, start, self.at)

    def _table(self) -> Spanned:
        node = Spanned({}, self.at, self.at)
        self.at += 1
        self._blank()
        while not self.text.startswith("}", self.at):
            self._pair(node)
            self._blank()
            if self.text.startswith(",", self.at):
                self.at += 1
                self._blank()
            elif not self.text.startswith("}", self.at):
                raise ReadError("`}` is expected in this TOML file", self.at)
        self.at += 1
        node.end = self.at
        return node

    def _string(self) -> Spanned:
        text, start = self.text, self.at
        for opening, pattern in (('"""', _LONG_BASIC), ("'''", _LONG_LITERAL), ('"', _BASIC), ("'", _LITERAL)):
            if not text.startswith(opening, start):
                continue
            found = pattern.match(text, start)
            if not found:
                raise ReadError("a string of this TOML file does not end", start)
            self.at = found.end()
            first, raw = found.start(1), found.group(1)
            if len(opening) == 3:
                skipped = re.match(r"\r?\n", raw)
                if skipped:
                    first, raw = first + skipped.end(), raw[skipped.end() :]
            return _unescape(raw, first) if opening[0] == '"' and "\\" in raw else Spanned(raw, first, first + len(raw))
        raise ReadError("a string is expected in this TOML file", start)


def _unescape(raw: str, start: int) -> Spanned:
    chars: list[str] = []
    offsets: list[int] = []
    last = 0
    for escape in _ESCAPE.finditer(raw):
        chars.append(raw[last : escape.start()])
        offsets.extend(range(start + last, start + escape.start()))
        short, long_code, byte, newline, simple = escape.groups()
        code = short or long_code or byte
        if newline is None:
            if code is not None:
                chars.append(chr(int(code, 16)))
            elif simple in _SIMPLE:
                chars.append(_SIMPLE[simple])
            else:
                raise ReadError("an unknown escape in this TOML file", start + escape.start())
            offsets.append(start + escape.start())
        last = escape.end()
    chars.append(raw[last:])
    offsets.extend(range(start + last, start + len(raw) + 1))
    return Spanned("".join(chars), start, start + len(raw), offsets)
