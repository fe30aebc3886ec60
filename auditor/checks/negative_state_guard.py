"""Admission behind a test that a thing is *not yet over*, where a refused thing passes that test."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Match
from auditor.checks.code_atoms import Atom, Sets, no_sets, returned
from auditor.checks.code_flow import Admission, Walker
from auditor.checks.code_index import CodeIndex, EnumRecord, Split, refusals
from auditor.checks.code_params import AdmitParams
from auditor.checks.code_sets import UNKNOWN, Listing, the_one
from auditor.checks.code_shapes import ASIDE_PATHS, Shape, over_shape
from auditor.checks.code_words import Texts
from auditor.checks.guard_repair import repair
from auditor.checks.guard_rewrite import Rewriter
from auditor.checks.guarded_doors import guarded_elsewhere
from auditor.model.facts import Related
from auditor.model.findings import Confidence
from auditor.model.records import dataclass
from auditor.syntax.code_tree import CodeTree, FunctionNode, Scope, imports, last_name, positional, scopes
from auditor.syntax.names import words


@dataclass(frozen=True, slots=True)
class Verdict:
    """How sure a finding is, and what it rests on."""

    confidence: Confidence
    hidden: str
    related: tuple[Related, ...] = ()
    split: Split | None = None
    enum: EnumRecord | None = None


def sets_of(tree: CodeTree, scope: Scope, index: CodeIndex) -> Sets:
    """The named sets of states as a function sees them: those of its file, those imported by name, those of a class."""
    if not index.sets:
        return no_sets
    family = _classes_of(scope)

    def look(path: str) -> Listing:
        prefix, _, name = path.rpartition(".")
        known = index.sets.get(name, ())
        if prefix in ("self", "cls") or (not prefix and tree.language == "csharp"):
            chosen = [entry for entry in known if entry.owner in family]
        elif prefix:
            chosen = [entry for entry in known if entry.owner == prefix.rpartition(".")[2]]
            chosen = chosen or [entry for entry in known if not entry.owner and _is_of(entry.path, prefix, tree)]
        else:
            chosen = [entry for entry in known if not entry.owner and entry.path == tree.source.path]
            module, _, own = imports(tree).get(name, "").rpartition(".")
            if not chosen and own:
                known = index.sets.get(own, ())
                away = [entry for entry in known if not entry.owner]
                chosen = [entry for entry in away if _names_module(entry.path, module)] or away
        chosen = [entry for entry in chosen if entry.path == tree.source.path] or chosen
        found = the_one(chosen)
        return (found.members, found.enum) if found is not None else UNKNOWN

    return look


def _classes_of(scope: Scope) -> list[str]:
    if scope.owner is None:
        return []
    return [scope.owner.name, *filter(None, map(last_name, scope.owner.bases))]


def _is_of(path: str, prefix: str, tree: CodeTree) -> bool:
    """Whether a file is the module that a name stands for."""
    return _names_module(path, imports(tree).get(prefix, prefix))


def _names_module(path: str, dotted: str) -> bool:
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return f"/{stem}".endswith("/" + dotted.lstrip(".").replace(".", "/"))


def _outer(tree: CodeTree) -> list[Scope]:
    return [scope for scope in scopes(tree) if not scope.inside]


def _asking(tree: CodeTree, shape: Shape) -> frozenset[bytes]:
    """The one-line predicates of a file that test a parameter."""
    return frozenset(
        scope.node.name.encode()
        for scope in scopes(tree)
        if positional(scope.node) and returned(scope.node) is not None and shape.holds(tree.text(scope.node))
    )


def run(tree: CodeTree, index: CodeIndex, params: AdmitParams) -> Iterator[Match]:
    """The guarded admissions of one file."""
    if ASIDE_PATHS.hold(tree.source.path):
        return
    shape = over_shape(params, index)
    asking = _asking(tree, shape)
    if asking and tree.rest is not None:
        # A small predicate answers for its callers, and they stand elsewhere in the file.
        tree = tree.whole() or tree
    helpers: dict[str, FunctionNode] = {}
    for scope in scopes(tree):
        helpers.setdefault(scope.node.name, scope.node)
    best: dict[tuple[int, int], tuple[Atom, Admission, Verdict, Scope]] = {}
    for scope in _outer(tree):
        if params.admits.stands_by(scope.node.name):
            continue
        text = tree.text(scope.node)
        if not shape.holds(text) and not any(name in text for name in asking):
            continue
        admissions = Walker(params.states, params.admits, helpers, sets_of(tree, scope, index)).run(scope.node)
        always = _either_way(admissions)
        for admission in admissions:
            for atom, verdict in judge(admission, scope, tree, index, params):
                if (*_effect(admission), atom.kind, atom.name) in always:
                    continue
                key = (getattr(atom.node, "lineno", 0), getattr(atom.node, "col_offset", 0))
                known = best.get(key)
                if known is None or (known[2].confidence != "high" and verdict.confidence == "high"):
                    best[key] = (atom, admission, verdict, scope)
    rewriter = Rewriter(tree)
    for key in sorted(best):
        atom, admission, verdict, scope = best[key]
        fix = repair(atom, scope, verdict.split, verdict.enum, tree, index, params, rewriter)
        span = tree.span(atom.node)
        effect = tree.span(admission.node)
        related = (*verdict.related, Related(effect, "it is taken in here"))
        yield Match(
            "guarded",
            span,
            subject=f"{atom.kind} {atom.name} of {admission.subject}",
            scope=scope.name,
            values={"test": tree.source.slice(span), "subject": admission.subject or "it", "hidden": verdict.hidden},
            properties={"subject": admission.subject, "effect": admission.verb, "proof": verdict.hidden},
            related=related,
            edits=fix.edits,
            confidence=verdict.confidence,
            remedy=fix.remedy,
        )


def _effect(admission: Admission) -> tuple[str, str, str]:
    return admission.verb, admission.target, admission.subject


def _either_way(admissions: list[Admission]) -> set[tuple[str, ...]]:
    """What is done to a thing that is over just as to one that is not: there the test decides on something else. A test
    for one way of ending (`isinstance(reason, Abort)`) is not meant: what it singles out is meant to be kept out."""
    return {
        (*_effect(admission), atom.kind, atom.name)
        for admission in admissions
        for atom in admission.atoms
        if atom.over and atom.kind in ("predicate", "flag")
    }


def judge(
    admission: Admission, scope: Scope, tree: CodeTree, index: CodeIndex, params: AdmitParams
) -> Iterator[tuple[Atom, Verdict]]:
    """The negative tests before an admission that a refused thing would pass."""
    clears = {atom.name for atom in admission.atoms if atom.kind == "clear"}
    positive = {name for name in clears if not name.startswith("?")}
    if any(atom.over and atom.kind == "member" and _served(atom, params) for atom in admission.atoms):
        positive.add("=")  # a state that is no end without a refusal beside it: here it is what may enter
    if any(not params.states.is_room(name) for name in positive):
        return
    read = {name.lstrip("?") for name in clears}
    named = {member for atom in admission.atoms if atom.kind == "clear" or not atom.over for member in atom.members}
    for atom in admission.atoms:
        if atom.kind == "clear" or atom.over:
            continue
        split = _split_of(atom, index) if atom.kind != "member" else None
        if split is not None:
            verdict = _judge_split(admission, split, read, scope, tree, index)
        else:
            verdict = _judge_atom(atom, named, tree, index, params) if not positive else None
        if verdict is not None:
            yield atom, verdict


def _served(atom: Atom, params: AdmitParams) -> bool:
    return not any(params.states.is_end(member, served=False) for member in atom.members)


def _judge_split(
    admission: Admission, split: Split, read: set[str], scope: Scope, tree: CodeTree, index: CodeIndex
) -> Verdict | None:
    asking = index.asking.get(split.verdict, frozenset()) | {entry.name for entry in index.guarded[split.verdict]}
    if split.verdict in read or not read.isdisjoint(asking):
        return None
    if guarded_elsewhere(admission, scope, split, tree, index):
        return Verdict(
            "medium", f"this test does not read `{split.verdict}`, where a refusal waits; a door beside it does"
        )
    return Verdict(
        "high",
        f"a refusal waits in `{split.verdict}`, which this test does not read",
        (
            Related(split.predicate, f"`{split.name}` answers from `{split.reads}` alone"),
            Related(split.recorded, f"the refusal is recorded in `{split.verdict}`"),
        ),
        split,
    )


def _judge_atom(atom: Atom, named: set[str], tree: CodeTree, index: CodeIndex, params: AdmitParams) -> Verdict | None:
    if atom.kind == "member":
        return _judge_member(atom, named, tree, index, params)
    if atom.kind == "type":
        if any(map(params.states.is_refused, atom.members)) or not _refuses_beside(tree, params):
            return None
        return Verdict("medium", "a refusal is recorded in this file, and no test of this type reads it")
    asks = ("predicate",) if tree.language == "python" else ("predicate", "flag")  # a property asks as a method does
    if atom.kind in asks and _is_far(atom, index, params):
        return None
    if atom.kind in ("predicate", "flag") and _covers(atom, index):
        return None
    return Verdict("medium", "nothing here says that a refused one fails this test")


def _split_of(atom: Atom, index: CodeIndex) -> Split | None:
    for split in index.splits:
        if atom.kind == ("predicate" if split.called else "flag") and atom.name in split.predicates:
            return split
        if atom.kind in ("reason", "type") and atom.name == split.reads:
            return split
    return None


def _refuses_beside(tree: CodeTree, params: AdmitParams) -> bool:
    """Whether a function of this file records a refusal in a field of what it is given."""
    whole = tree.whole() or tree
    return any(write for scope in scopes(whole) for write in refusals(whole, scope.node, params.states))


def _is_far(atom: Atom, index: CodeIndex, params: AdmitParams) -> bool:
    """A predicate of futures and tasks, which covers every end. A property of that name may be the project's own."""
    if atom.name not in params.far_predicates:
        return False
    return atom.kind == "predicate" or not any(
        atom.name in made.fields or any(own.name == atom.name for own in made.predicates)
        for found in index.classes.values()
        for made in found
    )


