"""The keys of the configuration: one table, from which both the reading and the JSON Schema come."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, NoReturn

from auditor.config import FAIL_ON, PROFILES, Config, IgnoreEntry, PathSettings, Reading, fail, joined, load_config
from auditor.model.records import dataclass
from auditor.model.rules import Rule
from auditor.model.spans import SourceFile
from auditor.nearest import nearest
from auditor.syntax.spanned import Spanned


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the JSON Schema of its value, and what it does in a line."""

    schema: Mapping[str, Any]
    about: str


TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": {"type": "string"}}
RULES = {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}}

IGNORE_KEYS: Mapping[str, Key] = {
    "path": Key(TEXT, "git-ignore pattern of the files; all files without it"),
    "rule": Key(TEXT, "the rule; all rules without it"),
    "reason": Key(TEXT, "why, in words; required"),
    "until": Key({"type": "string", "format": "date"}, "the last day on which it holds, YYYY-MM-DD"),
}
PATH_KEYS: Mapping[str, Key] = {
    "match": Key(TEXT, "git-ignore pattern of the files"),
    "gpu": Key(TEXT, "the accelerator of launches in these files that name none"),
    "ignore": Key(RULES, "rules that do not count in these files"),
}
KEYS: Mapping[str, Key] = {
    "select": Key(RULES, "run these rules only"),
    "ignore": Key(RULES, "run all rules but these"),
    "profile": Key({"enum": list(PROFILES)}, "strict: notes become warnings, warnings errors, more rules on"),
    "fail-on": Key({"enum": list(FAIL_ON)}, "the least level that makes the exit code 1"),
    "exclude": Key(TEXTS, "git-ignore patterns of files that are not read"),
    "submodules": Key({"type": "boolean"}, "look into git submodules too"),
    "baseline": Key(TEXT, "the baseline file, relative to this one"),
    "extends": Key(TEXTS, "configuration files whose settings hold below these, relative to this one"),
    "gpu": Key(TEXT, "the accelerator of launches that name none, such as `H200`"),
    "models": Key({"type": "object", "additionalProperties": {"type": "object"}}, "model configurations by name"),
    "rules": Key({"type": "object", "additionalProperties": {"type": "object"}}, "parameters of rules by rule id"),
    "path": Key({"type": "array", "items": {"type": "object"}}, "settings for some files only"),
    "ignores": Key({"type": "array", "items": {"type": "object"}}, "findings that do not count, with a reason"),
}


