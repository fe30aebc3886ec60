"""What a test claims of an answer's status: that it is a success, in any spelling, or that it is a refusal."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from auditor.checks.status_answers import STATUS, SUCCESS, Answers
from auditor.syntax.code_tree import last_name
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk

GOOD = frozenset({"OK", "ok", "HTTP_200_OK", "CREATED", "ACCEPTED", "HTTP_201_CREATED"})
SUMMING = frozenset({"set", "list", "sorted", "max", "min", "Counter", "int", "str", "tuple", "unique", "frozenset"})
EQUAL = frozenset(
    {
        "assertEqual",
        "assertEquals",
        "assertTrue",
        "assertIn",
        "assert_equal",
        "assertIs",
        "assertLess",
        "assertLessEqual",
    }
    | {"assertListEqual", "assertCountEqual", "assertSetEqual", "assertSequenceEqual", "assertGreaterEqual"}
    | {"assert_true", "assert_in", "assertAlmostEqual", "Equal", "AreEqual", "True", "IsTrue", "That", "Same"}
)
TRUE = frozenset({"assertTrue", "assert_true", "True", "IsTrue"})
SHOULD = frozenset({"Be", "BeSuccessful", "BeTrue", "HaveStatusCode", "ShouldBe", "ShouldBeTrue", "BeOneOf"})
ANY = None  # instead of answers: of whatever was asked


def status_check(node: ast.AST, answers: Answers | None) -> ast.AST | None:
    """An assertion of success. The node to point at, or `None`. Without `answers`, of anything that has a status."""
    if isinstance(node, ast.Assert):
        return node.test if is_success(node.test, answers) else None
    if isinstance(node, ast.If):
        return node.test if _gives_up(node.body) and is_failure(node.test, answers) else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if name in ("raise_for_status", "EnsureSuccessStatusCode") and isinstance(node.func, ast.Attribute):
        return node if answers is ANY or answers.kind(node.func.value) == "one" else None
    if name in SHOULD and isinstance(node.func, ast.Attribute):
        return node if _should(node.func.value, name, node.args, answers) else None
    if name not in EQUAL or not node.args:
        return None
    if name in TRUE or (name == "That" and len(node.args) == 1):
        return node if is_success(node.args[0], answers) else None
    claim = ast.Compare(node.args[0], [ast.LtE() if "Less" in name else ast.Eq()], node.args[1:2] or node.args[:1])
    return node if is_success(claim, answers) else None


def _should(node: ast.expr, name: str, wanted: list[ast.expr], answers: Answers | None) -> bool:
    """`response.StatusCode.Should().Be(HttpStatusCode.OK)`, `response.Should().BeSuccessful()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Should":
        node = node.func.value
    if name in ("BeSuccessful", "HaveStatusCode"):
        node = ast.Attribute(node, "StatusCode", ast.Load())
    if not _reads(node, answers):
        return False
    return name in ("BeSuccessful", "BeTrue", "ShouldBeTrue") or (bool(wanted) and _is_good(wanted))


def _gives_up(body: Iterable[ast.stmt]) -> bool:
    """`raise ...`, `pytest.fail(...)`, `assert False`, `sys.exit(1)`."""
    for node in body:
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value:
            return True
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and last_name(call.func) in ("fail", "exit", "_exit"):
            return True
    return False


def is_success(node: ast.expr, answers: Answers | None) -> bool:
    """Whether a condition says that the status is one of success, and no more."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return all(is_success(value, answers) for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_failure(node.operand, answers)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in ("all", "bool") and len(node.args) == 1:
            return _of_each(node.args[0], answers, is_success)
        prefix = node.args[0] if name == "startswith" and node.args else None
        if isinstance(prefix, ast.Constant) and str(prefix.value).startswith("2"):
            return isinstance(node.func, ast.Attribute) and _reads(node.func.value, answers)
        return (
            name in ("is_success", "is_ok", "ok")
            and isinstance(node.func, ast.Attribute)
            and _reads(node.func, answers)
        )
    if isinstance(node, ast.Compare):
        return _compares(node, answers)
    return isinstance(node, (ast.Attribute, ast.Name)) and _reads(node, answers)


def is_failure(node: ast.expr, answers: Answers | None) -> bool:
    """Whether a condition says that the status is none of success, and no more."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_success(node.operand, answers)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return all(is_failure(value, answers) for value in node.values)
    if isinstance(node, ast.Call) and last_name(node.func) == "any" and len(node.args) == 1:
        return _of_each(node.args[0], answers, is_failure)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    turned = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
    other = turned.get(type(node.ops[0]))
    return other is not None and _compares(ast.Compare(node.left, [other()], node.comparators), answers)


def _of_each(node: ast.expr, answers: Answers | None, claim: object) -> bool:
    if not isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
        return claim is is_success and is_success(node, answers)
    if answers is not ANY:
        answers.kind(node)  # binds what it goes over
    return is_success(node.elt, answers) if claim is is_success else is_failure(node.elt, answers)


def _compares(node: ast.Compare, answers: Answers | None) -> bool:
    sides = [node.left, *node.comparators]
    if not any(_reads(side, answers) for side in sides):
        return False
    if any(isinstance(operator, (ast.NotEq, ast.NotIn, ast.IsNot)) for operator in node.ops):
        return False
    whole = numbers(node)
    if any(isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for operator in node.ops):
        return _is_below(sides, node.ops)
    if any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.FloorDiv) for side in sides):
        return 2 in whole
    return _is_good(sides) and not any(400 <= number < 600 for number in whole)


def _is_below(sides: list[ast.expr], operators: list[ast.cmpop]) -> bool:
    """`200 <= status < 300`, `status < 400`; `status < 500` lets refusals through, and so does `status >= 200`."""
    bounded = False
    for left, operator, right in zip(sides, operators, sides[1:], strict=False):
        if isinstance(operator, (ast.Gt, ast.GtE)):
            left, right = right, left
        top = right.value if isinstance(right, ast.Constant) and type(right.value) is int else None
        bottom = left.value if isinstance(left, ast.Constant) and type(left.value) is int else None
        if top is not None and not 200 < top <= 400:
            return False
        if bottom is not None and not 199 <= bottom < 300:
            return False
        bounded |= top is not None
    return bounded


def _reads(node: ast.AST, answers: Answers | None) -> bool:
    """Whether an expression is a status, or all of several."""
    if isinstance(node, ast.Await):
        return _reads(node.value, answers)
    if answers is ANY:
        if isinstance(node, ast.Attribute) and (
            node.attr in SUCCESS or node.attr in ("status_code", "status", "StatusCode")
        ):
            return True
    elif answers.kind(node) in ("status", "statuses"):
        return True
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.FloorDiv) and _reads(node.left, answers)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)) and answers is ANY:
        return _reads(node.elt, answers)
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in SUMMING:
        return any(_reads(part, answers) for part in node.args)
    if name in ("sum", "len") and node.args:
        part = node.args[0]
        if name == "len":
            if not isinstance(part, (ast.ListComp, ast.SetComp)) or answers is ANY:
                return False
            answers.kind(part)
            return any(is_success(test, answers) for loop in part.generators for test in loop.ifs)
        return _of_each(part, answers, is_success)
    return name == "count" and isinstance(node.func, ast.Attribute) and _reads(node.func.value, answers)


def _is_good(nodes: list[ast.expr]) -> bool:
    for node in nodes:
        for part in walk(node):
            if isinstance(part, ast.Constant) and type(part.value) is int and 200 <= part.value < 300:
                return True
            if isinstance(part, ast.Constant) and part.value is True:
                return True
            if isinstance(part, ast.Attribute) and part.attr in GOOD:
                return True
            if isinstance(part, ast.Call) and last_name(part.func) in ("sum", "len"):
                return True  # as many successes as there are answers
    return False


def numbers(node: ast.AST) -> list[int]:
    """The whole numbers that stand in an expression, the divisor of `status // 100` left out."""
    found = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv):
            stack.append(part.left)
            continue
        if isinstance(part, ast.Constant) and type(part.value) is int:
            found.append(part.value)
        stack.extend(ast.iter_child_nodes(part))
    return found


def expects_refusal(node: ast.AST, answers: Answers) -> bool:
    """Whether a refusal (4xx, 5xx) is among what a comparison names."""
    if isinstance(node, ast.Call):
        if not last_name(node.func).startswith("assert") and last_name(node.func) not in EQUAL | SHOULD:
            return False
    elif not isinstance(node, ast.Compare) or is_success(node, answers):
        return False
    if not any(isinstance(part, ast.expr) and answers.kind(part) in ("status", "statuses") for part in walk(node)):
        return False
    named = [
        part.attr
        for part in walk(node)
        if isinstance(part, ast.Attribute) and (part.attr.isupper() or last_name(part.value) == "HttpStatusCode")
    ]
    refused = any(name not in GOOD and name not in STATUS and not word_set(name).isdisjoint(REFUSALS) for name in named)
    return refused or any(400 <= number < 600 for number in numbers(node))


REFUSALS = frozenset(
    {"bad", "unauthorized", "forbidden", "found", "large", "many", "unavailable", "unprocessable", "error", "timeout"}
    | {"conflict", "gone", "allowed", "required", "long", "gateway", "implemented", "teapot", "acceptable", "entity"}
    | {"400", "401", "403", "404", "409", "413", "422", "429", "500", "503"}
)
