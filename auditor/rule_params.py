"""Configuration values as parameters of a rule.

A list takes the place of the default list; a table `{add = [...], remove = [...]}` changes it. A table of a parameter
that is a group of lists, or a mapping, says something of the keys that it names and leaves the others alone.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from auditor.checks.base import Above
from auditor.model.records import dataclass, fields, is_dataclass, replace
from auditor.nearest import hint as near

_WORD = re.compile(r"[a-z0-9]+")
_CHANGES = ("add", "remove")


@dataclass(frozen=True, slots=True)
class Misfit:
    """What is wrong with a value: the keys that lead to it, from the parameter's name on, and why in words; `whole`
    says that the words name the place themselves."""

    path: tuple[str, ...]
    words: str
    whole: bool = False

    def __str__(self) -> str:
        return self.words if self.whole else f"`{'.'.join(self.path)}`: {self.words}"


def fitted(value: Any, hint: Any, default: Any, path: tuple[str, ...]) -> Any:
    """A configuration value as the type `hint` of a parameter, on top of its default; a `Misfit` where it is wrong."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:  # a list of words that names are compared with piece by piece
        made = fitted(value, arguments[0], default, path)
        if isinstance(made, Misfit):
            return made
        return _above(made, arguments[1], path) if isinstance(arguments[1], Above) else _words(made, default, path)
    if origin in (typing.Union, types.UnionType):
        inner = next(argument for argument in arguments if argument is not type(None))
        return fitted(value, inner, default, path)
    if origin in (tuple, frozenset):
        return _list(value, origin, arguments[0], default or origin(), path)
    if is_dataclass(hint):
        return _group(value, hint, default, path)
    if origin is typing.Literal:
        known = ", ".join(map(str, arguments))
        return value if value in arguments else Misfit(path, f"one of {known} is expected here")
    if origin is not None:
        return _mapping(value, arguments[1], default or {}, path)
    if hint is bool:
        return value if isinstance(value, bool) else Misfit(path, "true or false is expected here")
    if hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return Misfit(path, "a number is expected here")
        return hint(value)
    return value if isinstance(value, str) else Misfit(path, "a text is expected here")


def _above(made: float, bound: Above, path: tuple[str, ...]) -> Any:
    if bound.least < made < math.inf:
        return made
    return Misfit(path, f"a number above {bound.least:g} is expected here, not {made:g}")


def _group(value: Any, hint: Any, default: Any, path: tuple[str, ...]) -> Any:
    """The table of a parameter that holds several."""
    if not isinstance(value, Mapping):
        return Misfit(path, "a table is expected here")
    hints = typing.get_type_hints(hint, include_extras=True)
    changes: dict[str, Any] = {}
    for key, item in value.items():
        name = key.replace("-", "_")
        if name not in hints:
            return Misfit((*path, key), f"not known here; {_either(key, hints)}")
        made = fitted(item, hints[name], getattr(default, name), (*path, key))
        if isinstance(made, Misfit):
            return made
        changes[name] = made
    return replace(default, **changes)


def _mapping(value: Any, hint: Any, default: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    if not isinstance(value, Mapping):
        return Misfit(path, "a table is expected here")
    made = dict(default)
    for key, item in value.items():
        made[key] = fitted(item, hint, default.get(key), (*path, key))
        if isinstance(made[key], Misfit):
            return made[key]
    return made


def _list(value: Any, kind: Any, hint: Any, default: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return _changed(value, kind, hint, default, path)
    if not isinstance(value, list):
        return Misfit(path, "a list is expected here, or a table with `add` and `remove`")
    return _items(value, kind, hint, path)


def _items(value: list[Any], kind: Any, hint: Any, path: tuple[str, ...]) -> Any:
    items = [fitted(item, hint, None, path) for item in value]
    return next((item for item in items if isinstance(item, Misfit)), None) or kind(items)


def _words(made: tuple[str, ...], default: tuple[str, ...], path: tuple[str, ...]) -> Any:
    """Names of the source are taken apart at capitals and underscores: any other entry could never match."""
    wrong = next((word for word in made if not _WORD.fullmatch(word)), None)
    if wrong is None:
        return made
    return Misfit(path, f"single words in lower case are expected here, such as `{default[0]}`, not `{wrong}`")


def _changed(value: Mapping[str, Any], kind: Any, hint: Any, default: Any, path: tuple[str, ...]) -> Any:
    """The default list without what is removed and with what is added."""
    for key, entries in value.items():
        if key not in _CHANGES:
            return Misfit((*path, key), f"not known here; {_either(key, _CHANGES)}")
        if not isinstance(entries, list):
            return Misfit((*path, key), "a list is expected here")
    if not value:
        return default
    gone = _items(value.get("remove", []), kind, hint, (*path, "remove"))
    more = _items(value.get("add", []), kind, hint, (*path, "add"))
    for made in (gone, more):
        if isinstance(made, Misfit):
            return made
    for item in gone:
        if item not in default:
            words = near(str(item), map(str, default), "`auditor explain` shows what there is")
            return Misfit((*path, "remove"), f"`{item}` is not in the list; {words}")
    left = [item for item in default if item not in gone]
    return kind([*left, *(item for item in more if item not in left)])


def _either(key: str, known: typing.Iterable[str]) -> str:
    names = sorted(name.replace("_", "-") for name in known)
    return near(key, names, f"there is {', '.join(names)}")


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of two configurations, the nearer one on top: what both add or remove adds up, tables join, other
    values of the nearer one win."""
    made = dict(base)
    for key, value in own.items():
        before = made.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            made[key] = merged(before, value)
        elif key in _CHANGES and isinstance(before, list) and isinstance(value, list):
            made[key] = [*before, *(item for item in value if item not in before)]
        else:
            made[key] = value
    return made


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a parameter's value."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        inner = schema_of(arguments[0])
        return {**inner, "exclusiveMinimum": arguments[1].least} if isinstance(arguments[1], Above) else inner
    if origin in (typing.Union, types.UnionType):
        return schema_of(next(argument for argument in arguments if argument is not type(None)))
    if origin in (tuple, frozenset):
        if arguments[0] is str:
            return {"$ref": "#/$defs/texts"}
        return list_schema(schema_of(arguments[0]))
    if is_dataclass(hint):
        return schema_of_group(typing.cast("type[Any]", hint))
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is not None:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    kinds = {bool: "boolean", int: "integer", float: "number"}
    return {"type": kinds.get(hint, "string")}


def list_schema(item: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a list that a configuration may replace or change."""
    items = {"type": "array", "items": dict(item)}
    change = {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(_CHANGES, items)}
    return {"anyOf": [items, change]}


def schema_of_group(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a table with the parameters of a class, spelled with hyphens."""
    hints = typing.get_type_hints(kind, include_extras=True) if is_dataclass(kind) else {}
    properties = {name.replace("_", "-"): schema_of(hint) for name, hint in hints.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def lists_of(params: object, before: str = "") -> typing.Iterator[tuple[str, tuple[str, ...]]]:
    """The lists of texts among parameters, under the keys that a configuration names them by."""
    if not is_dataclass(params):
        return
    for field in fields(params):
        value = getattr(params, field.name)
        name = before + field.name.replace("_", "-")
        if isinstance(value, tuple) and value and all(isinstance(item, str) for item in value):
            yield name, value
        elif is_dataclass(value):
            yield from lists_of(value, f"{name}.")