def _covers(atom: Atom, index: CodeIndex) -> bool:
    """Every class of the project that has this predicate answers from several fields, or for every member that says
    no."""
    known = [entry for entry in index.predicates.get(atom.name, ()) if entry[1].called == (atom.kind == "predicate")]
    return bool(known) and all(len(predicate.fields) > 1 for _, predicate in known)


def _judge_member(atom: Atom, named: set[str], tree: CodeTree, index: CodeIndex, params: AdmitParams) -> Verdict | None:
    enum = _enum_of(atom, named, tree, index, params)
    states = params.states
    if enum is not None:
        hidden = [member for member in enum.members if states.is_barred(member) and member not in named]
        if atom.listed:
            hidden = [member for member in hidden if not _on_its_way(member, named)]
        if not hidden:
            return None
        shown = ", ".join(hidden[:4])
        related = (Related(enum.span, f"`{enum.name}` has {shown} as well"),) if enum.span is not None else ()
        return Verdict("high", f"`{shown}` passes it", related, enum=enum)
    # A named set is somebody's list of all ends, unless its enumeration proves that it is not.
    if atom.listed or any(states.is_barred(member) for member in atom.members):
        return None
    if not states.is_state(atom.name) or not any(map(states.is_final, atom.members)):
        return None
    return Verdict("medium", "nothing here says that a refused one fails this test")


