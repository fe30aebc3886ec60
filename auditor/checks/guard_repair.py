"""The repair of a negative guard: the positive test that the project itself offers, in place of "not over yet".

Nothing is invented. A split verdict is repaired by the one predicate of the thing's own class that proves both verdicts
empty; a state by the one member of its enumeration that names readiness and that the same file tests for already, or by
such a predicate. Everything that is not clear gives no edit but words for the remedy. Python is rewritten on libcst,
and only where libcst and `ast` agree on the text; libcst is not imported for anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from auditor.checks.code_atoms import Atom
from auditor.checks.code_index import ClassRecord, CodeIndex, EnumRecord, Split
from auditor.checks.code_params import AdmitParams
from auditor.checks.code_words import StateWords
from auditor.checks.guard_form import Form, declared, form_of, function_around, obstacle, parents_of
from auditor.checks.guard_rewrite import Rewriter, ask_member, ask_predicate
from auditor.checks.positive_predicate import NEGATIONS, Positive
from auditor.model.findings import Edit
from auditor.model.records import dataclass
from auditor.syntax.code_tree import CodeTree, Scope, last_name
from auditor.syntax.names import word_set

_OTHERS = "Handle the rest in the other branch."


@dataclass(frozen=True, slots=True)
class Repair:
    """What to do about a guard: the edit where one is safe, and the remedy in words; `None` leaves the rule's own."""

    edits: tuple[Edit, ...] = ()
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The positive test that the project offers, or why there is none."""

    predicate: Positive | None = None
    member: str = ""
    shown: str = ""
    lack: str = ""


def repair(
    atom: Atom,
    scope: Scope,
    split: Split | None,
    enum: EnumRecord | None,
    tree: CodeTree,
    index: CodeIndex,
    params: AdmitParams,
    rewriter: Rewriter,
) -> Repair:
    """The repair of one guard: of `split` a class whose verdict is split, or of `enum` the states that it names."""
    form = form_of(atom, split.predicates if split is not None else ())
    states = params.states
    if split is not None:
        answer = _of_split(atom, form, split, scope, tree, index, states)
    elif enum is not None and enum.span is not None:
        answer = _of_enum(atom, form, enum, scope, tree, index, params)
    else:
        return Repair()
    if answer.lack:
        return Repair(remedy=answer.lack)
    if answer.predicate is None and not answer.member:
        return Repair()
    parents = rewriter.parents(scope.node, parents_of)
    if form is None or form.node not in parents:
        why = "the test is asked through a name, a helper or a pattern"
    else:
        why = obstacle(form, parents)
        if not why:
            function = function_around(form.node, parents, scope.node)
            if answer.member:
                edit = ask_member(rewriter, function, form, atom, answer.member)
            else:
                assert answer.predicate is not None  # noqa: S101 - one of the two is there
                edit = ask_predicate(rewriter, function, form, answer.predicate.name, answer.predicate.called)
            if edit is not None and rewriter.repeats(parents.get(form.node), edit):
                return Repair(
                    remedy=f"Leave this out where `{edit.text}` stands beside it (`--fix` writes that). {_OTHERS}"
                )
            if edit is not None:
                return Repair((edit,), f"Write `{edit.text}` here (`--fix` does): {answer.shown}. {_OTHERS}")
            why = "how it is written"
    return Repair(remedy=f"Ask for validity here: {answer.shown}. {_OTHERS} Not rewritten by `--fix`: {why}.")


# --- a class whose verdict is split ---------------------------------------------------------------------------------


def _of_split(
    atom: Atom, form: Form | None, split: Split, scope: Scope, tree: CodeTree, index: CodeIndex, states: StateWords
) -> _Answer:
    if atom.kind == "type":
        return _Answer()
    candidates = [
        other
        for other in index.splits
        if (atom.kind == "reason" and other.reads == atom.name)
        or (atom.kind != "reason" and atom.name in other.predicates and other.called == split.called)
    ]
    fields = f"`{split.reads}` and `{split.verdict}`"
    lack = f"Give `{split.name}` one predicate that reads {fields}, and ask it here. {_OTHERS}"
    found = [_proving(other, index, states) for other in candidates]
    names = sorted({positive.name for positives in found for positive in positives})
    if not names:
        return _Answer(lack=lack)
    receiver = form.receiver if form is not None else None
    kind = declared(receiver, scope.node, scope.owner, tree) if receiver is not None else frozenset()
    if kind:
        candidates = [other for other in candidates if not kind.isdisjoint(_line(other.name, index))]
        if not candidates:
            return _Answer(lack=lack.replace(f"`{split.name}`", f"`{min(kind)}`"))
    elif not _alone(atom, candidates, index) or not _speaks_of(tree, candidates, index):
        shown = " or ".join(f"`{name}`" for name in names)
        lack = f"Ask for validity here, with {shown} if this is a `{split.name}` (its type is not declared). {_OTHERS}"
        return _Answer(lack=lack)
    found = [_proving(other, index, states) for other in candidates]
    common = [
        positive
        for positive in found[0]
        if all(any((positive.name, positive.called) == (one.name, one.called) for one in others) for others in found)
    ]
    if len(common) != 1:
        shown = " or ".join(f"`{name}`" for name in names)
        lack = f"Ask for validity here; more than one predicate could be meant: {shown}. {_OTHERS}" if common else lack
        return _Answer(lack=lack)
    [positive] = common
    verdicts = " and ".join(f"`{name}`" for name in dict.fromkeys(other.verdict for other in candidates))
    return _Answer(positive, shown=f"`{candidates[0].name}.{positive.name}` reads {verdicts} as well")


def _line(name: str, index: CodeIndex) -> set[str]:
    """A class and its bases, by name, as far as each name is one class."""
    return {made.name for made in _family(name, index)} | {name}


def _family(name: str, index: CodeIndex) -> list[ClassRecord]:
    found: list[ClassRecord] = []
    queue = [name]
    while queue and len(found) < 16:
        known = index.classes.get(queue.pop(0), ())
        if len(known) == 1 and known[0] not in found:
            found.append(known[0])
            queue.extend(known[0].bases)
    return found


def _proving(split: Split, index: CodeIndex, states: StateWords) -> list[Positive]:
    """The predicates of a split class that prove both of its verdicts and rest on nothing but verdicts."""
    found: dict[str, Positive] = {}
    for made in _family(split.name, index):
        for positive in made.positives:
            found.setdefault(positive.name, positive)  # the nearest definition counts
    return [positive for positive in found.values() if _proves(positive, split, states)]


def _proves(positive: Positive, split: Split, states: StateWords) -> bool:
    good = {name for name, members in positive.states if not any(states.is_final(member) for member in members)}
    blank = {*positive.empty, *good}
    denied = {*positive.denied, *positive.empty}
    over = split.reads in blank or not denied.isdisjoint(split.predicates)
    if not over or split.verdict not in blank:
        return False
    rests = {*positive.empty, *positive.also, *(name for name, _ in positive.states)}
    return all(_is_verdict(name, states) for name in rests - {split.reads, split.verdict, *split.predicates})


def _is_verdict(name: str, states: StateWords) -> bool:
    """Whether a field by its name says that a thing has ended, was refused, or how it stands."""
    return name.isidentifier() and (
        states.is_final(name) or states.is_reason(name) or states.is_state(name) or states.is_valid(name)
    )


def _alone(atom: Atom, candidates: Iterable[Split], index: CodeIndex) -> bool:
    """Whether nothing else in the project answers to the name: a thing of undeclared type can then be no other."""
    line = {name for other in candidates for name in _line(other.name, index)}
    if atom.kind == "reason":
        return all(
            atom.name not in made.fields or made.name in line for known in index.classes.values() for made in known
        )
    return all(made.name in line for made, _ in index.predicates.get(atom.name, ()))


def _speaks_of(tree: CodeTree, candidates: Iterable[Split], index: CodeIndex) -> bool:
    """Whether the file uses the class, or a class that it comes from."""
    return not {name for other in candidates for name in _line(other.name, index)}.isdisjoint(_names_of(tree))


def _names_of(tree: CodeTree) -> set[str]:
    """The names that the code of a file uses; words of its comments and texts are none."""
    found: set[str] = set()
    for node in ast.walk((tree.whole() or tree).module):
        if isinstance(node, (ast.Name, ast.Attribute)):
            found.add(last_name(node))
        elif isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
    return found


# --- the states of an enumeration -----------------------------------------------------------------------------------


def _of_enum(
    atom: Atom, form: Form | None, enum: EnumRecord, scope: Scope, tree: CodeTree, index: CodeIndex, params: AdmitParams
) -> _Answer:
    ready = [member for member in enum.members if _is_ready(member, params)]
    if len(ready) == 1:
        [member] = ready
        whole = tree.whole() or tree
        if _is_tested(whole.module, enum.name, member) and not _is_set(scope.node, member):
            return _Answer(member=member, shown=f"`{enum.name}.{member}` is the state that may enter")
    offered = list(dict.fromkeys(_asking_state(atom, enum, index, params.states)))
    receiver = form.receiver if form is not None else None
    if receiver is not None and len(offered) == 1:
        [(made, positive)] = offered
        kind = declared(receiver, scope.node, scope.owner, tree)
        named = made.name in _names_of(tree)
        if made.name in kind or (not kind and named and _only_holder(atom.name, made, index)):
            return _Answer(positive, shown=f"`{made.name}.{positive.name}` names the states that may enter")
    if ready:
        shown = " or ".join(f"`{enum.name}.{member}`" for member in ready)
        return _Answer(lack=f"Compare with the state that may enter; by its name that is {shown}. {_OTHERS}")
    return _Answer()


def _is_ready(member: str, params: AdmitParams) -> bool:
    """Whether a member by its name is the state of what may enter."""
    parts = word_set(member)
    final = params.states.is_final(member)
    return not parts.isdisjoint(params.ready) and parts.isdisjoint(NEGATIONS) and not final


def _is_tested(module: ast.AST, enum: str, member: str) -> bool:
    """Whether a file tests for a member of an enumeration: `==`, `is`, `in`, `case`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Compare):
            if any(
                isinstance(operator, (ast.Eq, ast.Is, ast.In))
                and (_is_member(left, enum, member) or _is_member(right, enum, member))
                for operator, left, right in zip(
                    node.ops, [node.left, *node.comparators], node.comparators, strict=False
                )
            ):
                return True
        elif isinstance(node, ast.MatchValue) and _is_member(node.value, enum, member):
            return True
    return False


