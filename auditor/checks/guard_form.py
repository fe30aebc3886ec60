"""The shape of a guard and of the place where it stands: what its condition asks, which way it answers, what becomes of
the things that it turns away, and which class the thing is declared to be."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from auditor.checks.code_atoms import Atom
from auditor.model.records import dataclass
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name

Parents = Mapping[ast.AST, ast.AST]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Names in annotations that hold a thing or say nothing of it.
_CONTAINERS = frozenset(
    {
        "List", "Sequence", "Iterable", "Iterator", "Optional", "Union", "Deque", "Set", "FrozenSet", "AbstractSet",
        "Tuple", "Dict", "Mapping", "MutableMapping", "MutableSequence", "DefaultDict", "OrderedDict", "Collection",
        "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator", "Annotated", "Type", "Callable", "Literal",
        "Any", "Queue", "PriorityQueue", "LifoQueue", "SimpleQueue", "ClassVar", "Final", "Awaitable", "None",
    }
)  # fmt: skip
_PASSING = frozenset({"sorted", "list", "tuple", "set", "reversed", "enumerate", "iter", "deque", "next", "min", "max"})
_TAKING = frozenset({"pop", "popleft", "get", "get_nowait", "peek", "values", "items", "copy", "popitem"})
_DEEPEST = 6  # names of names


@dataclass(frozen=True, slots=True)
class Form:
    """A test as it is written: `node` the whole of it with its `not`, `core` without, `receiver` what is asked. `over`:
    true means that the thing has ended."""

    node: ast.expr
    core: ast.expr
    receiver: ast.expr | None
    over: bool


def form_of(atom: Atom, predicates: Collection[str] = ()) -> Form | None:
    """The form of a test that is spelled out where it stands; `None` for one that is asked through a name, a helper or
    a pattern. A call of one of the type's own `predicates` is spelled out, though their body was looked into."""
    core, over = atom.node, True
    while isinstance(core, ast.UnaryOp) and isinstance(core.op, ast.Not):
        core, over = core.operand, not over
    if atom.kind == "member":
        return _member_form(atom, core, over)
    if isinstance(core, ast.Compare) and len(core.ops) == 1 and isinstance(core.comparators[0], ast.Constant):
        operator, answer = core.ops[0], core.comparators[0].value
        if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            return None
        equal = isinstance(operator, (ast.Eq, ast.Is))
        if isinstance(answer, bool):
            core, over = core.left, over == (equal == answer)
        elif answer is None and atom.kind == "reason":
            core, over = core.left, over != equal
        else:
            return None
    own = core.func if isinstance(core, ast.Call) and not core.args and not core.keywords else core
    if isinstance(own, ast.Attribute) and own.attr in predicates:
        return Form(atom.node, own, own.value, over)
    if atom.kind == "predicate":
        if not isinstance(core, ast.Call) or core.args or core.keywords:
            return None
        asked: ast.expr = core.func
    else:
        asked = core
    if not isinstance(asked, ast.Attribute) or asked.attr != atom.name:
        return None
    return Form(atom.node, asked, asked.value, over)


