"""Predicates that say a thing may be used, and what their answer proves: the test that a guard should have been.

They are methods and properties without arguments whose names speak of validity. What one proves is what holds for
certain where it came out true: fields that are empty, fields in one of some states, predicates that were denied.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from auditor.checks.code_words import StateWords
from auditor.model.records import dataclass, field
from auditor.model.spans import Span
from auditor.syntax.code_tree import CodeTree, FunctionNode, last_name, path_of, positional
from auditor.syntax.names import word_set

NEGATIONS = frozenset({"not", "un", "non", "never", "no", "in", "cannot", "isnt", "cant", "dont", "without", "until"})
DEEPEST = 4  # predicates of predicates


@dataclass(frozen=True, slots=True)
class Positive:
    """A predicate of validity. `empty` are the fields that are blank where it is true, `states` the fields that are
    then in one of the states named, `denied` the predicates of the same class that are then false. `also` is what its
    answer rests on besides: fields, or words for what is no field."""

    name: str
    called: bool
    span: Span
    empty: tuple[str, ...] = ()
    states: tuple[tuple[str, tuple[str, ...]], ...] = ()
    denied: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(slots=True)
class _Proof:
    empty: dict[str, None] = field(default_factory=dict)
    states: dict[str, tuple[str, ...]] = field(default_factory=dict)
    denied: dict[str, None] = field(default_factory=dict)
    also: dict[str, None] = field(default_factory=dict)


def is_positive(name: str, words: StateWords) -> bool:
    """Whether a name says that something may be used, and neither that it may not nor that it has ended."""
    parts = word_set(name)
    return words.is_valid(name) and parts.isdisjoint(NEGATIONS) and not words.is_final(name)


def positives(tree: CodeTree, node: ast.ClassDef, words: StateWords) -> tuple[Positive, ...]:
    """The predicates of validity of a class, in the order of the text."""
    methods = {part.name: part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
    found = []
    for method in methods.values():
        if not is_positive(method.name, words) or positional(method) or method.args.kwarg is not None:
            continue
        if not any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(method)):
            continue
        proof = _Proof()
        called = tree.language == "python"
        decorators = [last_name(entry) for entry in method.decorator_list]
        if decorators == ["property"]:
            called = False
        elif decorators:
            proof.also["a decorator"] = None  # a kept answer is no answer
        if isinstance(method, ast.AsyncFunctionDef):
            proof.also["an awaited answer"] = None
        _body(method, proof, methods, words, 0)
        found.append(
            Positive(
                method.name,
                called,
                tree.name_span(method, method.name),
                tuple(proof.empty),
                tuple(proof.states.items()),
                tuple(proof.denied),
                tuple(proof.also),
            )
        )
    return tuple(found)


def _body(
    method: FunctionNode, proof: _Proof, methods: Mapping[str, FunctionNode], words: StateWords, depth: int
) -> None:
    """What holds where a method came out true: it ends in `return condition`, before that only `return False` under
    conditions."""
    statements = _without_text(method)
    for statement in statements[:-1]:
        if isinstance(statement, ast.If) and not statement.orelse and _is_return(statement.body, False):
            _holds(statement.test, False, proof, methods, words, depth)
        else:
            proof.also["a computation"] = None
    last = statements[-1] if statements else None
    if isinstance(last, ast.Return) and last.value is not None:
        _holds(last.value, True, proof, methods, words, depth)
    else:
        proof.also["a computation"] = None


def _is_return(body: list[ast.stmt], answer: bool) -> bool:
    return (
        len(body) == 1
        and isinstance(body[0], ast.Return)
        and isinstance(body[0].value, ast.Constant)
        and body[0].value.value is answer
    )


def _holds(
    node: ast.expr, truth: bool, proof: _Proof, methods: Mapping[str, FunctionNode], words: StateWords, depth: int
) -> None:
    """Take in what holds where `node` came out as `truth`."""
    if isinstance(node, ast.Constant) and node.value is truth:
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _holds(node.operand, not truth, proof, methods, words, depth)
        return
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == truth:
        for value in node.values:
            _holds(value, truth, proof, methods, words, depth)
        return
    if isinstance(node, ast.Call) and last_name(node.func) == "bool" and len(node.args) == 1:
        _holds(node.args[0], truth, proof, methods, words, depth)
        return
    asked = _own(node.func) if isinstance(node, ast.Call) and not node.args and not node.keywords else _own(node)
    if asked is not None and (isinstance(node, ast.Call) or asked in methods):
        if not truth and words.is_over(asked):
            proof.denied[asked] = None
            return
        inner = methods.get(asked)
        if inner is not None and depth < DEEPEST and not truth:
            # False where every way to `return True` is closed: only of a single expression.
            answer = _returned(inner)
            if answer is not None:
                _holds(answer, False, proof, methods, words, depth + 1)
                return
        if inner is not None and depth < DEEPEST and truth and not isinstance(inner, ast.AsyncFunctionDef):
            _body(inner, proof, methods, words, depth + 1)
            return
    elif asked is not None and not isinstance(node, ast.Call):
        if not truth:
            proof.empty[asked] = None
            return
        if words.is_valid(asked):
            proof.states[asked] = ("True",)
            return
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and _compared(node, truth, proof, methods, words, depth):
        return
    _opaque(node, proof)


def _compared(
    node: ast.Compare, truth: bool, proof: _Proof, methods: Mapping[str, FunctionNode], words: StateWords, depth: int
) -> bool:
    operator, left, right = node.ops[0], node.left, node.comparators[0]
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return False
    equal = isinstance(operator, (ast.Eq, ast.Is, ast.In)) == truth
    if isinstance(right, ast.Constant) and isinstance(right.value, bool):
        _holds(left, equal == right.value, proof, methods, words, depth)
        return True
    name = _own(left)
    if name is None or not equal:
        return False
    if isinstance(right, ast.Constant) and right.value is None:
        proof.empty[name] = None
        return True
    items = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    members = [item.attr for item in items if isinstance(item, ast.Attribute) and path_of(item) is not None]
    if len(members) != len(items) or isinstance(operator, (ast.In, ast.NotIn)) != (items != [right]):
        return False
    proof.states[name] = tuple(members)
    return True


def _without_text(method: FunctionNode) -> list[ast.stmt]:
    return [part for part in method.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]


def _returned(method: FunctionNode) -> ast.expr | None:
    body = _without_text(method)
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _own(node: ast.AST) -> str | None:
    """The field or method of `self` that an expression names."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _opaque(node: ast.expr, proof: _Proof) -> None:
    names = [name for part in ast.walk(node) if (name := _own(part)) is not None]
    proof.also.update(dict.fromkeys(names or ["something else"]))