def _is_member(node: ast.expr, enum: str, member: str) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_is_member(item, enum, member) for item in node.elts)
    if isinstance(node, ast.Attribute) and node.attr in ("value", "name") and isinstance(node.value, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == member and last_name(node.value) == enum


def _is_set(function: ast.AST, member: str) -> bool:
    """Whether a function puts things into that state: it is then what admission makes of them, not what it asks for."""
    return any(
        isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None
        and any(isinstance(part, ast.Attribute) and part.attr == member for part in ast.walk(node.value))
        for node in ast.walk(function)
    )


def _asking_state(
    atom: Atom, enum: EnumRecord, index: CodeIndex, states: StateWords
) -> Iterator[tuple[ClassRecord, Positive]]:
    """The predicates of validity that rest on the tested field being in states of the enumeration that are no ends."""
    for known in index.classes.values():
        for made in known:
            for positive in made.positives:
                members = dict(positive.states).get(atom.name, ())
                rests = {*positive.empty, *positive.also, *(name for name, _ in positive.states)} - {atom.name}
                if (
                    members
                    and set(members) <= set(enum.members)
                    and not any(states.is_final(member) for member in members)
                    and all(_is_verdict(name, states) for name in rests)
                    and not states.is_room(positive.name)
                ):
                    yield made, positive


def _only_holder(name: str, made: ClassRecord, index: CodeIndex) -> bool:
    line = _line(made.name, index)
    return all(name not in other.fields or other.name in line for known in index.classes.values() for other in known)
