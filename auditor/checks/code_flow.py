"""Follows a function from its first statement to its last and says, at each admission, which tests stand before it.

Facts about a thing live as long as its name means the same thing; an early exit leaves its fact to what follows it, a
branch hands its facts on to the join (some path has them). Each statement is seen once, so the work grows with the
length of the function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from auditor.checks.code_atoms import Atom, Names, Sets, implied, no_sets
from auditor.checks.code_sets import listing
from auditor.checks.code_words import AdmissionWords, StateWords
from auditor.model.records import dataclass, field, replace
from auditor.syntax.code_tree import FunctionNode, last_name, path_of
from auditor.syntax.python_nodes import children_of, walk

MOST_FACTS = 48  # of one subject; a function that asks more often than that is a table
_COPIES = frozenset({"list", "tuple", "set", "sorted", "reversed", "deque", "filter", "dict"})
IDENTITY = frozenset({"id", "rid", "uid", "uuid", "key", "name", "request_id", "job_id", "task_id", "req_id", "index"})


@dataclass(frozen=True, slots=True)
class Admission:
    """A call or store that takes `subject` in, and the atoms about it that hold there on some path. `origin` is the
    container that a loop took the subject from."""

    node: ast.AST
    verb: str
    target: str
    subject: str
    atoms: tuple[Atom, ...]
    origin: str = ""


@dataclass(slots=True)
class State:
    """What is known at one point: atoms by the subject's path, element facts of local lists, names that are lists."""

    facts: dict[str, tuple[Atom, ...]] = field(default_factory=dict)
    elements: dict[str, tuple[Atom, ...]] = field(default_factory=dict)
    dropped: dict[str, tuple[Atom, ...]] = field(default_factory=dict)
    alias: dict[str, ast.expr] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.facts), dict(self.elements), dict(self.dropped), dict(self.alias))


def part_of(value: ast.expr) -> str | None:
    """The container that a value is a part or a copy of: `running[:] = [r for r in running if ...]` takes nothing in,
    it leaves some out. `None` for whatever holds anything else."""
    while isinstance(value, ast.Call) and last_name(value.func) in _COPIES and value.args:
        value = value.args[-1] if last_name(value.func) == "filter" else value.args[0]
    if isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        source, made = value.generators[0], value.value if isinstance(value, ast.DictComp) else value.elt
        same = len(value.generators) == 1 and isinstance(made, ast.Name) and made.id in _bound(source.target)
        return part_of(source.iter) if same else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        return part_of(value.func.value) if value.func.attr in ("items", "values", "copy") else None
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return part_of(value.value)
    return path_of(value)


def _added(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of a list that is put together: `kept + [job]`, `[*kept, job]`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.BitOr)):
        yield from _added(value.left)
        yield from _added(value.right)
    elif isinstance(value, (ast.List, ast.Set, ast.Tuple)):
        yield from (part.value if isinstance(part, ast.Starred) else part for part in value.elts)
    else:
        yield value


def _merge(left: dict[str, tuple[Atom, ...]], right: dict[str, tuple[Atom, ...]]) -> dict[str, tuple[Atom, ...]]:
    if left == right:
        return left
    merged = dict(left)
    for key, atoms in right.items():
        have = merged.get(key)
        if have is None:
            merged[key] = atoms
        elif have is not atoms:
            more = tuple(atom for atom in atoms if atom not in have)
            merged[key] = (have + more)[:MOST_FACTS] if more else have
    return merged


def join(left: State, right: State) -> State:
    """What holds after two branches: facts of either, aliases of both."""
    alias = {name: value for name, value in left.alias.items() if right.alias.get(name) is value}
    return State(
        _merge(left.facts, right.facts),
        _merge(left.elements, right.elements),
        _merge(left.dropped, right.dropped),
        alias,
    )