def schema() -> dict[str, Any]:
    """The JSON Schema of `[tool.auditor]` and of auditor.toml."""
    from auditor.capacity.config_keys import schema as model_schema
    from auditor.rule_params import list_schema, schema_of_group
    from auditor.rulebook import load_rules

    def table(keys: Mapping[str, Key], required: tuple[str, ...] = ()) -> dict[str, Any]:
        properties = {name: {**key.schema, "description": key.about} for name, key in keys.items()}
        found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
        return {**found, "required": list(required)} if required else found

    top = table(KEYS)
    top["properties"]["path"]["items"] = table(PATH_KEYS, ("match",))
    top["properties"]["models"]["additionalProperties"] = {"$ref": "#/$defs/model"}
    top["properties"]["ignores"]["items"] = table(IGNORE_KEYS, ("reason",))
    top["properties"]["rules"]["additionalProperties"] = False
    top["properties"]["rules"]["properties"] = {
        rule.id: schema_of_group(type(rule.params)) for rule in sorted(load_rules(), key=lambda rule: rule.id)
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "auditor configuration"}
    return {**head, **top, "$defs": {"texts": list_schema(TEXT), "model": model_schema()}}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where errors of one file point."""

    path: str
    source: SourceFile

    def error(self, offset: int, message: str) -> NoReturn:
        position = self.source.position(offset)
        fail(self.path, position.line, position.column, message)


def read_settings(
    plain: Mapping[str, Any],
    root: Spanned,
    source: SourceFile,
    path: str,
    full: str,
    seen: tuple[str, ...],
    read: Reading,
) -> Config:
    """The settings of a parsed file. Raises `ConfigError`."""
    place = _Place(path, source)
    node, values = root, dict(plain)
    if os.path.basename(path) == "pyproject.toml":
        tool = values.get("tool")
        if tool is not None and not isinstance(tool, Mapping):
            place.error(_start(root.pairs["tool"]), f"`tool`: a table is expected here, not {_called(tool)}")
        if not tool or "auditor" not in tool:
            return Config(file=path, root=os.path.dirname(full))
        values, node = tool["auditor"], root.pairs["tool"].pairs["auditor"]
        if not isinstance(values, Mapping):
            place.error(_start(node), f"`tool.auditor`: a table is expected here, not {_called(values)}")
    _check(values, node, KEYS, (), place, "[tool.auditor]")
    folder = os.path.dirname(full)
    config = Config(
        select=tuple(values.get("select", ())),
        ignore=tuple(values.get("ignore", ())),
        profile=values.get("profile", "default"),
        fail_on=values.get("fail-on", "error"),
        exclude=tuple(values.get("exclude", ())),
        submodules=values.get("submodules", False),
        baseline=os.path.join(folder, values["baseline"]) if "baseline" in values else None,
        assume={"gpu": values["gpu"]} if "gpu" in values else {},
        params=_params(values.get("rules", {}), node, place),
        models=values.get("models", {}),
        paths=tuple(
            _path(item, node.pairs["path"].items[number], place) for number, item in enumerate(values.get("path", ()))
        ),
        ignores=tuple(
            _ignore(item, node.pairs["ignores"].items[number], place)
            for number, item in enumerate(values.get("ignores", ()))
        ),
        file=path,
        root=folder,
        said=frozenset(values),
    )
    if "gpu" in values:
        _known_gpu(values["gpu"], node, place)
    for name, table in config.models.items():
        _model(table, node.pairs["models"].pairs[name], place)
    for name in (*config.select, *config.ignore):
        _known_rule(name, node, place)
    for number, name in enumerate(values.get("extends", ())):
        other = os.path.normpath(os.path.join(folder, name))
        try:
            read(other)
        except OSError as error:
            place.error(node.pairs["extends"].items[number].start, f"`extends`: cannot read `{name}`: {error.strerror}")
        config = joined(load_config(other, (*seen, full), read), config)
    return config


def _check(
    values: Mapping[str, Any],
    node: Spanned,
    keys: Mapping[str, Key],
    required: tuple[str, ...],
    place: _Place,
    name: str,
) -> None:
    for key, value in values.items():
        spanned = node.pairs[key]
        offset = spanned.key if spanned.key >= 0 else spanned.start
        if key not in keys:
            near = nearest(key, keys)
            hint = f"did you mean `{near}`?" if near else f"known here: {', '.join(keys)}"
            place.error(offset, f"{name} has no key `{key}`; {hint}")
        problem = _wrong(value, keys[key].schema)
        if problem is not None:
            where, message = problem
            inner = spanned.items[where] if where is not None and where < len(spanned.items) else spanned
            place.error(inner.start if inner.end > inner.start else offset, f"`{key}`: {message}")
    for key in required:
        if key not in values:
            place.error(node.start, f"{name} needs the key `{key}`")


def _wrong(value: Any, wanted: Mapping[str, Any]) -> tuple[int | None, str] | None:
    """What is wrong with a value, and with which of its items; `None` when it is right."""
    if "enum" in wanted:
        if value in wanted["enum"]:
            return None
        near = nearest(str(value), wanted["enum"])
        hint = f"; did you mean `{near}`?" if near else ""
        return None, f"`{value}` is not one of {', '.join(wanted['enum'])}{hint}"
    kinds: Mapping[str, tuple[Callable[[Any], bool], str]] = {
        "string": (lambda item: isinstance(item, (str, date) if wanted.get("format") == "date" else str), "a text"),
        "boolean": (lambda item: isinstance(item, bool), "true or false"),
        "array": (lambda item: isinstance(item, list), "a list"),
        "object": (lambda item: isinstance(item, Mapping), "a table"),
        "number": (lambda item: isinstance(item, (int, float)) and not isinstance(item, bool), "a number"),
    }
    if "type" not in wanted:
        return None
    test, words = kinds[wanted["type"]]
    if not test(value):
        return None, f"{words} is expected here, not {_called(value)}"
    if wanted["type"] == "array":
        for number, item in enumerate(value):
            problem = _wrong(item, wanted["items"])
            if problem is not None:
                return number, problem[1]
    return None


def _called(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "this")


def _start(node: Spanned) -> int:
    """Where a value stands, else where its key does."""
    return node.start if node.end > node.start or node.key < 0 else node.key


def _known_gpu(name: str, node: Spanned, place: _Place) -> None:
    """The catalogue is loaded only where a configuration names an accelerator."""
    from auditor.capacity.accelerators import find_gpu, gpus
    from auditor.nearest import nearest_name

    if find_gpu(name) is None:
        near = nearest_name(name, gpus())
        hint = f"did you mean `{near}`?" if near else f"known are {', '.join(gpus())}"
        place.error(_start(node.pairs["gpu"]), f"`gpu`: there is no accelerator `{name}` in the catalogue; {hint}")


def _model(table: Mapping[str, Any], node: Spanned, place: _Place) -> None:
    """The types of the keys that are read, and names that are one slip away from them: a `config.json` holds many
    others, which say nothing of the pool."""
    from auditor.capacity.checkpoint import SUB_CONFIGS
    from auditor.capacity.config_keys import KNOWN, slip

    for key, value in table.items():
        spanned = node.pairs[key]
        near = slip(key)
        if near is not None:
            place.error(
                spanned.key if spanned.key >= 0 else spanned.start,
                f"a model configuration has no key `{key}`; did you mean `{near}`?",
            )
        problem = _wrong(value, {"type": KNOWN[key], "items": {}}) if KNOWN.get(key) else None
        if problem is not None:
            place.error(_start(spanned), f"`{key}`: {problem[1]}")
        if key in SUB_CONFIGS:
            _model(value, spanned, place)


def _known_rule(name: str, node: Spanned, place: _Place) -> None:
    from auditor.rulebook import load_rules

    known = [rule.id for rule in load_rules()]
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean `{near}`?" if near else "`auditor rules` lists them"
        offset = node.start
        for key in ("select", "ignore", "rule"):
            spanned = node.pairs.get(key)
            for item in [*(spanned.items if spanned is not None and isinstance(spanned.value, list) else ()), spanned]:
                if item is not None and item.value == name:
                    offset = item.start
        place.error(offset, f"there is no rule `{name}`; {hint}")


def _params(values: Mapping[str, Any], node: Spanned, place: _Place) -> Mapping[str, Mapping[str, Any]]:
    from auditor.rulebook import load_rules, with_params

    rules = {rule.id: rule for rule in load_rules()}
    for name, table in values.items():
        spanned = node.pairs["rules"].pairs[name]
        offset = spanned.key if spanned.key >= 0 else spanned.start
        if name not in rules:
            near = nearest(name, rules)
            place.error(
                offset, f"there is no rule `{name}`; " + (f"did you mean `{near}`?" if near else "see `auditor rules`")
            )
        for key, value in table.items():
            wrong = with_params(rules[name], {key: value})
            if isinstance(wrong, Rule):
                continue
            inner = spanned.pairs[key]
            for part in wrong.path[1:]:
                inner = inner.pairs.get(part, inner)
            place.error(inner.key if inner.key >= 0 else inner.start, str(wrong))
    return values


def _path(item: Mapping[str, Any], node: Spanned, place: _Place) -> PathSettings:
    _check(item, node, PATH_KEYS, ("match",), place, "[[path]]")
    if "gpu" in item:
        _known_gpu(item["gpu"], node, place)
    for name in item.get("ignore", ()):
        _known_rule(name, node, place)
    return PathSettings(item["match"], item.get("gpu"), tuple(item.get("ignore", ())))


def _ignore(item: Mapping[str, Any], node: Spanned, place: _Place) -> IgnoreEntry:
    _check(item, node, IGNORE_KEYS, ("reason",), place, "[[ignores]]")
    if not str(item["reason"]).strip():
        place.error(node.pairs["reason"].start, "`reason`: say in words why these findings do not count")
    if "rule" in item:
        _known_rule(item["rule"], node, place)
    until = item.get("until")
    if isinstance(until, datetime):
        place.error(node.pairs["until"].start, "`until`: a day is expected here, not a time; write YYYY-MM-DD")
    if isinstance(until, str):
        try:
            until = date.fromisoformat(until)
        except ValueError:
            place.error(node.pairs["until"].start, f"`until`: `{until}` is not a date; write YYYY-MM-DD")
    position = place.source.position(node.key if node.key >= 0 else node.start)
    stands = f"{place.path}:{position.line}"
    return IgnoreEntry(item.get("path", ""), item.get("rule", ""), item["reason"], until, stands)
