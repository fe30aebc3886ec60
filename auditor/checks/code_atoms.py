"""What a condition says about the life of a thing: tests of being over, of being refused, of being valid.

`implied(condition, truth)` gives the tests that hold for certain where the condition came out true (or false). De
Morgan, walrus, aliases, `is False` and predicates returned by a small function of the same file are followed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from auditor.checks.code_sets import UNKNOWN, Listing, listing, member_of
from auditor.checks.code_words import StateWords
from auditor.model.records import dataclass, field, replace
from auditor.syntax.code_tree import FunctionNode, last_name, path_of, positional
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

Sets = Callable[[str], Listing]
Kind = Literal["predicate", "flag", "reason", "member", "type", "clear"]


def no_sets(path: str) -> Listing:
    """No set of states is known by any name."""
    return UNKNOWN


@dataclass(frozen=True, slots=True)
class Atom:
    """One test of one subject. `over` is `False` where the subject is known not to be over by it; a `clear` atom is a
    test of validity or refusal, or an equality with a state that is no end. `members` are the states named, `enum` the
    dotted name before them; `name` is the predicate, flag or field that was read. `listed` says that the states are
    spelled out elsewhere, in a named set."""

    node: ast.expr
    subject: str
    kind: Kind
    name: str
    over: bool = False
    members: tuple[str, ...] = ()
    enum: str = ""
    listed: bool = False


@dataclass(slots=True)
class Names:
    """What local names stand for: other expressions, the small predicates of the file, and the named sets of states
    that it sees, by their path (`ENDS`, `Status.ENDS`)."""

    words: StateWords
    alias: dict[str, ast.expr] = field(default_factory=dict)
    helpers: Mapping[str, FunctionNode] = field(default_factory=dict)
    sets: Sets = no_sets

    def path(self, node: ast.AST, depth: int = 0) -> str | None:
        """The path of an expression with local aliases replaced by what they stand for."""
        text = path_of(node)
        if text is None:
            return None
        root = text.partition(".")[0].partition("[")[0]
        target = self.alias.get(root)
        if target is None or depth > 4 or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            return text
        base = self.path(target, depth + 1)
        return text if base is None or base == root else base + text[len(root) :]

    def listed(self, path: str) -> Listing:
        """The states of a set by its name, which is bound here or known from elsewhere."""
        value = self.alias.get(path)
        if isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.Call)):
            return listing(value, self.sets)
        return self.sets(path)


def implied(node: ast.expr, truth: bool, names: Names, depth: int = 0) -> Iterator[Atom]:
    """The atoms that hold where `node` came out as `truth`. `clear` atoms are given for either outcome."""
    if depth > 40:
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = [_at(atom, node, truth) for atom in implied(node.operand, not truth, names, depth + 1)]
        yield from inner
    elif isinstance(node, ast.BoolOp):
        certain = isinstance(node.op, ast.And) == truth
        for value in node.values:
            for atom in implied(value, truth, names, depth + 1):
                if certain or atom.kind == "clear":
                    yield atom
    elif isinstance(node, ast.NamedExpr):
        yield from implied(node.value, truth, names, depth + 1)
    elif isinstance(node, ast.IfExp):
        for part in (node.test, node.body, node.orelse):
            yield from (atom for atom in implied(part, truth, names, depth + 1) if atom.kind == "clear")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _compare(node, truth, names, depth)
    elif isinstance(node, ast.Call):
        yield from _call(node, truth, names, depth)
    elif isinstance(node, ast.Await):
        yield from implied(node.value, truth, names, depth + 1)
    elif isinstance(node, ast.Name) and node.id in names.alias and not isinstance(names.alias[node.id], ast.Name):
        yield from (replace(atom, node=node) for atom in implied(names.alias[node.id], truth, names, depth + 1))
    elif isinstance(node, ast.Attribute):
        yield from _flag(node, truth, names)
    elif isinstance(node, ast.Subscript):
        yield from _item(node, truth, names)


def _at(atom: Atom, node: ast.expr, truth: bool) -> Atom:
    # `not x.finished()` is the test, not the bare call inside of it; only where the two are written together.
    simple = isinstance(node, ast.UnaryOp) and not isinstance(node.operand, (ast.BoolOp, ast.UnaryOp))
    return replace(atom, node=node) if simple and truth and atom.kind != "clear" else atom


def _call(node: ast.Call, truth: bool, names: Names, depth: int) -> Iterator[Atom]:
    name = last_name(node.func)
    if name == "bool" and len(node.args) == 1:
        yield from implied(node.args[0], truth, names, depth + 1)
        return
    if name == "isinstance" and len(node.args) == 2:
        yield from _type_test(node, truth, names)
        return
    if name in ("getattr", "hasattr") and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant):
        subject = names.path(node.args[0])
        if subject is not None:
            yield from _named(node, subject, str(node.args[1].value), truth, names, called=False)
        return
    if name == "Contains" and isinstance(node.func, ast.Attribute) and names.listed(path_of(node.func.value) or "")[0]:
        made = ast.copy_location(ast.Compare(node.args[0], [ast.In()], [node.func.value]), node)
        yield from (replace(atom, node=node) for atom in _compare(made, truth, names, depth))
        return
    helper = names.helpers.get(name)
    subjects = [path for path in map(names.path, node.args) if path is not None and path not in ("self", "cls")]
    receiver = names.path(node.func.value) if isinstance(node.func, ast.Attribute) else None
    if helper is not None and depth < 3:
        yield from _through(node, helper, receiver, truth, names, depth)
        return
    if isinstance(node.func, ast.Attribute) and receiver is not None and receiver not in ("self", "cls"):
        subject, _ = _strip_state(receiver, names.words)
        if not subjects or names.words.is_over(name):
            yield from _named(node, subject, name, truth, names, called=True)
        for other in subjects:
            yield from _asked(node, other, name, names)
    elif subjects:
        for subject in subjects[:2]:
            base, _ = _strip_state(subject, names.words)
            yield from _named(node, base, name, truth, names, called=True)
    elif receiver is not None:
        yield from _named(node, receiver, name, truth, names, called=True)


def _asked(node: ast.expr, subject: str, name: str, names: Names) -> Iterator[Atom]:
    if names.words.is_refused(name) or names.words.is_valid(name):
        yield Atom(node, subject, "clear", name)


def _named(node: ast.expr, subject: str, name: str, truth: bool, names: Names, called: bool) -> Iterator[Atom]:
    """A predicate, flag or field of the subject, by its name."""
    vocabulary = names.words
    if vocabulary.is_over(name):
        yield Atom(node, subject, "predicate" if called else "flag", name, over=truth)
    elif vocabulary.is_refused(name) or vocabulary.is_valid(name):
        yield Atom(node, subject, "clear", name)
    elif vocabulary.is_reason(name) and not called:
        yield Atom(node, subject, "reason", name, over=truth)
    else:
        # Any other question about the subject's fields: kept, so that a second verdict field can clear it.
        yield Atom(node, subject, "clear", f"?{name}")


def _through(
    node: ast.Call, helper: FunctionNode, receiver: str | None, truth: bool, names: Names, depth: int
) -> Iterator[Atom]:
    value = returned(helper)
    if value is None:
        return
    inner = Names(names.words, {}, {}, names.sets)
    arguments = list(node.args)
    for parameter in positional(helper):
        given = next((entry.value for entry in node.keywords if entry.arg == parameter.arg), None)
        if given is None and arguments:
            given = arguments.pop(0)
        if given is not None:
            path = names.path(given)
            inner.alias[parameter.arg] = given if path is None else _expression(path, given)
    if receiver is not None and receiver not in ("self", "cls") and isinstance(node.func, ast.Attribute):
        inner.alias["self"] = node.func.value
    for atom in implied(value, truth, inner, depth + 1):
        yield replace(atom, node=node)


def _expression(path: str, fallback: ast.expr) -> ast.expr:
    try:
        made = ast.parse(path, mode="eval").body
    except (SyntaxError, ValueError):
        return fallback
    return made


def returned(helper: FunctionNode) -> ast.expr | None:
    """The expression that a one-line function returns."""
    body = [part for part in helper.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value
    return None


def _type_test(node: ast.Call, truth: bool, names: Names) -> Iterator[Atom]:
    kinds = node.args[1].elts if isinstance(node.args[1], (ast.Tuple, ast.List)) else [node.args[1]]
    labels = tuple(last_name(kind) for kind in kinds)
    path = names.path(node.args[0])
    if path is None:
        return
    subject, field_name = _strip_state(path, names.words)
    if all(names.words.is_final(label) for label in labels) and field_name:
        yield Atom(node, subject, "type", field_name, over=truth, members=labels)
    elif field_name:
        yield Atom(node, subject, "clear", f"?{field_name}")


def _strip_state(path: str, vocabulary: StateWords) -> tuple[str, str]:
    """`job.status` -> `("job", "status")`; a path that does not end in a state attribute stays as it is."""
    base, dot, last = path.rpartition(".")
    if dot and (vocabulary.is_state(last) or vocabulary.is_reason(last)):
        return base, last
    return path, ""


def _flag(node: ast.Attribute, truth: bool, names: Names) -> Iterator[Atom]:
    path = names.path(node)
    if path is None:
        return
    subject, _, name = path.rpartition(".")
    if subject:
        # `job.state.is_terminal` asks about the job.
        yield from _named(node, _strip_state(subject, names.words)[0], name, truth, names, called=False)


def _item(node: ast.Subscript, truth: bool, names: Names) -> Iterator[Atom]:
    subject = names.path(node.value)
    if subject is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        yield from _named(node, subject, node.slice.value, truth, names, called=False)
    elif subject is not None:
        element = names.path(node.slice)
        if element is not None:
            yield from _named(node, element, subject.rpartition(".")[2], truth, names, called=False)


def _compare(node: ast.Compare, truth: bool, names: Names, depth: int) -> Iterator[Atom]:
    operator, left, right = node.ops[0], node.left, node.comparators[0]
    if isinstance(operator, (ast.Eq, ast.NotEq)) and isinstance(left, (ast.Constant,)):
        left, right = right, left
    equal = isinstance(operator, (ast.Eq, ast.Is, ast.In)) == truth
    if isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and isinstance(right, ast.Constant):
        if isinstance(right.value, bool):
            yield from (
                replace(atom, node=node) if atom.kind != "clear" else atom
                for atom in implied(left, equal == right.value, names, depth + 1)
            )
            return
        if right.value is None:
            yield from _none_test(node, left, equal, names)
            return
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        for side in (left, right):
            yield from _touched(node, side, names)
        return
    read = _state_read(left, names)
    if read is None and isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        read, right = _state_read(right, names), left
    if read is None:
        for side in (left, right):
            yield from _touched(node, side, names)
        return
    subject, field_name = read
    within = isinstance(operator, (ast.In, ast.NotIn))
    members, enum = members_of(right, names, within)
    named = within and path_of(right) is not None
    if not members:
        # `in TERMINAL_STATES`: somebody's list of all ends. `rid not in chosen` says nothing of the state.
        listed = enum == "?" and (names.words.is_state(field_name) or names.words.is_reason(field_name))
        yield Atom(node, subject, "clear", "in a named set" if listed else f"?{field_name}")
        return
    final = [member for member in members if names.words.is_end(member)]
    if equal:
        # Equal to an end: over. Equal to a state that is no end: positive.
        if len(final) == len(members):
            yield Atom(node, subject, "member", field_name, True, members, enum, named)
        else:
            yield Atom(node, subject, "clear", "=")
    elif final:
        yield Atom(node, subject, "member", field_name, False, members, enum, named)
    else:
        yield Atom(node, subject, "clear", f"?{field_name}")


def _touched(node: ast.expr, side: ast.expr, names: Names) -> Iterator[Atom]:
    for part in walk(side):
        if isinstance(part, ast.Attribute):
            path = names.path(part)
            if path is not None:
                subject, _, name = path.rpartition(".")
                refused = names.words.is_refused(name) or names.words.is_valid(name)
                yield Atom(node, subject, "clear", name if refused else f"?{name}")


def _none_test(node: ast.Compare, left: ast.expr, equal: bool, names: Names) -> Iterator[Atom]:
    if isinstance(left, ast.NamedExpr):
        left = left.value
    path = names.path(left)
    if path is None or "." not in path:
        return
    subject, _, name = path.rpartition(".")
    vocabulary = names.words
    if vocabulary.is_refused(name) or vocabulary.is_valid(name):
        yield Atom(node, subject, "clear", name)
    elif vocabulary.is_reason(name):
        yield Atom(node, subject, "reason", name, over=not equal)
    else:
        yield Atom(node, subject, "clear", f"?{name}")


def _state_read(node: ast.expr, names: Names) -> tuple[str, str] | None:
    """Whose state an expression reads: `job.state`, `job.get_status()`, `status_of(job)`, `d["state"]`."""
    if isinstance(node, ast.NamedExpr):
        node = node.value
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Name) and node.id in names.alias:
        return _state_read(names.alias[node.id], names) if names.alias[node.id] is not node else None
    if isinstance(node, ast.Attribute):
        if node.attr in ("value", "name"):
            return _state_read(node.value, names)
        path = names.path(node)
        if path is not None and "." in path:
            subject, _, name = path.rpartition(".")
            return (subject, name) if not name.isupper() else None
        return None
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name == "getattr" and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant):
            subject_path = names.path(node.args[0])
            return None if subject_path is None else (subject_path, str(node.args[1].value))
        if name == "get" and node.args and isinstance(node.args[0], ast.Constant):
            base = names.path(node.func.value) if isinstance(node.func, ast.Attribute) else None
            return None if base is None else (base, str(node.args[0].value))
        if word_set(name).isdisjoint(names.words.state):
            return None
        subjects = [path for path in map(names.path, node.args) if path is not None]
        receiver = names.path(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if receiver not in (None, "self", "cls") and not subjects:
            return receiver or "", name
        return (subjects[0], name) if subjects else (receiver or "self", name)
    if isinstance(node, ast.Subscript):
        base = names.path(node.value)
        if base is None:
            return None
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return base, node.slice.value
        element = names.path(node.slice)
        last = base.rpartition(".")[2]
        if element is not None and {word.removesuffix("s").removesuffix("e") for word in words(last)} & _stems(names):
            return element, last
        return None
    if isinstance(node, ast.Name):
        return node.id, node.id
    return None


def _stems(names: Names) -> set[str]:
    return {word.removesuffix("s").removesuffix("e") for word in names.words.state}


def members_of(node: ast.expr, names: Names, collection: bool) -> Listing:
    """The states that the right side of a comparison names, and the dotted name in front of them. `((), "?")` stands
    for a named set that is not spelled out here: somebody's list of all ends."""
    return listing(node, names.listed) if collection else member_of(node)