class Walker:
    """One walk over one function. `admissions` fills in the order of the text."""

    def __init__(
        self,
        states: StateWords,
        admits: AdmissionWords,
        helpers: Mapping[str, FunctionNode],
        sets: Sets = no_sets,
    ) -> None:
        self.states = states
        self.admits = admits
        self.helpers = helpers
        self.sets = sets
        self.admissions: list[Admission] = []
        self.origins: dict[str, str] = {}
        self.kept: dict[str, str] = {}  # of a local list: the container that all of it is from, or nothing
        self.companions: dict[str, frozenset[str]] = {}
        self.scanned: dict[
            str, tuple[str, str]
        ] = {}  # names of removal sets: their loop's variable, what is kept of it

    def run(self, node: FunctionNode) -> list[Admission]:
        """The admissions of a function."""
        self._block(node.body, State())
        return self.admissions

    # --- statements -------------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt], state: State) -> State | None:
        """The state after a block; `None` when no path leaves it at its end."""
        for statement in body:
            after = self._statement(statement, state)
            if after is None:
                return None
            state = after
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._for(node, state)
        if isinstance(node, ast.While):
            return self._while(node, state)
        if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            for value in ast.iter_child_nodes(node):
                if isinstance(value, ast.expr):
                    self._expression(value, state)
            return None
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._expression(item.context_expr, state)
            return self._block(node.body, state)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._try(node, state)  # type: ignore[arg-type]
        if isinstance(node, ast.Match):
            return self._match(node, state)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A nested function sees the facts of the place where it stands (a closure registered after the test).
            self._block(node.body, state.copy())
            return state
        if isinstance(node, ast.ClassDef):
            return state
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return self._assign(node, state)
        if isinstance(node, ast.Assert):
            self._expression(node.test, state)
            for atom in implied(node.test, True, self._names(state)):
                if atom.kind == "clear":
                    _put(state.facts, atom.subject, (atom,))
            return state
        for value in ast.iter_child_nodes(node):
            if isinstance(value, ast.expr):
                self._expression(value, state)
        return state

    def _if(self, node: ast.If, state: State) -> State | None:
        # `elif` chains are walked in a loop: a dispatcher may have a thousand of them.
        ends: list[State] = []
        falls: list[tuple[set[Atom], bool]] = []
        while True:
            self._expression(node.test, state)
            yes, no = state.copy(), state.copy()
            learned = self._learn(node.test, True, yes) | self._learn(node.test, False, no)
            self._collects(node, yes, state, no)
            after = self._block(node.body, yes)
            falls.append((learned, after is not None))
            if after is not None:
                ends.append(after)
            if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                node, state = node.orelse[0], no
                continue
            after = self._block(node.orelse, no)
            if after is not None:
                ends.append(after)
            break
        out = _join_all(ends)
        if out is None:
            return None
        # A test after which both ways go on guards nothing of what follows.
        later = after is not None
        for learned, fell in reversed(falls):
            if fell and later:
                _unlearn(out, learned)
            later = later or fell
        return out

    def _collects(self, node: ast.If, yes: State, state: State, no: State) -> None:
        """A removal scan: what is over goes into a collection; a later loop leaves out what is in there."""
        over = [atom for atom in implied(node.test, True, self._names(state)) if atom.over or atom.kind == "clear"]
        if not any(atom.over for atom in over):
            return
        for statement in node.body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
                continue
            call = statement.value
            if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("add", "append", "insert")):
                continue
            name = path_of(call.func.value)
            if name is not None:
                negative = tuple(_flip(atom) for atom in over)
                yes.dropped[name] = negative
                state.dropped[name] = negative
                no.dropped[name] = negative

    def _for(self, node: ast.For | ast.AsyncFor, state: State) -> State | None:
        self._expression(node.iter, state)
        inside = state.copy()
        self._bind_loop(node.target, node.iter, inside)
        after = self._block(node.body, inside)
        out = state if after is None else join(state, after)
        for name in _bound(node.target):
            _forget(out, name)
        for name, atoms in inside.dropped.items():
            out.dropped.setdefault(name, atoms)
        return self._block(node.orelse, out) if node.orelse else out

    def _bind_loop(self, target: ast.expr, source: ast.expr, state: State) -> None:
        names = _bound(target)
        for name in names:
            _forget(state, name)
            self.origins.pop(name, None)
            self.companions.pop(name, None)
        self._pair(target, source)
        element = names[-1] if names else None
        groups = self._groups(source, state)
        if groups and element is not None:
            state.elements[element] = groups
            return
        atoms = self._element_facts(source, state)
        if not atoms:
            return
        if isinstance(target, ast.Name):
            element = target.id
        if element is not None:
            for atom in atoms:
                _put(state.facts, element + atom.subject, (_moved(atom, element + atom.subject),))

    def _pair(self, target: ast.expr, source: ast.expr) -> None:
        """Remember which container each name of a loop is taken from, and which names go together by `zip`."""
        while isinstance(source, ast.Call) and source.args and last_name(source.func) in (
            "enumerate", "list", "tuple", "sorted", "reversed", "iter",
        ):  # fmt: skip
            if last_name(source.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                target = target.elts[1]
            source = source.args[0]
        if isinstance(source, ast.Call) and last_name(source.func) == "zip":
            together = frozenset(_bound(target))
            self.companions.update(dict.fromkeys(together, together))
            if isinstance(target, ast.Tuple) and len(target.elts) == len(source.args):
                for part, container in zip(target.elts, source.args, strict=True):
                    self._pair_one(part, container)
            return
        self._pair_one(target, source)

    def _pair_one(self, target: ast.expr, source: ast.expr) -> None:
        path = path_of(source)
        if isinstance(target, ast.Name) and path is not None:
            self.origins[target.id] = path

    def _element_facts(self, source: ast.expr, state: State) -> tuple[Atom, ...]:
        """The facts about each element of an iterable; their subjects are relative to the element (`""`, `.req`)."""
        while isinstance(source, ast.Call) and last_name(source.func) in (
            "sorted", "list", "tuple", "set", "reversed", "enumerate", "iter", "zip", "chain", "deque",
        ) and source.args:  # fmt: skip
            source = source.args[0]
        if isinstance(source, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._comprehension(source, state)
        if isinstance(source, ast.Call) and last_name(source.func) == "filter" and len(source.args) == 2:
            return self._filter(source, state)
        path = path_of(source)
        return state.elements.get(path, ()) if path is not None else ()

    def _groups(self, source: ast.expr, state: State) -> tuple[Atom, ...]:
        """The facts of the members, where an iterable gives lists: `for name, group in grouped.items()`."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
            path = path_of(source.func.value)
            if source.func.attr in ("items", "values") and path is not None:
                return state.elements.get(path + "[]", ())
        return ()

    def _filter(self, node: ast.Call, state: State) -> tuple[Atom, ...]:
        test = node.args[0]
        if not isinstance(test, ast.Lambda) or not test.args.args:
            return self._element_facts(node.args[1], state)
        inside = state.copy()
        name = test.args.args[0].arg
        _forget(inside, name)
        self._learn(test.body, True, inside)
        return self._relative(name, inside) + self._element_facts(node.args[1], state)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, state: State) -> tuple[Atom, ...]:
        inside = state.copy()
        for generator in node.generators:
            self._bind_loop(generator.target, generator.iter, inside)
            for test in generator.ifs:
                self._learn(test, True, inside)
        element = node.elt
        path = path_of(element)
        if path is not None:
            base, _, last = path.rpartition(".")
            if base and last in IDENTITY:
                path = base
            return self._relative(path, inside)
        if isinstance(element, (ast.Tuple, ast.Call)):
            for part in walk(element):
                inner = path_of(part) if isinstance(part, ast.Name) else None
                if inner is not None:
                    found = self._relative(inner, inside)
                    if found:
                        return found
        return ()

    def _relative(self, name: str, state: State) -> tuple[Atom, ...]:
        path = Names(self.states, state.alias).path(ast.Name(name)) if name.isidentifier() else name
        found: list[Atom] = []
        for subject, atoms in state.facts.items():
            if path is not None and (subject == path or subject.startswith((path + ".", path + "["))):
                found += [_moved(atom, subject[len(path) :]) for atom in atoms]
        return tuple(found)

    def _while(self, node: ast.While, state: State) -> State | None:
        self._expression(node.test, state)
        inside = state.copy()
        for atom in implied(node.test, True, self._names(state)):
            if atom.kind == "clear":
                _put(inside.facts, atom.subject, (atom,))
        after = self._block(node.body, inside)
        out = state if after is None else join(state, after)
        return self._block(node.orelse, out) if node.orelse else out

    def _try(self, node: ast.Try, state: State) -> State | None:
        before = state.copy()
        ends = []
        after = self._block(node.body, state)
        if after is not None and node.orelse:
            after = self._block(node.orelse, after)
        if after is not None:
            ends.append(after)
        for handler in node.handlers:
            end = self._block(handler.body, before.copy())
            if end is not None:
                ends.append(end)
        out = _join_all(ends)
        if node.finalbody:
            end = self._block(node.finalbody, out if out is not None else before)
            return None if out is None else end
        return out

    def _match(self, node: ast.Match, state: State) -> State | None:
        self._expression(node.subject, state)
        ends: list[State] = []
        rest = state.copy()
        for case in node.cases:
            inside = rest.copy()
            tests = _pattern_tests(node.subject, case.pattern)
            for test in tests:
                self._learn(test, True, inside)
            if case.guard is not None:
                self._expression(case.guard, inside)
                self._learn(case.guard, True, inside)
            after = self._block(case.body, inside)
            if after is not None:
                ends.append(after)
            if case.guard is None:
                for test in tests:
                    self._learn(test, False, rest)
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                break
        else:
            ends.append(rest)
        return _join_all(ends)

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, state: State) -> State:
        value = node.value
        if value is not None:
            self._expression(value, state)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._store(node, target, value, state)
            if isinstance(node, ast.AugAssign):
                continue
            for name in _bound(target):
                _forget(state, name)
            if isinstance(target, ast.Name) and value is not None:
                self._name(target.id, value, state)
        return state

    def _removal(self, name: str, value: ast.expr, state: State) -> None:
        """`gone = {p.key for p in patients if p.finished()}`: a removal scan in one expression."""
        while isinstance(value, ast.Call) and last_name(value.func) in ("set", "list", "frozenset") and value.args:
            value = value.args[0]
        if not isinstance(value, (ast.SetComp, ast.ListComp, ast.GeneratorExp)) or len(value.generators) != 1:
            return
        loop, element = value.generators[0], path_of(value.elt)
        if not isinstance(loop.target, ast.Name) or element is None or element.partition(".")[0] != loop.target.id:
            return
        over = [atom for test in loop.ifs for atom in implied(test, True, self._names(state))]
        if any(atom.over for atom in over) and all(atom.over or atom.kind == "clear" for atom in over):
            state.dropped[name] = tuple(_flip(atom) for atom in over)
            self.scanned[name] = (loop.target.id, element.removeprefix(loop.target.id))

    def _name(self, name: str, value: ast.expr, state: State) -> None:
        self._removal(name, value, state)
        elements = self._element_facts(value, state)
        if elements:
            state.elements[name] = elements
            self.kept[name] = self._part_of(value) or ""
            return
        if isinstance(value, ast.Call) and last_name(value.func) in ("next", "min", "max", "choice") and value.args:
            for atom in self._element_facts(value.args[0], state):
                _put(state.facts, name + atom.subject, (_moved(atom, name + atom.subject),))
            return
        if isinstance(value, ast.Subscript):
            base = path_of(value.value)
            for atom in state.elements.get(base, ()) if base is not None else ():
                _put(state.facts, name + atom.subject, (_moved(atom, name + atom.subject),))
        if _names_itself(name, value):
            return
        if isinstance(value, _NAMED) or _only_members(value):
            state.alias[name] = value

    def _store(self, node: ast.stmt, target: ast.expr, value: ast.expr | None, state: State) -> None:
        """`self.slots[i] = req`, `self.waiting += [req]`."""
        if value is None:
            return
        if isinstance(target, ast.Subscript):
            container = path_of(target.value)
            whole = isinstance(target.slice, ast.Slice)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.BitOr)):
            container, whole = path_of(target), False
        elif isinstance(target, ast.Attribute) and not isinstance(node, ast.AugAssign):
            container, whole = path_of(target), True
        else:
            return
        if container is None or not self.admits.is_container(container.rpartition(".")[2]):
            return
        if not whole:
            self._admit(node, "[]=", container, [value], state)
            return
        # The whole content is set: what was in there before is not taken in again.
        new = [part for part in _added(value) if self._part_of(part) != container]
        if isinstance(target, ast.Attribute) and new == [value]:
            # `self.batch = made` may be any object; a list of things shows by what is known of its elements.
            new = new if self._element_facts(value, state) else []
        if new:
            self._admit(node, "[]=", container, new, state)

    def _part_of(self, value: ast.expr) -> str | None:
        source = part_of(value)
        return self.kept.get(source, source) if source is not None else None

    # --- expressions ------------------------------------------------------------------------------------------------

    def _names(self, state: State) -> Names:
        return Names(self.states, state.alias, self.helpers, self.sets)

    def _learn(self, test: ast.expr, truth: bool, state: State) -> set[Atom]:
        """Take in what a condition says; gives the negative tests among it that were not known before."""
        fresh = set()
        for atom in implied(test, truth, self._names(state)):
            if atom.kind != "clear" and atom not in state.facts.get(atom.subject, ()):
                fresh.add(atom)
            _put(state.facts, atom.subject, (atom,))
        self._membership(test, truth, state)
        return fresh

    def _membership(self, test: ast.expr, truth: bool, state: State) -> None:
        """`if i in dropped: continue` after a removal scan: the rest of the loop sees what was not dropped."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._membership(test.operand, not truth, state)
            return
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
            for part in test.values:
                self._membership(part, truth, state)
            return
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
            return
        inside = isinstance(test.ops[0], ast.In)
        if not (inside or isinstance(test.ops[0], ast.NotIn)) or inside == truth:
            return
        name = path_of(test.comparators[0])
        atoms = state.dropped.get(name) if name is not None else None
        each, ending = self.scanned.get(name or "", ("", ""))
        asked = path_of(test.left) or ""
        for atom in atoms or ():
            subject = atom.subject
            if each and asked.endswith(ending) and (subject == each or subject.startswith(each + ".")):
                subject = asked.removesuffix(ending) + subject.removeprefix(each)
            _put(state.facts, subject, (_moved(atom, subject),))

    def _expression(self, node: ast.expr, state: State) -> None:
        if isinstance(node, ast.BoolOp):
            inside = state.copy()
            for value in node.values:
                self._expression(value, inside)
                self._learn(value, isinstance(node.op, ast.And), inside)
            return
        if isinstance(node, ast.IfExp):
            self._expression(node.test, state)
            for branch, truth in ((node.body, True), (node.orelse, False)):
                inside = state.copy()
                self._learn(node.test, truth, inside)
                self._expression(branch, inside)
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            inside = state.copy()
            for generator in node.generators:
                self._expression(generator.iter, inside)
                self._bind_loop(generator.target, generator.iter, inside)
                for test in generator.ifs:
                    self._expression(test, inside)
                    self._learn(test, True, inside)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self._expression(part, inside)
            return
        if isinstance(node, ast.NamedExpr):
            self._expression(node.value, state)
            _forget(state, node.target.id)
            self._name(node.target.id, node.value, state)
            return
        if isinstance(node, ast.Call):
            self._call(node, state)
        for child in children_of(node):
            if isinstance(child, (ast.Name, ast.Constant)):
                continue
            if isinstance(child, ast.expr):
                self._expression(child, state)
            elif isinstance(child, ast.keyword):
                self._expression(child.value, state)

    def _call(self, node: ast.Call, state: State) -> None:
        name = last_name(node.func)
        arguments = [*node.args, *(entry.value for entry in node.keywords if entry.arg != "key")]
        if not name or not arguments:
            return
        receiver = path_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if self.admits.stores(name):
            target = receiver
            if name == "heappush" and len(node.args) == 2:
                target, arguments = path_of(node.args[0]), node.args[1:]
            elif isinstance(node.func, ast.Attribute) and receiver is None:
                target = _inner_path(node.func.value)
            if target is None:
                return
            grouped = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Subscript)
            base = path_of(node.func.value.value) if grouped else None  # type: ignore[attr-defined]
            self._gather(f"{base}[]" if base is not None else target, arguments, state)
            if self.admits.is_container(target.rpartition(".")[2].partition("[")[0]):
                self._admit(node, name, target, arguments, state)
                return
        if self.admits.takes(name):
            if receiver is not None and not self.admits.aside_free(receiver):
                return
            self._admit(node, name, receiver or name, arguments, state)

    def _gather(self, target: str, arguments: list[ast.expr], state: State) -> None:
        """A local list that takes a thing takes over what is known of it."""
        if target.startswith("self.") or not arguments:
            return
        subject = self._names(state).path(arguments[-1])
        if subject is None:
            return
        atoms = self._relative(subject, state)
        if atoms:
            state.elements[target] = atoms
            source = self.origins.get(subject.partition(".")[0].partition("[")[0], "")
            self.kept[target] = source if self.kept.get(target, source) == source else ""

    def _admit(self, node: ast.AST, verb: str, target: str, arguments: list[ast.expr], state: State) -> None:
        names = self._names(state)
        seen: set[str] = set()
        for argument in arguments:
            for subject, element in self._subjects(argument, names, state, 0):
                if subject in seen or subject in ("self", "cls"):
                    continue
                seen.add(subject)
                root = subject.partition(".")[0].partition("[")[0]
                atoms = element or (*self._about(subject, state), *self._beside(root, state))
                if any(atom.kind != "clear" for atom in atoms):
                    origin = self.origins.get(root, "")
                    self.admissions.append(Admission(node, verb, target, subject, atoms, origin))

    def _beside(self, name: str, state: State) -> Iterator[Atom]:
        """What comes along with a thing by `zip` and is known to have succeeded says that the thing may be used:
        `for job, poll in zip(self.jobs, polls): ... elif poll == Poll.SUCCESS`."""
        for other in self.companions.get(name, frozenset()) - {name}:
            for atom in state.facts.get(other, ()):
                good = atom.kind == "member" and atom.over and not any(map(self.states.is_refused, atom.members))
                if good or (atom.kind == "clear" and atom.name == "="):
                    yield replace(atom, kind="clear", name="=")

    def _subjects(
        self, node: ast.expr, names: Names, state: State, depth: int
    ) -> Iterator[tuple[str, tuple[Atom, ...]]]:
        """The things that an argument hands over, through tuples, lists, wrappers and identity fields."""
        if depth > 3:
            return
        if isinstance(node, ast.Starred):
            node = node.value
        elements = self._element_facts(node, state)
        if elements:
            yield f"each of {path_of(node) or 'them'}", elements
            return
        path = names.path(node)
        if path is not None:
            base, _, last = path.rpartition(".")
            yield (base if base and last in IDENTITY else path), ()
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            for item in node.elts:
                yield from self._subjects(item, names, state, depth + 1)
        elif isinstance(node, ast.Call):
            for item in [*node.args, *(entry.value for entry in node.keywords)]:
                yield from self._subjects(item, names, state, depth + 1)
        elif isinstance(node, ast.Dict):
            for item in node.values:
                yield from self._subjects(item, names, state, depth + 1)
        elif isinstance(node, ast.Await):
            yield from self._subjects(node.value, names, state, depth + 1)

    def _about(self, subject: str, state: State) -> tuple[Atom, ...]:
        """Facts about the subject itself, and about what it carries (`entry.req` when `entry` is admitted)."""
        found = list(state.facts.get(subject, ()))
        if subject not in ("self", "cls"):
            start = (subject + ".", subject + "[")
            for other, atoms in state.facts.items():
                if other != subject and other.startswith(start):
                    found.extend(atoms)
        return tuple(found)


_NAMED = (ast.Attribute, ast.Subscript, ast.Name, ast.Call, ast.Compare, ast.UnaryOp, ast.BoolOp)


def _only_members(value: ast.expr) -> bool:
    """Whether a local name stands for a set of states."""
    if not isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.BinOp)):
        return False
    members, enum = listing(value, no_sets)
    return bool(members) and enum not in ("?", "")


