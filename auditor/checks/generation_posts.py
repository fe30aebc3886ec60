"""Which calls of a test post a prompt: the address as text, through constants, fixtures and parameters of the file."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from auditor.checks.code_params import StatusParams
from auditor.syntax.code_tree import FunctionNode, last_name
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk

Texts = Mapping[str, str]
SENDING = frozenset({"request", "stream", "urlopen", "fetch", "simulate_request", "send"})
ADDRESSES = frozenset({"url", "path", "endpoint", "uri", "route"})
PREPARING = frozenset({"setUp", "setUpClass", "setup_method", "setup_class", "setup", "__init__", "asyncSetUp"})


def constants(module: ast.Module) -> dict[str, str]:
    """The texts that names of a file stand for: constants, fields that are set up, fixtures."""
    found: dict[str, str] = {}
    owners = [node for node in module.body if isinstance(node, ast.ClassDef)]
    for body in (module.body, *(node.body for node in owners)):
        for node in body:
            if isinstance(node, ast.Assign):
                _take(node, found)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_fixture(node):
                returned = [part.value for part in walk(node) if isinstance(part, (ast.Return, ast.Yield))]
                text = "\n".join(text_of(value, found) for value in returned if value is not None)
                if text:
                    found[node.name] = text
    for owner in owners:
        for method in owner.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name in PREPARING:
                for part in walk(method):
                    if isinstance(part, ast.Assign):
                        _take(part, found)
    return found


def _is_fixture(node: FunctionNode) -> bool:
    return any("fixture" in (last_name(part), last_name(getattr(part, "func", part))) for part in node.decorator_list)


def _take(node: ast.Assign, found: dict[str, str]) -> None:
    text = text_of(node.value, found)
    for target in node.targets:
        if isinstance(target, (ast.Name, ast.Attribute)) and text:
            found[last_name(target)] = text


def parameters(test: FunctionNode) -> dict[str, str]:
    """What `pytest.mark.parametrize` gives to a test, as text."""
    found = {}
    for node in test.decorator_list:
        if isinstance(node, ast.Call) and last_name(node.func) == "parametrize" and len(node.args) > 1:
            names = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
            text = text_of(node.args[1], {})
            if isinstance(names, str) and text:
                found.update({name.strip(): text for name in names.split(",")})
    return found


def text_of(node: ast.AST, known: Texts) -> str:
    """The literal text in an expression, what its names stand for included; a line for each piece."""
    parts = []
    inner: set[ast.AST] = set()
    for part in walk(node):
        if isinstance(part, ast.JoinedStr):
            whole = [str(item.value) if isinstance(item, ast.Constant) else "{}" for item in part.values]
            parts.append("".join(whole))
            inner.update(item for item in part.values if isinstance(item, ast.Constant))
        elif part in inner:
            continue
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            parts.append(part.value)
        elif isinstance(part, ast.Name) and part.id in known:
            parts.append(known[part.id])
        elif isinstance(part, ast.Attribute) and part.attr in known:
            parts.append(known[part.attr])
    return "\n".join(parts)


def may_send(name: str) -> bool:
    """Whether a function of this name may post."""
    return name in SENDING or name in ("SendAsync", "Send") or not word_set(name).isdisjoint({"post", "apost"})


def posts(node: ast.Call, known: Texts, params: StatusParams) -> bool:
    """Whether a call posts to an address that generates."""
    if not may_send(last_name(node.func)):
        return False
    where = [*node.args[:3], *(entry.value for entry in node.keywords if entry.arg in ADDRESSES)]
    lines = [line for part in where if not isinstance(part, ast.Dict) for line in text_of(part, known).splitlines()]
    return any(_generates(line, params) for line in lines)


def _generates(address: str, params: StatusParams) -> bool:
    path = address.split("?")[0].rstrip("/")
    end = next((entry for entry in params.endpoints if path.endswith(entry)), None)
    if end is None:
        return False
    before = path.removesuffix(end)
    host, _, way = before.partition("://")[2].partition("/") if "://" in before else ("", "", before)
    parts = [part for part in way.split("/") if part]
    if not host and parts and (way[0] != "/") and (set("{%:.") & set(parts[0])):
        parts = parts[1:]  # `{base}`, `localhost:8000`
    for number, part in enumerate(parts):
        # `/keys/generate` makes keys, `/conversations/{}/completions` is somebody's own; a model may have any name.
        named = number > 0 and parts[number - 1] in ("models", "deployments", "engines", "model")
        if part.lower() not in params.prefixes and not named:
            return False
    return True
