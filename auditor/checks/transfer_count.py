"""Success is announced at the end of a transfer, and no amount was compared with what should have arrived."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import TransferParams
from auditor.checks.slot_pools import in_order
from auditor.model.findings import Level
from auditor.syntax.code_tree import CodeTree, FunctionNode, Scope, last_name, positional, scopes
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk


def run(tree: CodeTree, index: CodeIndex, params: TransferParams) -> Iterator[Match]:
    """The uncounted successes of one file."""
    if not word_set(tree.source.path.rpartition("/")[2]).isdisjoint({"fake", "mock", "stub", "dummy"}):
        return
    for scope in scopes(tree):
        if scope.inside or not _moves(scope, params):
            continue
        node = _announcement(scope.node, params)
        if node is None or _counts(scope.node, params):
            continue
        known = _amount_at_hand(scope.node, params)
        level: Level | None = None if known else "note"
        yield Match(
            "uncounted",
            tree.span(node),
            subject=scope.name,
            scope=scope.name,
            values={"method": scope.name, "amount": f"`{known}` is at hand" if known else "no amount is at hand here"},
            properties={"method": scope.name, "amount": known},
            level=level,
        )


def _moves(scope: Scope, params: TransferParams) -> bool:
    name, owner = word_set(scope.node.name), word_set(scope.owner.name if scope.owner else "")
    # `add_transfer_request` moves something, `on_request_finished` does not.
    aside = name & set(params.aside) - ({"request"} if not name.isdisjoint(params.moving) else set())
    if aside or not owner.isdisjoint({"fake", "mock", "dummy", "stub", "test"}):
        return False
    path = word_set(scope.name)
    return not name.isdisjoint(params.moving) or not (owner | path).isdisjoint(params.moving)


def _is_success(node: ast.AST, params: TransferParams) -> bool:
    if isinstance(node, ast.Attribute):
        is_member = node.attr.isupper() or last_name(node.value)[:1].isupper()
        return is_member and words(node.attr)[-1:] != () and words(node.attr)[-1] in params.success
    if isinstance(node, ast.Name):
        return node.id.isupper() and words(node.id)[-1:] != () and words(node.id)[-1] in params.success
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.lower() in params.success
    return False


def _announcement(method: FunctionNode, params: TransferParams) -> ast.AST | None:
    last: ast.AST | None = None
    for node in in_order(method):
        if isinstance(node, ast.Assign) and _is_success(node.value, params):
            for target in node.targets:
                named = target.value if isinstance(target, ast.Subscript) else target
                kinds = word_set(last_name(named))
                stems = {part.removesuffix("es") for part in kinds} | kinds
                if isinstance(target, (ast.Attribute, ast.Subscript)) and not stems.isdisjoint(params.states):
                    return node
        elif isinstance(node, ast.Call):
            parts = words(last_name(node.func))
            if not parts:
                continue
            arguments = [*node.args, *(entry.value for entry in node.keywords)]
            tells = parts[0] in params.announcing and set(parts).isdisjoint(params.aside)
            if tells and any(_is_success(argument, params) for argument in arguments):
                return node
            if parts[0] in ("mark", "set") and parts[-1] in params.success and set(parts).isdisjoint(params.aside):
                last = last or node
    return last


def _counts(method: FunctionNode, params: TransferParams) -> bool:
    """Some amount is compared: the function has a look at how much arrived."""
    for node in walk(method):
        if isinstance(node, ast.Compare):
            if all(isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for operator in node.ops):
                continue
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
                continue
            for side in sides:
                for part in walk(side):
                    name = (
                        part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
                    )
                    if name and not name.isupper() and not word_set(name).isdisjoint(params.amounts):
                        return True
        elif isinstance(node, ast.Call):
            parts = word_set(last_name(node.func))
            if not parts.isdisjoint({"check", "verify", "validate", "assert", "require"}) and not parts.isdisjoint(
                params.amounts
            ):
                return True
    return False


def _amount_at_hand(method: FunctionNode, params: TransferParams) -> str:
    """A parameter that is an amount: the announced one, which could have been compared."""
    amounts = {"pages", "tokens", "length", "bytes", "size", "count", "received", "blocks", "nbytes", "num"}
    for argument in positional(method):
        if not word_set(argument.arg).isdisjoint(amounts):
            return argument.arg
    return ""
