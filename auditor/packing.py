"""Records as JSON values and back: what may stand in a cache file.

A cache is read back as data alone. No name in it is imported and no code in it runs, as with `pickle`: only the classes
that the reader hands in are ever made again, and anything else is an error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from auditor.model.records import fields, is_dataclass

_PLAIN = (str, int, float, bool, type(None))


def pack(value: object) -> Any:
    """A value as JSON: scalars as they are, everything else as a list that begins with its kind. Sets are sorted, so
    that equal values give equal text. Raises `TypeError` for a value that is no record, collection or scalar."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return ["(", *map(pack, value)]
    if isinstance(value, list):
        return ["[", *map(pack, value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(pack(getattr(value, item.name)) for item in fields(value))]
    if isinstance(value, Mapping):
        return ["{", *(pack(part) for pair in value.items() for part in pair)]
    if isinstance(value, Set):
        return ["<", *sorted(map(pack, value), key=json.dumps)]
    if isinstance(value, bytes):
        return ["b", value.decode("latin-1")]
    if isinstance(value, re.Pattern):
        return ["re", pack(value.pattern), value.flags]
    raise TypeError(f"a cache cannot hold a value of the type {type(value).__name__}")


def unpack(value: Any, kinds: Mapping[str, type]) -> Any:
    """The value that `pack` made this of; records are of the classes in `kinds`, by name. Raises `ValueError` for
    anything that `pack` does not make."""
    if not isinstance(value, list):
        if isinstance(value, _PLAIN):
            return value
        raise ValueError("not a packed value")
    if not value or not isinstance(value[0], str):
        raise ValueError("a packed value without its kind")
    kind = value[0]
    parts: Sequence[Any] = [unpack(part, kinds) if isinstance(part, list) else part for part in value[1:]]
    if kind == "(":
        return tuple(parts)
    if kind == "[":
        return parts
    if kind == "{":
        return dict(zip(parts[::2], parts[1::2], strict=True))
    if kind == "<":
        return frozenset(parts)
    if kind == "b" and len(parts) == 1 and isinstance(parts[0], str):
        return parts[0].encode("latin-1")
    if kind not in kinds:
        raise ValueError(f"a packed value of the unknown kind `{kind}`")
    try:
        return kinds[kind](*parts)
    except TypeError as error:
        raise ValueError(f"a packed `{kind}` of another shape") from error


def digest(*values: object) -> str:
    """SHA-256 over the values, in hex: equal for equal values, in every process."""
    text = json.dumps(pack(values), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
