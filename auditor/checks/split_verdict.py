"""Doors that take in a thing whose refusal waits in a second field, and never look at that field."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex, Split
from auditor.checks.code_params import SplitParams
from auditor.model.facts import Related
from auditor.model.records import dataclass
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, positional
from auditor.syntax.names import word_set
from auditor.syntax.python_nodes import walk


@dataclass(frozen=True, slots=True)
class Door:
    """A method that stores a parameter of a split class in a container of `self`: where, and which parameter."""

    node: FunctionNode
    owner: ast.ClassDef
    split: Split
    parameter: str
    stores: tuple[ast.AST, ...]
    container: str


def run(tree: CodeTree, index: CodeIndex, params: SplitParams) -> Iterator[Match]:
    """The unguarded doors of one file, and the split classes that it defines."""
    for split in index.splits:
        if split.predicate.path == tree.source.path:
            yield _note(split)
    names = {split.name: split for split in index.splits}
    if not names:
        return
    opened: frozenset[str] = frozenset()
    while True:
        # Who opens a private door stands in the rest of its class, and may be a private door itself.
        closed = frozenset(
            method.name
            for owner in classes(tree)
            for method in _methods(owner)
            if method.name.startswith("_") and any(_doors(owner, method, names, params, opened))
        )
        if closed <= opened:
            break
        opened |= closed
        tree = tree.with_mentioning(opened)
    for owner in classes(tree):
        if not any(_typed(parameter.annotation, names) for node in _methods(owner) for parameter in positional(node)):
            continue
        inner: frozenset[str] = frozenset()
        doors: list[Door] = []
        while True:  # a private door makes doors of the methods that open it
            doors = [door for method in _methods(owner) for door in _doors(owner, method, names, params, inner)]
            private = frozenset(door.node.name for door in doors if door.node.name.startswith("_"))
            if private == inner:
                break
            inner = private
        known = {door.node.name for door in doors}
        for door in doors:
            if not _asks(door.node, door.split, index) and not _behind(door, owner, known):
                yield _match(door, tree, params)


def _methods(owner: ast.ClassDef) -> list[FunctionNode]:
    return [node for node in owner.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _note(split: Split) -> Match:
    related = [Related(split.recorded, f"a refusal is recorded in `{split.verdict}`")]
    if split.folded is not None:
        related.append(Related(split.folded, f"and becomes `{split.reads}` only here"))
    return Match(
        "split",
        split.predicate,
        subject=split.name,
        scope=split.name,
        values={
            "type": split.name,
            "reads": split.reads,
            "verdict": split.verdict,
            "door": "",
            "predicate": split.predicates[0],
        },
        properties={"type": split.name, "reads": split.reads, "verdict": split.verdict},
        related=tuple(related),
        confidence="high",
        level="note",
    )


def _match(door: Door, tree: CodeTree, params: SplitParams) -> Match:
    split = door.split
    span = tree.span(door.stores[0])
    holder = not word_set(door.owner.name).isdisjoint(params.holders)
    story = (
        Related(split.predicate, f"`{split.name}` answers `{split.predicates[0]}` from `{split.reads}` alone"),
        Related(split.recorded, f"a refusal is recorded in `{split.verdict}`"),
    )
    more = tuple(Related(tree.span(node), "and here") for node in door.stores[1:])
    return Match(
        "unguarded-door",
        span,
        subject=f"{split.name} through {door.owner.name}.{door.node.name}",
        scope=f"{door.owner.name}.{door.node.name}",
        values={
            "type": split.name,
            "reads": split.reads,
            "verdict": split.verdict,
            "predicate": split.predicates[0],
            "door": f"{door.owner.name}.{door.node.name}",
        },
        properties={"type": split.name, "verdict": split.verdict, "door": f"{door.owner.name}.{door.node.name}"},
        related=story + more,
        flow=(*story, Related(span, f"`{door.owner.name}.{door.node.name}` takes it in without a look")),
        confidence="high" if holder else "medium",
    )


def _typed(annotation: ast.expr | None, names: dict[str, Split]) -> Split | None:
    """The split class that an annotation speaks of, bare, quoted, optional or inside a list."""
    if annotation is None:
        return None
    for part in walk(annotation):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                found = _typed(ast.parse(part.value, mode="eval").body, names)
            except (SyntaxError, ValueError):
                continue
            if found is not None:
                return found
        if name in names:
            return names[name]
    return None


def _doors(
    owner: ast.ClassDef, method: FunctionNode, names: dict[str, Split], params: SplitParams, inner: frozenset[str]
) -> Iterator[Door]:
    named = word_set(method.name)
    # Watching, disposing, taking back what was admitted before, or keeping what has ended: no entrance.
    watches = params.admits.stands_by(method.name) and named.isdisjoint({"join", "wait"})  # `queue.join(booking)`
    aside = watches or not named.isdisjoint((*params.returning, *params.states.over))
    if method.name.startswith("__") or owner.name in names or aside:
        return
    for parameter in positional(method):
        split = _typed(parameter.annotation, names)
        if split is None:
            continue
        stores = _stores(method, parameter.arg, params, inner - {method.name})
        if stores:
            yield Door(method, owner, split, parameter.arg, tuple(node for node, _ in stores), stores[0][1])


def _stores(
    method: FunctionNode, parameter: str, params: SplitParams, inner: frozenset[str]
) -> list[tuple[ast.AST, str]]:
    """Where a parameter, an element of it, or a wrapper around it goes into a container of `self`."""
    carried = {parameter}
    found: list[tuple[ast.AST, str]] = []
    for node in _in_order(method):
        if isinstance(node, (ast.For, ast.AsyncFor)) and _carries(node.iter, carried):
            carried.update(part.id for part in walk(node.target) if isinstance(part, ast.Name))
        elif isinstance(node, ast.Assign):
            wrapped = isinstance(node.value, (ast.Call, ast.Tuple, ast.Name, ast.List)) and _carries(
                node.value, carried
            )
            for target in node.targets:
                if isinstance(target, ast.Name) and wrapped and _wraps(node.value):
                    carried.add(target.id)
                if isinstance(target, ast.Subscript) and _own(target.value) and _carries(node.value, carried):
                    found.append((node, path_of(target.value) or ""))
                if (
                    isinstance(target, ast.Attribute)
                    and _own(target)
                    and isinstance(node.value, ast.BinOp)
                    and _carries(node.value, carried)
                ):
                    found.append((node, path_of(target) or ""))
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _own(node.target):
            if isinstance(node.value, (ast.List, ast.Tuple)) and _carries(node.value, carried):
                found.append((node, path_of(node.target) or ""))
        elif isinstance(node, ast.Call):
            name = last_name(node.func)
            arguments = [*node.args, *(entry.value for entry in node.keywords)]
            if name in inner and _own(node.func) and any(_carries(argument, carried) for argument in arguments):
                found.append((node, name))
            if not params.admits.stores(name) or not isinstance(node.func, ast.Attribute):
                continue
            container: ast.AST = node.func.value
            if isinstance(container, ast.Call) and isinstance(container.func, ast.Attribute):
                container = container.func.value  # `self.by_lora.setdefault(key, []).append(req)`
            if name == "heappush" and len(node.args) == 2:
                container, arguments = node.args[0], node.args[1:]
            if _own(container) and any(_carries(argument, carried) for argument in arguments):
                path = path_of(container) or ""
                last = path.rpartition(".")[2].partition("[")[0]
                if params.admits.aside_free(last):
                    found.append((node, path))
    return found


def _in_order(method: FunctionNode) -> list[ast.AST]:
    nodes = [node for node in walk(method) if hasattr(node, "lineno")]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def _own(node: ast.AST) -> bool:
    path = path_of(node)
    return path is not None and path.startswith("self.")


def _wraps(node: ast.expr) -> bool:
    """A call that makes an entry around the thing: a type's name, or a tuple."""
    if isinstance(node, ast.Call):
        name = last_name(node.func).lstrip("_")
        return name[:1].isupper() or not word_set(name).isdisjoint({"make", "wrap", "entry", "build", "create"})
    return True


