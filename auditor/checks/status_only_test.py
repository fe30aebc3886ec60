"""A test that posts to a generation endpoint and is content with the status: a leaked answer is HTTP 200 as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise

from auditor.checks.base import Match
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_params import StatusParams
from auditor.checks.code_shapes import TEST_PATHS
from auditor.checks.generation_posts import constants, may_send, parameters, posts
from auditor.checks.slot_pools import in_order
from auditor.checks.status_answers import (
    ALL_OF,
    AWAITED,
    MAPS,
    STATUS,
    SUCCESS,
    THROUGH,
    Answers,
    Kind,
    nested,
    own_nodes,
)
from auditor.checks.status_claims import ANY, expects_refusal, status_check
from auditor.model.facts import Related
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import CodeTree, FunctionNode, Scope, last_name, positional, scopes
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

NEAR = 10  # lines from a test's name to its check: further apart, and with more asserted, the test is shown as a whole
DEEP = 4  # helpers that call helpers
MARKS = frozenset({"Fact", "Theory", "Test", "TestCase", "TestMethod", "DataTestMethod", "SkippableFact"})  # of C#
SHOWING = frozenset({"print", "info", "debug", "warning", "error", "log", "exception", "fail", "pprint"})
# Calls that do nothing with an answer that they are given.
NEUTRAL = frozenset(
    {
        "len",
        "str",
        "repr",
        "isinstance",
        "type",
        "id",
        "bool",
        "list",
        "tuple",
        "set",
        "append",
        "add",
        "put",
        "all",
        "any",
    }
    | {"zip", "enumerate", "sorted", "gather", "close", "aclose", "sum", "max", "min", "map", "wait_for", "run", "wait"}
    | {"int", "Counter", "as_completed", "reversed", "range", "submit", "create_task", "shield", "cast", "count"}
    | {"NotNull", "IsNotNull", "extend", "hasattr", "callable", "set_result", "format", "join", "iter"}
)

PASSING = STATUS | SUCCESS | THROUGH | ALL_OF | MAPS | AWAITED | {"EnsureSuccessStatusCode"}


@dataclass(slots=True)
class Look:
    """What a function does with the answers that it gets: it looks into one, it expects a refusal, the assertion that
    asks for success, and what it gives to its caller."""

    examined: bool = False
    refused: bool = False
    check: ast.AST | None = None
    inner: ast.AST | None = None  # the call of a helper that asks
    kind: Kind = ""


@dataclass(slots=True)
class Lookout:
    """The functions of one file that a test may call, with what they do."""

    texts: dict[str, str]
    params: StatusParams
    functions: dict[str, FunctionNode]
    helpers: dict[str, Kind] = field(default_factory=dict)
    known: dict[tuple[str, tuple[tuple[str, Kind], ...]], Look] = field(default_factory=dict)

    def learn(self, tests: list[Scope]) -> None:
        """Find out which functions of the file give answers to the tests, directly or through another."""
        calls = {name: _calls(function) for name, function in self.functions.items()}
        asked: set[str] = set()
        new = {name for scope in tests for name in _calls(scope.node) if name in calls}
        while new:
            asked |= new
            new = {name for caller in new for name in calls[caller] if name in calls} - asked
        sends = {name for name in asked if any(map(may_send, calls[name]))}
        for _ in range(2):  # helpers of helpers
            for name in sorted(sends - self.helpers.keys()):
                kind = self.look(self.functions[name], {}, self.helpers, DEEP - 1).kind
                if kind:
                    self.helpers[name] = kind
            sends |= {name for name in asked if not calls[name].isdisjoint(self.helpers)}

    def look(
        self, function: FunctionNode, seeds: Mapping[str, Kind], helpers: Mapping[str, Kind], depth: int = 0
    ) -> Look:
        """What a function does, where `seeds` are the answers that it is given."""
        found = Look()
        known: dict[str, Kind] = dict(helpers)
        answers = Answers({**self.texts, **parameters(function)}, self.params, known, dict(seeds))
        for inner in nested(function):
            # A worker of a thread pool: what it does is done.
            part = self.look(inner, {}, known, depth + 1) if depth < DEEP else Look()
            if part.kind:
                known[inner.name] = part.kind
            found.examined |= part.examined
            found.refused |= part.refused
            found.check = found.check or part.check
        shown, settled = _shown(function), set[ast.AST]()
        for node in own_nodes(function):
            answers.learn(node)
            if self._uses(node, answers, shown):
                found.examined = True
            if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
                found.kind = answers.kind(node.value) or found.kind
            if isinstance(node, ast.Call):
                self._follow(node, answers, found, depth)
            check = status_check(node, answers)
            if check is not None:
                found.check = found.check or check
                settled.update(walk(check))
            elif node not in settled:
                found.refused |= expects_refusal(node, answers) or _wants_error(node, answers)
        return found

    def _uses(self, node: ast.AST, answers: Answers, shown: set[ast.AST]) -> bool:
        """Whether a node looks into an answer."""
        if isinstance(node, ast.Attribute) and node.attr in self.params.bodies:
            return answers.kind(node.value) == "one" and node not in shown
        if isinstance(node, ast.Subscript):
            return answers.kind(node.value) == "one"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            known = node.func.attr in PASSING or node.func.attr in ("close", "aclose", "release", "Dispose", "Should")
            return not known and answers.kind(node.func.value) == "one" and node.func not in shown
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return answers.kind(node.iter) == "one"
        return isinstance(node, ast.comprehension) and answers.kind(node.iter) == "one"

    def _follow(self, node: ast.Call, answers: Answers, found: Look, depth: int) -> None:
        """What a called function does with the answers that it is given, or that it gets itself."""
        name = last_name(node.func)
        given = {number: answers.kind(part) for number, part in enumerate(node.args)}
        named = {entry.arg: answers.kind(entry.value) for entry in node.keywords if entry.arg is not None}
        handed = any(kind in ("one", "many") for kind in (*given.values(), *named.values()))
        function = self.functions.get(name)
        if function is not None and depth < DEEP:
            names = [argument.arg for argument in positional(function)]
            seeds = {names[number]: kind for number, kind in given.items() if number < len(names) and kind}
            seeds.update({key: kind for key, kind in named.items() if kind})
            key = (name, tuple(sorted(seeds.items())))
            if key not in self.known:
                self.known[key] = Look()  # of a function that calls itself
                self.known[key] = self.look(function, seeds, self.helpers, depth + 1)
            part = self.known[key]
            found.examined |= part.examined
            if part.check is not None or part.inner is not None:
                found.inner = found.inner or node
        elif handed and name not in NEUTRAL and name not in SHOWING and not posts(node, answers.texts, self.params):
            # What somebody else's function does with an answer is not known: it may look into it.
            unittest = name.startswith("assert") and name[6:7].isupper()
            if not unittest and name not in PASSING and word_set(name).isdisjoint(self.params.noting):
                found.examined = True


def run(tree: CodeTree, index: CodeIndex, params: StatusParams) -> Iterator[Match]:
    """The status-only tests of one file."""
    if not TEST_PATHS.hold(tree.source.path):
        return
    tree = tree.whole() or tree  # an address may stand in a constant, a fixture, a helper
    found = scopes(tree)
    functions = {scope.node.name: scope.node for scope in found if not scope.inside and not _is_test(scope)}
    lookout = Lookout(constants(tree.module), params, functions)
    tests = [scope for scope in found if not scope.inside and _is_test(scope)]
    tests = [scope for scope in tests if not _is_about_access(scope, tree, params)]
    lookout.learn(tests)
    for scope in tests:
        node, direct = judge(scope.node, lookout)
        nothing_else = node is not None and _asks_nothing_else(scope.node)
        # What a helper posts on the way to something else that is asserted (`warm_up(server)`) is not under test.
        if node is not None and (direct or nothing_else):
            alone = nothing_else and (direct or not _tells(scope.node))
            whole = _as_a_whole(scope.node, node, lookout)
            span = tree.span(node)
            yield Match(
                "status-only",
                tree.name_span(scope.node, scope.node.name) if whole else span,
                subject=scope.name,
                scope=scope.name,
                values={"test": scope.name, "check": tree.source.slice(span)},
                properties={"test": scope.name},
                related=(Related(span, "this is all that is asked of the answer"),) if whole else (),
                confidence="high" if alone and not _stands_in(scope.node, params) else "medium",
            )


def _calls(function: FunctionNode) -> frozenset[str]:
    """The names of functions that a function calls, or hands on."""
    return frozenset(
        name for node in walk(function) if isinstance(node, (ast.Name, ast.Attribute)) and (name := last_name(node))
    )


def _is_test(scope: Scope) -> bool:
    marks = {last_name(mark) for mark in scope.node.decorator_list}
    return scope.node.name.lower().startswith("test") or not marks.isdisjoint(MARKS)


def _is_about_access(scope: Scope, tree: CodeTree, params: StatusParams) -> bool:
    """Who may ask is under test, or how often: there the status is the point."""
    named = [scope.node.name, scope.owner.name if scope.owner is not None else "", tree.source.path.rpartition("/")[2]]
    for name in named:
        parts = words(name)
        if not set(parts).isdisjoint(params.access):
            return True
        if any(f"{one}_{two}" in params.access for one, two in pairwise(parts)):
            return True
    return False


def _stands_in(test: FunctionNode, params: StatusParams) -> bool:
    """What answers is a stand-in that the test puts there: no engine is asked."""
    for node in walk(test):
        name = node.arg if isinstance(node, ast.arg) else "" if isinstance(node, ast.Constant) else last_name(node)
        if name and not word_set(name).isdisjoint(params.stand_ins):
            return True
    return False


def judge(test: FunctionNode, lookout: Lookout) -> tuple[ast.AST | None, bool]:
    """The assertion that is content with the status, in a test that looks at nothing else of the answer, and whether it
    is the test's own and not that of a helper."""
    found = lookout.look(test, {}, lookout.helpers)
    if found.examined or found.refused or found.kind in ("one", "many"):
        return None, False
    own = found.check or (None if found.inner else _beside(test, lookout))
    return own or found.inner, own is not None