def _member_form(atom: Atom, core: ast.expr, over: bool) -> Form | None:
    if not isinstance(core, ast.Compare) or len(core.ops) != 1:
        return None
    if not isinstance(core.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return None
    equal = isinstance(core.ops[0], (ast.Eq, ast.Is, ast.In))
    left = core.left
    receiver = left.value if isinstance(left, ast.Attribute) and left.attr == atom.name else None
    return Form(atom.node, core, receiver, over == equal)


def parents_of(function: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each node of a function stands in."""
    found: dict[ast.AST, ast.AST] = {}
    stack = [function]
    while stack:
        node = stack.pop()
        for child in ast.iter_child_nodes(node):
            found[child] = node
            stack.append(child)
    return found


def obstacle(form: Form, parents: Parents) -> str:
    """Why the test may not be made stricter where it stands, in words; empty where it may. What it newly turns away
    goes where the ended go: that has to be nowhere."""
    node: ast.AST = form.node
    over = form.over
    while True:
        around = parents.get(node)
        if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not):
            over = not over
        elif isinstance(around, (ast.If, ast.IfExp)) and node is around.test:
            aside = around.body if over else around.orelse
            return "" if _leaves(aside) else "the branch for what has ended does more than leave"
        elif isinstance(around, ast.comprehension) and any(node is test for test in around.ifs):
            return "" if not over else "the filter keeps what has ended"
        elif isinstance(around, ast.Lambda):
            call = parents.get(around)
            filters = isinstance(call, ast.Call) and last_name(call.func) == "filter" and not over
            return "" if filters else "it is the answer of a function"
        elif isinstance(around, ast.Expr) and isinstance(node, ast.BoolOp):
            return ""
        elif not isinstance(around, ast.BoolOp):
            kept = isinstance(around, (ast.NamedExpr, ast.Assign, ast.AnnAssign))
            return "its answer is kept under a name" if kept else "its answer is used for more than this branch"
        node = around


def _leaves(aside: list[ast.stmt] | ast.expr) -> bool:
    """Whether a branch does nothing but leave: `continue`, `pass`, `return` of nothing, no branch at all."""
    if isinstance(aside, ast.expr):
        return _is_nothing(aside)
    if len(aside) > 1:
        return False
    return all(
        isinstance(statement, (ast.Continue, ast.Pass))
        or (isinstance(statement, ast.Return) and (statement.value is None or _is_nothing(statement.value)))
        for statement in aside
    )


def _is_nothing(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None or value.value is False
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, (ast.List, ast.Tuple)) and not value.elts


def function_around(node: ast.AST, parents: Parents, outermost: FunctionNode) -> FunctionNode:
    """The innermost function that a node stands in."""
    around: ast.AST | None = node
    while around is not None and around is not outermost:
        if isinstance(around, FUNCTIONS):
            return around
        around = parents.get(around)
    return outermost


def declared(node: ast.expr, outermost: FunctionNode, owner: ast.ClassDef | None, tree: CodeTree) -> frozenset[str]:
    """The names of classes that annotations and constructors give for an expression; empty where none does."""
    return frozenset(name for name in _declared(node, outermost, owner, tree, 0) if _is_class(name))


def _is_class(name: str) -> bool:
    return len(name) > 1 and name.lstrip("_")[:1].isupper() and name not in _CONTAINERS


def _declared(
    node: ast.expr, outermost: FunctionNode, owner: ast.ClassDef | None, tree: CodeTree, depth: int
) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(node, ast.Name):
        for value in _bindings(node.id, outermost):
            if isinstance(value, _Annotation):
                yield from _names(value.node)
            else:
                yield from _declared(value, outermost, owner, tree, depth + 1)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        if owner is not None:
            for annotation in _field_annotations(node.attr, owner.name, tree):
                yield from _names(annotation)
    elif isinstance(node, (ast.Await, ast.Subscript, ast.NamedExpr, ast.Starred)):
        yield from _declared(node.value, outermost, owner, tree, depth + 1)
    elif isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in _TAKING and isinstance(node.func, ast.Attribute):
            yield from _declared(node.func.value, outermost, owner, tree, depth + 1)
        elif name in _PASSING and node.args:
            yield from _declared(node.args[0], outermost, owner, tree, depth + 1)
        elif _is_class(name):
            yield name


@dataclass(frozen=True, slots=True)
class _Annotation:
    node: ast.expr


def _bindings(name: str, function: FunctionNode) -> Iterator[ast.expr | _Annotation]:
    """What a name is bound to in a function: annotations, assigned values, iterables that it runs over."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            if node.arg == name and node.annotation is not None:
                yield _Annotation(node.annotation)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name) and node.target.id == name:
                yield _Annotation(node.annotation)
        elif isinstance(node, ast.Assign) and any(_binds(target, name) for target in node.targets):
            yield node.value
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and _binds(node.target, name):
            yield node.iter
        elif isinstance(node, ast.NamedExpr) and node.target.id == name:
            yield node.value


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def _field_annotations(field: str, owner: str, tree: CodeTree) -> Iterator[ast.expr]:
    whole = tree.whole() or tree
    for made in classes(whole):
        if made.name != owner:
            continue
        for node in ast.walk(made):
            if not isinstance(node, ast.AnnAssign):
                continue
            target = node.target
            if (isinstance(target, ast.Name) and target.id == field) or (
                isinstance(target, ast.Attribute) and target.attr == field and last_name(target.value) == "self"
            ):
                yield node.annotation


def _names(annotation: ast.expr) -> Iterator[str]:
    for part in ast.walk(annotation):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield last_name(part)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value) < 200:
            try:
                yield from _names(ast.parse(part.value, mode="eval").body)
            except (SyntaxError, ValueError):
                continue