def _carries(node: ast.AST, carried: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in carried
    if isinstance(node, ast.Call):
        return _wraps(node) and any(_carries(part, carried) for part in [*node.args, *(k.value for k in node.keywords)])
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_carries(part, carried) for part in node.elts)
    if isinstance(node, (ast.Starred, ast.Await)):
        return _carries(node.value, carried)
    if isinstance(node, ast.BinOp):
        return _carries(node.left, carried) or _carries(node.right, carried)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return any(_carries(generator.iter, carried) for generator in node.generators)
    return False


def _asks(method: FunctionNode, split: Split, index: CodeIndex) -> bool:
    """The method looks at the second field, itself or through a helper that does."""
    asking = index.asking.get(split.verdict, frozenset())
    for node in walk(method):
        if isinstance(node, ast.Attribute) and node.attr == split.verdict:
            return True
        if isinstance(node, ast.Call):
            if last_name(node.func) in asking:
                return True
            if last_name(node.func) in ("getattr", "hasattr") and len(node.args) >= 2:
                key = node.args[1]
                if isinstance(key, ast.Constant) and key.value == split.verdict:
                    return True
        if isinstance(node, ast.Attribute) and node.attr in asking:
            return True
    return False


def _behind(door: Door, owner: ast.ClassDef, known: set[str]) -> bool:
    """A private door that only other doors of its class open: they are judged in its place."""
    if not door.node.name.startswith("_"):
        return False
    callers = [
        method.name
        for method in _methods(owner)
        if method is not door.node
        and any(isinstance(node, ast.Attribute) and node.attr == door.node.name for node in walk(method))
    ]
    return bool(callers) and known.issuperset(callers)
