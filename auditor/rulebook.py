"""Rule files to rules: read as text, checked against the check that they name, with path, line and column on error."""

from __future__ import annotations

import string
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.checks import CHECKS
from auditor.checks.base import AnyCheck
from auditor.errors import RuleFileError
from auditor.model.records import MISSING, fields, is_dataclass
from auditor.model.rules import Example, Expectation, Reference, Rule

if TYPE_CHECKING:
    from auditor.rule_params import Misfit

RETIRED: frozenset[str] = frozenset()  # ids that once existed: never given to another rule
FAMILIES = ("version", "capacity", "code", "engine")
CONFIDENCES = ("high", "medium", "low")
LEVEL_WORDS = ("error", "warning", "note", "off")
_KEYS = {
    "id", "family", "title", "check", "params", "levels", "strict", "floor", "confidence", "severity", "messages",
    "why", "remedy", "references", "since", "measured", "examples",
}  # fmt: skip
_REQUIRED = _KEYS - {"params", "strict", "floor", "references", "measured"}


def rules_root() -> Path:
    """The folder of the rule files: inside the installed package, else beside the package in a checkout.

    Plain paths, not `importlib.resources`: its import alone costs more than a hook run may, and pip unpacks wheels.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "rules", here.parent / "rules"):
        if (folder / "version").is_dir():
            return folder
    raise RuleFileError("the rule files are missing from this installation")


def load_rules(root: Path | None = None) -> tuple[Rule, ...]:
    """All rules, ordered by family and id. Raises `RuleFileError`."""
    return _load(root) if root is not None else _own()


@lru_cache(maxsize=1)
def _own() -> tuple[Rule, ...]:
    return _load(rules_root())


def _load(root: Path) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for family in FAMILIES:
        folder = root / family
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".yaml"):
                rules.append(parse_rule(file.read_text(encoding="utf-8"), f"rules/{family}/{file.name}"))
    if not rules:
        raise RuleFileError("no rule file was found")
    return tuple(rules)


class _Node:
    """A YAML value read as text, with its place for error messages."""

    __slots__ = ("column", "file", "line", "value")

    def __init__(self, file: str, node: Any) -> None:
        import yaml

        self.file = file
        self.line = node.start_mark.line + 1
        self.column = node.start_mark.column + 1
        self.value: str | list[_Node] | dict[str, _Node]
        if isinstance(node, yaml.ScalarNode):
            self.value = node.value
        elif isinstance(node, yaml.SequenceNode):
            self.value = [_Node(file, item) for item in node.value]
        else:
            pairs: dict[str, _Node] = {}
            for key, value in node.value:
                if key.value in pairs:
                    raise RuleFileError(f"{file}:{key.start_mark.line + 1}: `{key.value}` stands twice")
                pairs[key.value] = _Node(file, value)
            self.value = pairs

    def error(self, message: str) -> RuleFileError:
        return RuleFileError(f"{self.file}:{self.line}:{self.column}: {message}")

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("a text is expected here")
        return self.value

    def items(self) -> list[_Node]:
        if not isinstance(self.value, list):
            raise self.error("a list is expected here")
        return self.value

    def pairs(self, allowed: Iterable[str] | None = None, required: Iterable[str] = ()) -> dict[str, _Node]:
        if not isinstance(self.value, dict):
            raise self.error("a mapping is expected here")
        if allowed is not None:
            for key, node in self.value.items():
                if key not in allowed:
                    raise node.error(f"unknown key `{key}`; known here: {', '.join(sorted(allowed))}")
        for key in sorted(required):
            if key not in self.value:
                raise self.error(f"the key `{key}` is missing")
        return self.value

    def choice(self, words: Sequence[str]) -> Any:
        if self.text() not in words:
            raise self.error(f"`{self.text()}` is not one of {', '.join(words)}")
        return self.text()


def parse_rule(text: str, file: str, checks: Sequence[AnyCheck] = CHECKS) -> Rule:
    """One rule file. `file` is its name in messages; raises `RuleFileError`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise RuleFileError(f"{place}: not valid YAML: {getattr(error, 'problem', None) or error}") from None
    if document is None:
        raise RuleFileError(f"{file}: the file is empty")
    top = _Node(file, document)
    pairs = top.pairs(_KEYS, _REQUIRED)
    check = next((check for check in checks if check.name == pairs["check"].text()), None)
    if check is None:
        known = ", ".join(sorted(check.name for check in checks))
        raise pairs["check"].error(f"there is no check `{pairs['check'].text()}`; there are: {known}")
    stem = file.rsplit("/", 1)[-1].removesuffix(".yaml")
    if pairs["id"].text() != stem:
        raise pairs["id"].error(f"the id `{pairs['id'].text()}` differs from the file name")
    if stem in RETIRED:
        raise pairs["id"].error(f"the id `{stem}` is retired and cannot be used again")
    if len(pairs["title"].text()) > 72:
        raise pairs["title"].error("the title has more than 72 characters")
    levels = _levels(pairs["levels"], check, whole=True)
    strict = _levels(pairs["strict"], check, whole=False) if "strict" in pairs else {}
    for outcome, level in levels.items():
        if level == "off" and outcome not in strict:
            raise pairs["levels"].error(f"`{outcome}` is off: say under `strict` what it is there")
    messages = {
        outcome: node.text().strip()
        for outcome, node in pairs["messages"].pairs(check.outcomes, check.outcomes).items()
    }
    for outcome, message in messages.items():
        _fields_of(message, check, pairs["messages"].pairs()[outcome])
    try:
        severity = float(pairs["severity"].text())
    except ValueError:
        raise pairs["severity"].error("a number above 0 and up to 10 is expected here") from None
    floor = (
        {key: node.choice(CONFIDENCES) for key, node in pairs["floor"].pairs({"default", "strict"}).items()}
        if "floor" in pairs
        else {}
    )
    examples = pairs["examples"].pairs({"bad", "good"}, {"bad", "good"})
    return Rule(
        id=stem,
        family=pairs["family"].choice(FAMILIES),
        title=pairs["title"].text(),
        check=check.name,
        params=_params(check.params, pairs.get("params"), top),
        levels=levels,
        strict=strict,
        floor=floor,
        confidence=pairs["confidence"].choice(CONFIDENCES),
        severity=severity,
        messages=messages,
        why=pairs["why"].text().strip(),
        remedy=pairs["remedy"].text().strip(),
        references=tuple(_reference(node) for node in pairs["references"].items()) if "references" in pairs else (),
        since=pairs["since"].text(),
        measured=pairs["measured"].text().strip() if "measured" in pairs else "",
        bad=tuple(_example(node, check, bad=True) for node in examples["bad"].items()),
        good=tuple(_example(node, check, bad=False) for node in examples["good"].items()),
        path=file,
    )


