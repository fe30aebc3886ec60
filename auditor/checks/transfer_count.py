"""Success is announced at the end of a transfer, and no amount was compared with what should have arrived."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import TransferParams
from auditor.checks.slot_pools import begins, in_order
from auditor.model.findings import Level
from auditor.syntax.code_tree import CodeTree, FunctionNode, Scope, last_name, positional, scopes
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

# Words that move data only where nothing beside them speaks of another matter.
WEAK = frozenset(
    {
        "commit",
        "load",
        "loader",
        "stream",
        "kv",
        "send",
        "receive",
        "received",
        "push",
        "pull",
        "sync",
        "export",
        "import",
    }
    | {"fetch", "fetcher", "chunk", "chunks"}
)


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
    """Whether a function is about moving data, by its name and its class's."""
    name, owner = word_set(scope.node.name), word_set(scope.owner.name if scope.owner else "")
    about = name | owner | word_set(scope.name)
    moving = about & set(params.moving)
    if moving <= WEAK and not about.isdisjoint(params.settling):
        return False  # `Transaction.commit`, `ModelActor.wait_for_load`, `MistralParser.update_stream_state`
    if moving <= {"commit"} and _hands_on(scope.node):
        return False
    if scope.node.name.startswith("__") or begins(scope.node.name, params.beginning):
        return False
    # `add_transfer_request` moves something, `on_request_finished` does not.
    waived = {"request"} if not name.isdisjoint(params.moving) else set()
    if owner & set(params.moving) - WEAK:
        waived |= {"event"}  # `TextureCopier.on_event`: of a device, not of a log
    if not owner.isdisjoint(params.moving) and _amount_at_hand(scope.node, params):
        waived |= {"finish", "job", "task"}  # `BulkCopyJob.finish(job, written_bytes)`
    if name & set(params.aside) - waived or not owner.isdisjoint({"fake", "mock", "dummy", "stub", "test"}):
        return False
    return bool(moving)


def _hands_on(method: FunctionNode) -> bool:
    """A `commit` that has something else commit: a database, a connection."""
    calls = (last_name(node.func) for node in walk(method) if isinstance(node, ast.Call))
    return any(name in ("commit", "execute", "rollback", "flush", "_execute", "executemany") for name in calls)


def _is_success(node: ast.AST, params: TransferParams) -> bool:
    if isinstance(node, ast.Attribute):
        enum = words(last_name(node.value))
        is_member = node.attr.isupper() or last_name(node.value)[:1].isupper()
        about = set(enum) - {"state", "status", "phase", "stage"}
        if about and about <= set(params.living):
            return False  # `RequestState.DONE`, `TransactionState.COMMITTED`
        return is_member and _says_success(node.attr, params)
    if isinstance(node, ast.Name):
        return node.id.isupper() and _says_success(node.id, params)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.lower() in params.success
    return False


def _says_success(member: str, params: TransferParams) -> bool:
    """`DONE`, `Success`; `AWAITING_READY` and `PARSING_COMPLETED` speak of a part."""
    parts = words(member)
    return parts[-1:] != () and parts[-1] in params.success and set(parts).isdisjoint(params.unready)


def _announcement(method: FunctionNode, params: TransferParams) -> ast.AST | None:
    last: ast.AST | None = None
    for node in in_order(method):
        if isinstance(node, ast.Assign) and _is_success(node.value, params):
            if any(_is_state(target, params) for target in node.targets):
                return node
        elif isinstance(node, ast.Call):
            parts = words(last_name(node.func))
            if not parts or not set(parts).isdisjoint((*params.aside, "close", "closing")):
                continue
            arguments = [*node.args, *(entry.value for entry in node.keywords)]
            tells = parts[0] in params.announcing or parts == ("setattr",)
            if tells and any(_is_success(argument, params) for argument in arguments):
                return node
            marks = parts[0] in ("mark", "set") and parts[-1] in params.success
            about = {word for argument in arguments for word in words(last_name(argument))}
            if marks and "metadata" not in parts and about.isdisjoint({"event", "turn"}):
                last = last or node
    return last


def _is_state(target: ast.expr, params: TransferParams) -> bool:
    """`job.status`, `self.status[room]`, `entry["status"]`."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return False
    kinds = set(words(last_name(target)))
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        kinds |= word_set(str(target.slice.value))
    return not (kinds | {part.removesuffix("es") for part in kinds}).isdisjoint(params.states)


def _counts(method: FunctionNode, params: TransferParams) -> bool:
    """Some amount is compared: the function has a look at how much arrived."""
    for node in walk(method):
        if isinstance(node, ast.Compare):
            if all(isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for operator in node.ops):
                continue
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
                continue
            named = {word for side in sides for part in walk(side) for word in _named(part) if word in params.amounts}
            # `len(chunk) == 0` says that the stream is at its end, `remaining == 0` that all is there.
            empty = any(isinstance(side, ast.Constant) and side.value == 0 for side in sides)
            if named and not (empty and named <= {"len", "length", "size", "bytes", "nbytes"}):
                return True
        elif isinstance(node, ast.Call):
            parts = word_set(last_name(node.func))
            if not parts.isdisjoint({"check", "verify", "validate", "assert", "require"}) and not parts.isdisjoint(
                params.amounts
            ):
                return True
    return False


def _named(part: ast.AST) -> frozenset[str]:
    name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
    return frozenset() if name.isupper() else word_set(name)


def _amount_at_hand(method: FunctionNode, params: TransferParams) -> str:
    """A parameter that is an amount: the announced one, which could have been compared."""
    amounts = {"pages", "tokens", "length", "bytes", "size", "count", "received", "blocks", "nbytes", "num"}
    amounts |= {"written", "copied", "sent", "transferred", "moved", "amount", "total", "rows", "chunks"}
    for argument in positional(method):
        if not word_set(argument.arg).isdisjoint(amounts):
            return argument.arg
    return ""
