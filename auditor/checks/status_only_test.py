"""A test that posts to a generation endpoint and is content with the status: a leaked answer is HTTP 200 as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import StatusParams
from auditor.checks.code_shapes import TEST_PATHS
from auditor.checks.slot_pools import in_order
from auditor.model.facts import Related
from auditor.syntax.code_tree import CodeTree, FunctionNode, last_name, scopes
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk

NEAR = 10  # lines from a test's name to its check: further apart, and with more asserted, the test is shown as a whole
SUCCESS = frozenset({"ok", "is_success", "raise_for_status", "is_ok", "status_ok"})


def run(tree: CodeTree, index: CodeIndex, params: StatusParams) -> Iterator[Match]:
    """The status-only tests of one file."""
    if not TEST_PATHS.hold(tree.source.path):
        return
    constants = _constants(tree.module)
    for scope in scopes(tree):
        if scope.inside or not scope.node.name.lower().startswith("test"):
            continue
        node = judge(scope.node, constants, params)
        if node is not None:
            whole = _as_a_whole(scope.node, node, constants, params)
            span = tree.span(node)
            yield Match(
                "status-only",
                tree.name_span(scope.node, scope.node.name) if whole else span,
                subject=scope.name,
                scope=scope.name,
                values={"test": scope.name, "check": tree.source.slice(span)},
                properties={"test": scope.name},
                related=(Related(span, "this is all that is asked of the answer"),) if whole else (),
                confidence="high" if _asks_nothing_else(scope.node, constants, params) else "medium",
            )


def _constants(module: ast.Module) -> dict[str, str]:
    found = {}
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    for body in bodies:
        for node in body:
            if isinstance(node, ast.Assign):
                text = _text(node.value, {})
                for target in node.targets:
                    if isinstance(target, ast.Name) and text:
                        found[target.id] = text
    return found


def _text(node: ast.AST, constants: Mapping[str, str]) -> str:
    """The literal text in an expression, constants of the module included."""
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
        elif isinstance(part, ast.Name) and part.id in constants:
            parts.append(constants[part.id])
        elif isinstance(part, ast.Attribute) and part.attr in constants:
            parts.append(constants[part.attr])
    return "\n".join(parts)


def _posts(node: ast.Call, constants: Mapping[str, str], params: StatusParams) -> bool:
    name = last_name(node.func)
    if name not in ("post", "request", "apost", "stream", "post_json"):
        return False
    where = [*node.args[:2], *(entry.value for entry in node.keywords if entry.arg in ("url", "path", "endpoint"))]
    for part in where:
        for line in _text(part, constants).splitlines():
            path = line.split("?")[0].rstrip("/")
            end = next((entry for entry in params.endpoints if path.endswith(entry)), None)
            # `/conversations/{}/completions` is somebody's own path.
            if end is not None and "/{}" not in path.removesuffix(end).partition("://")[2 if "://" in path else 0]:
                return True
    return False


def judge(test: FunctionNode, constants: Mapping[str, str], params: StatusParams) -> ast.AST | None:
    """The assertion that is content with the status, in a test that looks at nothing else of the answer."""
    known = dict(constants)
    answers: set[str] = set()
    first: ast.AST | None = None
    for node in in_order(test):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if any(isinstance(part, ast.Call) and _posts(part, known, params) for part in walk(node.value)):
                answers.add(node.targets[0].id)
            else:
                text = _text(node.value, known)
                if text:
                    known[node.targets[0].id] = text
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                posted = isinstance(item.context_expr, ast.Call) and _posts(item.context_expr, known, params)
                if posted and isinstance(item.optional_vars, ast.Name):
                    answers.add(item.optional_vars.id)
        elif _uses_body(node, answers, known, params, test):
            return None
        if first is None:
            first = _status_check(node, answers, known, params)
        if _expects_refusal(node, answers):
            return None
    return first if first is not None else _beside(test, known, params)


def _beside(test: FunctionNode, known: Mapping[str, str], params: StatusParams) -> ast.AST | None:
    """The success that is asserted of another answer, in a test that throws away what was generated and asserts nothing
    else (a health check after a stress run)."""
    posted = [node for node in walk(test) if isinstance(node, ast.Call) and _posts(node, known, params)]
    thrown = [
        _waited(node.value) for node in walk(test) if isinstance(node, ast.Expr) and _waited(node.value) in posted
    ]
    if not posted or len(thrown) < len(posted):
        return None
    checks = [_status_check(node, None, known, params) for node in _assertions(test)]
    found = [node for node in checks if node is not None]
    return found[0] if found and len(found) == len(checks) else None


def _waited(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


def _assertions(test: FunctionNode) -> list[ast.AST]:
    return [
        node
        for node in in_order(test)
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and last_name(node.func).startswith("assert"))
    ]


def _as_a_whole(test: FunctionNode, check: ast.AST, known: Mapping[str, str], params: StatusParams) -> bool:
    """Whether the finding is the test and not one line of it: nothing is asked of the answer at all, or it asserts more
    than this and the check stands far from the test's name."""
    far: int = getattr(check, "lineno", test.lineno) - test.lineno
    return _beside(test, known, params) is not None or (far > NEAR and len(_assertions(test)) > 1)