def _flip(atom: Atom) -> Atom:
    return replace(atom, over=False)


def _moved(atom: Atom, subject: str) -> Atom:
    return replace(atom, subject=subject)


def _put(facts: dict[str, tuple[Atom, ...]], key: str, atoms: tuple[Atom, ...]) -> None:
    have = facts.get(key, ())
    if len(have) < MOST_FACTS:
        facts[key] = have + tuple(atom for atom in atoms if atom not in have)


def _forget(state: State, name: str) -> None:
    """A name that is bound again: everything known about it is about something else."""
    inside = (f"[{name}]", f"[{name}.")
    for table in (state.facts, state.elements, state.dropped):
        for key in [
            key
            for key in table
            if key == name or key.startswith((name + ".", name + "[")) or inside[0] in key or inside[1] in key
        ]:
            del table[key]
    state.alias.pop(name, None)
    for other in [key for key, value in state.alias.items() if _uses(value, name)]:
        del state.alias[other]


def _unlearn(state: State, atoms: set[Atom]) -> None:
    for subject in {atom.subject for atom in atoms}:
        have = state.facts.get(subject)
        if have:
            state.facts[subject] = tuple(atom for atom in have if atom not in atoms)


def _uses(value: ast.expr, name: str) -> bool:
    known: frozenset[str] | None = getattr(value, "names_used", None)
    if known is None:
        known = frozenset(part.id for part in walk(value) if isinstance(part, ast.Name))
        value.names_used = known  # type: ignore[attr-defined]
    return name in known