def _beside(test: FunctionNode, lookout: Lookout) -> ast.AST | None:
    """The success that is asserted of another answer, in a test that throws away what was generated and asserts nothing
    else (a health check after a stress run)."""
    answers = Answers({**lookout.texts, **parameters(test)}, lookout.params)
    for node in own_nodes(test):
        answers.learn(node)
    texts = answers.texts
    posted = [node for node in walk(test) if isinstance(node, ast.Call) and posts(node, texts, lookout.params)]
    thrown = [
        _waited(node.value) for node in walk(test) if isinstance(node, ast.Expr) and _waited(node.value) in posted
    ]
    if not posted or len(thrown) < len(posted):
        return None
    checks = [status_check(node, ANY) for node in _assertions(test)]
    found = [node for node in checks if node is not None]
    return found[0] if found and len(found) == len(checks) else None


def _waited(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


def _assertions(test: FunctionNode) -> list[ast.AST]:
    nodes = in_order(test)
    return [node for node in nodes if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _asserts(node))]


def _asserts(node: ast.Call) -> bool:
    """`self.assertEqual(...)`, `Assert.Equal(...)`, `x.Should().Be(...)`."""
    if last_name(node.func).startswith("assert"):
        return True
    base = node.func.value if isinstance(node.func, ast.Attribute) else node
    return last_name(base) == "Assert" or (isinstance(base, ast.Call) and last_name(base.func) == "Should")