def _asks_nothing_else(test: FunctionNode, known: Mapping[str, str], params: StatusParams) -> bool:
    """Whether the test asserts success and that the server lives, and nothing of what the server did meanwhile (its
    log, its spans, what a stand-in for the engine was given)."""
    return all(_status_check(node, None, known, params) is not None or _lives(node) for node in _assertions(test))


def _lives(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call) and last_name(part.func) in ("poll", "is_alive", "is_running") for part in walk(node)
    )


def _uses_body(
    node: ast.AST, answers: set[str], known: Mapping[str, str], params: StatusParams, test: FunctionNode
) -> bool:
    if isinstance(node, ast.Call) and _examines(node, answers, params):
        return True
    if isinstance(node, ast.Attribute) and node.attr in params.bodies:
        return _is_answer(node.value, answers, known, params) and not _only_shown(node, test)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return bool(_names(node.iter) & answers)
    return isinstance(node, (ast.Return, ast.Yield)) and isinstance(node.value, ast.Name) and node.value.id in answers


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def _is_answer(node: ast.AST, answers: set[str] | None, known: Mapping[str, str], params: StatusParams) -> bool:
    if answers is None:
        return True
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id in answers
    return isinstance(node, ast.Call) and _posts(node, known, params)


def _status_check(
    node: ast.AST, answers: set[str] | None, known: Mapping[str, str], params: StatusParams
) -> ast.AST | None:
    """An assertion of success. The node to point at, or `None`."""
    if isinstance(node, ast.Assert):
        return node.test if _is_success(node.test, answers, known, params) else None
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name == "raise_for_status" and isinstance(node.func, ast.Attribute):
            return node if _is_answer(node.func.value, answers, known, params) else None
        if name in ("assertEqual", "assertEquals", "assertTrue", "assertIn", "assert_equal") and node.args:
            for argument in node.args[:2]:
                if _reads_status(argument, answers, known, params) and (
                    len(node.args) < 2 or name == "assertTrue" or _is_good(node.args)
                ):
                    return node
    return None


def _reads_status(node: ast.AST, answers: set[str] | None, known: Mapping[str, str], params: StatusParams) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and (node.attr in SUCCESS or node.attr in ("status_code", "status"))
        and _is_answer(node.value, answers, known, params)
    )


def _is_good(nodes: list[ast.expr]) -> bool:
    for node in nodes:
        for part in walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, int) and 200 <= part.value < 300:
                return True
            if isinstance(part, ast.Attribute) and part.attr in ("OK", "ok", "HTTP_200_OK", "CREATED"):
                return True
    return False


def _is_success(node: ast.expr, answers: set[str] | None, known: Mapping[str, str], params: StatusParams) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return all(_is_success(value, answers, known, params) for value in node.values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = [node.left, node.comparators[0]]
        return any(_reads_status(side, answers, known, params) for side in sides) and _is_good(sides)
    return _reads_status(node, answers, known, params)


def _expects_refusal(node: ast.AST, answers: set[str]) -> bool:
    if not isinstance(node, (ast.Compare, ast.Call)) or not _names(node) & answers:
        return False
    status = any(isinstance(part, ast.Attribute) and part.attr in ("status_code", "status") for part in walk(node))
    codes = [
        part.value
        for part in walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, int) and not isinstance(part.value, bool)
    ]
    return status and any(400 <= code < 600 for code in codes)


def _examines(node: ast.Call, answers: set[str], params: StatusParams) -> bool:
    """The answer goes whole into a helper that looks into it."""
    if word_set(last_name(node.func)).isdisjoint(params.examining) or last_name(node.func).startswith("assert"):
        return False
    return any(isinstance(argument, ast.Name) and argument.id in answers for argument in node.args)


def _only_shown(node: ast.Attribute, test: FunctionNode) -> bool:
    """The body is used in the message of an assertion, in a print or in a log line, and nowhere else."""
    for part in walk(test):
        shown: list[ast.AST] = []
        if isinstance(part, ast.Assert) and part.msg is not None:
            shown = [part.msg]
        elif isinstance(part, ast.Call):
            name = last_name(part.func)
            if name in ("print", "info", "debug", "warning", "error", "log", "exception", "fail"):
                shown = list(part.args)
            elif name.startswith("assert") and len(part.args) > 2:
                shown = list(part.args[2:])
            if name.startswith("assert"):
                shown += [entry.value for entry in part.keywords if entry.arg == "msg"]
        if any(inner is node for entry in shown for inner in walk(entry)):
            return True
    return False