def with_params(rule: Rule, values: Mapping[str, Any]) -> Rule | Misfit:
    """The rule with some parameters changed (by name, `-` or `_`), or what is wrong with one of them."""
    from auditor.model.records import replace
    from auditor.nearest import hint
    from auditor.rule_params import Misfit, fitted

    params = rule.params
    if not is_dataclass(params) or isinstance(params, type):
        return Misfit((), f"`{rule.id}` takes no parameters", whole=True)
    hints = typing.get_type_hints(type(params), include_extras=True)
    changes: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in hints:
            names = sorted(entry.replace("_", "-") for entry in hints)
            known = hint(key, names, f"it has {', '.join(names)}")
            return Misfit((key,), f"`{rule.id}` has no parameter `{key}`; {known}", whole=True)
        changes[name] = fitted(value, hints[name], getattr(params, name), (key,))
        if isinstance(changes[name], Misfit):
            return typing.cast("Misfit", changes[name])
    return replace(rule, params=replace(params, **changes))


def _levels(node: _Node, check: AnyCheck, *, whole: bool) -> dict[str, Any]:
    pairs = node.pairs(check.outcomes, check.outcomes if whole else ())
    return {outcome: value.choice(LEVEL_WORDS) for outcome, value in pairs.items()}


def _fields_of(message: str, check: AnyCheck, node: _Node) -> None:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(message) if name is not None]
    except ValueError as error:
        raise node.error(f"the message cannot be filled in: {error}") from None
    for name in names:
        if name not in check.fields:
            raise node.error(f"the check `{check.name}` gives no field `{name}`; it gives {', '.join(check.fields)}")


def _reference(node: _Node) -> Reference:
    pairs = node.pairs({"title", "url"}, {"title", "url"})
    return Reference(pairs["title"].text(), pairs["url"].text())


def _example(node: _Node, check: AnyCheck, *, bad: bool) -> Example:
    pairs = node.pairs(
        {"name", "files", "assume", "expect"} if bad else {"name", "files", "assume"},
        {"name", "files", *(("expect",) if bad else ())},
    )
    contents = {name: value.text() for name, value in pairs["files"].pairs().items()}
    expect = []
    for item in pairs["expect"].items() if bad else ():
        entry = item.pairs({"path", "at", "outcome"}, {"path", "at", "outcome"})
        path, at, outcome = entry["path"].text(), entry["at"].text(), entry["outcome"].choice(check.outcomes)
        if contents.get(path, "").count(at) != 1:
            raise entry["at"].error(f"`{at}` must stand exactly once in `{path}`")
        expect.append(Expectation(path, at, outcome))
    assume = {name: value.text() for name, value in pairs["assume"].pairs().items()} if "assume" in pairs else {}
    return Example(pairs["name"].text(), contents, assume, tuple(expect))


def _params(kind: type[Any], node: _Node | None, top: _Node) -> Any:
    if not is_dataclass(kind):
        if node is not None and node.pairs():
            raise node.error("this check takes no parameters")
        return kind()
    hints = typing.get_type_hints(kind)
    given = (
        node.pairs({field.name.replace("_", "-") for field in fields(kind)} | {field.name for field in fields(kind)})
        if node
        else {}
    )
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = given.get(field.name) or given.get(field.name.replace("_", "-"))
        if value is not None:
            values[field.name] = convert(value, hints[field.name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise (node or top).error(f"the parameter `{field.name}` is missing")
    return kind(**values)


def convert(node: _Node, hint: Any) -> Any:
    """A text node as the type that a parameter class declares: text, numbers, booleans, tuples, sets and mappings."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return convert(node, next(argument for argument in arguments if argument is not type(None)))
    if origin is typing.Literal:
        return node.choice([str(argument) for argument in arguments])
    if origin in (tuple, frozenset):
        if origin is tuple and len(arguments) == 2 and arguments[1] is not Ellipsis:
            items = node.items()
            if len(items) != 2:
                raise node.error("two values are expected here")
            return tuple(convert(item, argument) for item, argument in zip(items, arguments, strict=True))
        return origin(convert(item, arguments[0]) for item in node.items())
    if origin is not None and issubclass(origin, Mapping):
        return {key: convert(value, arguments[1]) for key, value in node.pairs().items()}
    if is_dataclass(hint):
        return _params(typing.cast("type[Any]", hint), node, node)
    text = node.text()
    if hint is bool:
        return node.choice(("true", "false")) == "true"
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            raise node.error(f"`{text}` is not a number") from None
    return text