def _names_itself(name: str, value: ast.expr) -> bool:
    return _uses(value, name)


def _bound(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Starred):
        return _bound(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _bound(item)]
    return []


def _inner_path(node: ast.expr) -> str | None:
    """`grouped[job.origin].append(job)`, `self.queue_for(job).put(job)`: the name of what is computed."""
    if isinstance(node, ast.Subscript):
        return path_of(node.value)
    if isinstance(node, ast.Call):
        return last_name(node.func) or None
    return None


def _join_all(ends: list[State]) -> State | None:
    if not ends:
        return None
    out = ends[0]
    for other in ends[1:]:
        out = join(out, other)
    return out


def _pattern_tests(subject: ast.expr, pattern: ast.pattern) -> list[ast.expr]:
    """A case as comparisons with the subject; only patterns that are plain values."""
    if isinstance(pattern, ast.MatchValue):
        return [_compared(subject, [pattern.value], pattern)]
    if isinstance(pattern, ast.MatchOr):
        values = [part.value for part in pattern.patterns if isinstance(part, ast.MatchValue)]
        return [_compared(subject, values, pattern)] if len(values) == len(pattern.patterns) else []
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _pattern_tests(subject, pattern.pattern)
    return []


def _compared(subject: ast.expr, values: list[ast.expr], at: ast.pattern) -> ast.expr:
    right: ast.expr = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
    made = ast.Compare(subject, [ast.Eq() if len(values) == 1 else ast.In()], [right])
    return ast.copy_location(made, at)
