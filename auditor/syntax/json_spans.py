"""JSON with places, which the `json` module has not. Comments and trailing commas are read, as editors allow them."""

from __future__ import annotations

import json
import re

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.spanned import Spanned

MAX_DEPTH = 200  # nested lists and tables; a bomb of brackets ends here
_SKIP = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+', re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL
)
_SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])|true\b|false\b|null\b|-?Infinity\b|NaN\b")
_WORDS = {"true": True, "false": False, "null": None}


class _Pairs(list[tuple[str, object]]):
    """The entries of one table in document order, doubled keys included."""


def parse(source: SourceFile) -> Spanned:
    """The document, parsed once for all readers of a file. Raises `ReadError` with the place where it is no JSON."""
    for known, root in _memo:
        if known is source:
            return root
    root = _document(source.text)
    _memo.append((source, root))
    del _memo[:-2]
    return root


_memo: list[tuple[SourceFile, Spanned]] = []


def _document(text: str) -> Spanned:
    try:
        return _strict(text)
    except RecursionError:
        raise ReadError(f"nested more than {MAX_DEPTH} levels deep", 0, limit=True) from None
    except ValueError:
        node, at = _value(text, _skip(text, 0), 0)
    at = _skip(text, at)
    if at < len(text):
        raise ReadError("not valid JSON: text after the document", at)
    return node


def _strict(text: str) -> Spanned:
    """The tree of a strict document, fast: the values by `json`, their places by the order of the tokens in the text.
    Raises `ValueError` and `RecursionError` as `json` does."""
    plain = json.loads(text, object_pairs_hook=_Pairs)
    tokens = _TOKEN.finditer(text)

    def convert(value: object, token: re.Match[str]) -> Spanned:
        start = token.start()
        if isinstance(value, str):
            if "\\" not in token.group():
                return Spanned(value, start + 1, token.end() - 1)
            return _string(text, start)[0]
        if isinstance(value, _Pairs):
            node = Spanned({}, start, start)
            for name, inner in value:
                key = next(tokens).start()
                child = convert(inner, next(tokens))
                child.key = key
                node.pairs[name] = child
            node.end = next(tokens).end()
            return node
        if isinstance(value, list):
            node = Spanned([], start, start)
            for inner in value:
                node.items.append(convert(inner, next(tokens)))
            node.end = next(tokens).end()
            return node
        return Spanned(value, start, token.end())  # type: ignore[arg-type]

    return convert(plain, next(tokens))


def _skip(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Spanned, int]:
    if depth > MAX_DEPTH:
        raise ReadError(f"nested more than {MAX_DEPTH} levels deep", at, limit=True)
    char = text[at : at + 1]
    if char == '"':
        return _string(text, at)
    if char == "{":
        return _table(text, at, depth)
    if char == "[":
        return _list(text, at, depth)
    found = _WORD.match(text, at)
    if not found:
        raise ReadError("not valid JSON", at)
    word = found.group()
    try:
        value = _WORDS[word] if word in _WORDS else json.loads(word)
    except ValueError:
        raise ReadError("not valid JSON: a number with too many digits", at) from None
    return Spanned(value, at, found.end()), found.end()


def _table(text: str, at: int, depth: int) -> tuple[Spanned, int]:
    pairs: dict[str, Spanned] = {}
    start, at = at, _skip(text, at + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise ReadError("not valid JSON: a key is expected", at)
        key, after = _string(text, at)
        colon = _skip(text, after)
        if text[colon : colon + 1] != ":":
            raise ReadError("not valid JSON: a colon is expected", colon)
        node, after = _value(text, _skip(text, colon + 1), depth + 1)
        node.key = at
        pairs[str(key.value)] = node
        at = _next(text, after, "}")
    return Spanned(pairs, start, at + 1), at + 1


def _list(text: str, at: int, depth: int) -> tuple[Spanned, int]:
    items: list[Spanned] = []
    start, at = at, _skip(text, at + 1)
    while text[at : at + 1] != "]":
        node, after = _value(text, at, depth + 1)
        items.append(node)
        at = _next(text, after, "]")
    return Spanned(items, start, at + 1), at + 1


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] == closing:
        return at
    raise ReadError(f"not valid JSON: `,` or `{closing}` is expected", at)


def _string(text: str, at: int) -> tuple[Spanned, int]:
    found = _STRING.match(text, at)
    if not found:
        raise ReadError("not valid JSON: a string does not end", at)
    raw, start = found.group(1), at + 1
    if "\\" not in raw:
        return Spanned(raw, start, found.end() - 1), found.end()
    chars: list[str] = []
    offsets: list[int] = []
    last = 0
    for escape in _ESCAPE.finditer(raw):
        chars.append(raw[last : escape.start()])
        offsets.extend(range(start + last, start + escape.start()))
        both, code, simple = escape.groups()
        if both is not None:
            pair = chr(int(both[:4], 16)) + chr(int(both[6:], 16))
            chars.append(pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le"))
        elif code is not None:
            chars.append(chr(int(code, 16)))
        elif simple in _SIMPLE:
            chars.append(_SIMPLE[simple])
        else:
            raise ReadError("not valid JSON: an unknown escape", start + escape.start())
        offsets.append(start + escape.start())
        last = escape.end()
    chars.append(raw[last:])
    offsets.extend(range(start + last, start + len(raw) + 1))
    return Spanned("".join(chars), start, found.end() - 1, offsets), found.end()