def _on_its_way(member: str, named: set[str]) -> bool:
    """`CANCELLING` where `CANCELLED` is named: who made a list of all ends left out what has not ended for a reason."""
    return any(
        word.endswith("ing") and other[:4] == word[:4]
        for word in words(member)
        for end in named
        for other in words(end)
    )


def _enum_of(atom: Atom, named: set[str], tree: CodeTree, index: CodeIndex, params: AdmitParams) -> EnumRecord | None:
    name = atom.enum.rpartition(".")[2]
    name = index.aliases.get(name, name) if name in imports(tree) else name
    found = [enum for enum in index.enums.get(name, ()) if set(atom.members) <= set(enum.members)]
    if found:
        here = [enum for enum in found if enum.span is not None and enum.span.path == tree.source.path]
        return (here or found)[0] if here or len({enum.members for enum in found}) == 1 else None
    dotted = imports(tree).get(atom.enum.partition(".")[0])
    if dotted is None:
        return None
    full = dotted + atom.enum[len(atom.enum.partition(".")[0]) :]
    members = params.known_enums.get(full) or _by_package(full, params)
    return EnumRecord(name, tuple(members), None) if members and set(atom.members) <= set(members) else None


def _by_package(full: str, params: AdmitParams) -> Texts:
    """A type re-exported by another module of the same package keeps its members."""
    package, name = full.partition(".")[0], full.rpartition(".")[2]
    found = {
        members
        for known, members in params.known_enums.items()
        if known.partition(".")[0] == package and known.rpartition(".")[2] == name
    }
    return found.pop() if len(found) == 1 else ()