def _as_a_whole(test: FunctionNode, check: ast.AST, lookout: Lookout) -> bool:
    """Whether the finding is the test and not one line of it: nothing is asked of the answer at all, or it asserts more
    than this and the check stands far from the test's name."""
    far: int = getattr(check, "lineno", test.lineno) - test.lineno
    return _beside(test, lookout) is not None or (far > NEAR and len(_assertions(test)) > 1)


def _asks_nothing_else(test: FunctionNode) -> bool:
    """Whether the test asserts success and that the server lives, and nothing of what the server did meanwhile (its
    log, its spans, what a stand-in for the engine was given)."""
    return all(status_check(node, ANY) is not None or _lives(node) for node in _assertions(test))


def _tells(test: FunctionNode) -> bool:
    """A script that answers with a truth value: what it asks besides is in no assertion."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in own_nodes(test))


def _lives(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call) and last_name(part.func) in ("poll", "is_alive", "is_running") for part in walk(node)
    )


def _wants_error(node: ast.AST, answers: Answers) -> bool:
    """`with pytest.raises(...)` around something that posts."""
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return False
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    if not any("raises" in words(last_name(call.func)) for call in calls):
        return False
    return any(answers.kind(part) == "one" for part in walk(node) if isinstance(part, (ast.Call, ast.Name)))


def _shown(function: FunctionNode) -> set[ast.AST]:
    """What stands in the message of an assertion or an error, in a print or in a log line."""
    found: set[ast.AST] = set()
    for part in walk(function):
        shown: list[ast.AST] = []
        if isinstance(part, ast.Assert) and part.msg is not None:
            shown = [part.msg]
        elif isinstance(part, ast.Raise) and part.exc is not None:
            shown = [part.exc]
        elif isinstance(part, ast.Call):
            name = last_name(part.func)
            if name in SHOWING:
                shown = list(part.args)
            elif name.startswith("assert") and len(part.args) > 2:
                shown = list(part.args[2:])
            if name.startswith("assert"):
                shown += [entry.value for entry in part.keywords if entry.arg == "msg"]
        for entry in shown:
            found.update(walk(entry))
    return found
