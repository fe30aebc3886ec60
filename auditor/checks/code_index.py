"""What the code rules know across files: types with their terminal predicates and verdict fields, enumerations, the
helpers that read a field. One small picklable record a file; the index joins them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from auditor.checks.code_sets import SetRecord
from auditor.checks.code_words import StateWords
from auditor.checks.positive_predicate import Positive, positives
from auditor.model.records import dataclass, field
from auditor.model.spans import Span
from auditor.syntax.code_tree import CodeTree, FunctionNode, classes, last_name, path_of, positional, scopes
from auditor.syntax.names import snake
from auditor.syntax.python_nodes import walk

SMALL = 6  # statements of a helper that may pass a verdict on
ENUM_BASES = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "TextChoices", "IntegerChoices"})


@dataclass(frozen=True, slots=True)
class Predicate:
    """A method or property that says whether its object has ended: the fields of `self` that its answer rests on. A
    property is not `called`."""

    name: str
    fields: tuple[str, ...]
    span: Span
    called: bool = True


@dataclass(frozen=True, slots=True)
class Write:
    """An assignment to a field: by which function, whether it speaks of a refusal, whether to something but a blank."""

    field: str
    function: str
    refused: bool
    blank: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Fold:
    """A place where the field `source` decides what the field `target` becomes."""

    source: str
    target: str
    span: Span


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A class: its bases, fields, terminal predicates, writes of its own fields by method, folds, and the predicates
    that say that it may be used."""

    name: str
    bases: tuple[str, ...]
    span: Span
    fields: tuple[str, ...]
    predicates: tuple[Predicate, ...]
    writes: tuple[Write, ...]
    folds: tuple[Fold, ...]
    positives: tuple[Positive, ...] = ()


@dataclass(frozen=True, slots=True)
class EnumRecord:
    """An enumeration, or a class of upper-case constants."""

    name: str
    members: tuple[str, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class HelperRecord:
    """A small function that returns something: the attributes and the calls that its answer is built from."""

    name: str
    attributes: frozenset[str]
    calls: frozenset[str]


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """A method that may be a door: its class, what it reads and calls, the containers of `self` that it fills."""

    owner: str
    name: str
    attributes: frozenset[str]
    calls: frozenset[str]
    fills: frozenset[str]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What one file adds to the index."""

    path: str
    classes: tuple[ClassRecord, ...] = ()
    enums: tuple[EnumRecord, ...] = ()
    helpers: tuple[HelperRecord, ...] = ()
    outside: tuple[Write, ...] = ()
    methods: tuple[MethodRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """A class whose verdict is split: `predicates` read `reads`, a refusal waits in `verdict` until it is folded."""

    name: str
    predicates: tuple[str, ...]
    reads: str
    verdict: str
    predicate: Span
    recorded: Span
    folded: Span | None
    called: bool = True


@dataclass(slots=True)
class CodeIndex:
    """All records joined. `asking` maps a second verdict field to the names of the helpers that look at it, `guarded`
    to the methods that do, themselves or through such a helper; `aliases` a name that a type is imported under to its
    own; `naming` are the files that name a member of a type which may be an enumeration; `sets` the named sets of such
    members, by name."""

    splits: tuple[Split, ...] = ()
    enums: Mapping[str, tuple[EnumRecord, ...]] = field(default_factory=dict)
    classes: Mapping[str, tuple[ClassRecord, ...]] = field(default_factory=dict)
    predicates: Mapping[str, tuple[tuple[ClassRecord, Predicate], ...]] = field(default_factory=dict)
    asking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    guarded: Mapping[str, tuple[MethodRecord, ...]] = field(default_factory=dict)
    flags: Mapping[str, tuple[Write, ...]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    naming: frozenset[str] = frozenset()
    sets: Mapping[str, tuple[SetRecord, ...]] = field(default_factory=dict)


def record(tree: CodeTree, words: StateWords) -> FileRecord:
    """The record of one file."""
    made: list[ClassRecord] = []
    enums: list[EnumRecord] = []
    for node in classes(tree):
        if getattr(node, "partial", False):
            continue  # some methods of it, found for what they read or write
        enum = _enum(tree, node, words)
        if enum is not None:
            enums.append(enum)
        made.append(_class(tree, node, words, enum.members if enum is not None else ()))
    helpers: list[HelperRecord] = []
    outside: list[Write] = []
    methods: list[MethodRecord] = []
    for scope in scopes(tree):
        helper = _helper(scope.node)
        if helper is not None:
            helpers.append(helper)
        outside.extend(refusals(tree, scope.node, words))
        if scope.owner is not None and not scope.inside:
            methods.append(method_record(scope.owner.name, scope.node))
    return FileRecord(tree.source.path, tuple(made), tuple(enums), tuple(helpers), tuple(outside), tuple(methods))


def _enum(tree: CodeTree, node: ast.ClassDef, words: StateWords) -> EnumRecord | None:
    members = []
    for statement in node.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        members += [name.id for name in targets if isinstance(name, ast.Name) and not name.id.startswith("_")]
    declared = any(last_name(base) in ENUM_BASES or last_name(base).endswith("Enum") for base in node.bases)
    if not declared:
        # `class KVPoll: Failed = 0`: constants by their spelling.
        members = [name for name in members if name[:1].isupper()]
    if len(members) < 2 or not any(words.is_end(member) for member in members):
        return None
    return EnumRecord(node.name, tuple(members), tree.name_span(node, node.name))


def _class(tree: CodeTree, node: ast.ClassDef, words: StateWords, members: tuple[str, ...] = ()) -> ClassRecord:
    fields: dict[str, None] = {}
    predicates: list[Predicate] = []
    writes: list[Write] = []
    folds: list[Fold] = []
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields[statement.target.id] = None
        elif isinstance(statement, ast.Assign):
            fields.update({name.id: None for name in statement.targets if isinstance(name, ast.Name)})
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for write in _writes(tree, statement, words, "self"):
                fields[write.field] = None
                writes.append(write)
            folds.extend(_folds(tree, statement))
            if words.is_ended(statement.name) and len(positional(statement)) == 0:
                read = _answer_fields(statement) or _answer_members(statement, members, words)
                if read:
                    called = not any("property" in last_name(entry) for entry in statement.decorator_list)
                    called = called and tree.language == "python"
                    span = tree.name_span(statement, statement.name)
                    predicates.append(Predicate(statement.name, read, span, called))
    bases = tuple(filter(None, (last_name(base) for base in node.bases)))
    return ClassRecord(
        node.name,
        bases,
        tree.name_span(node, node.name),
        tuple(fields),
        tuple(predicates),
        tuple(writes),
        tuple(folds),
        positives(tree, node, words),
    )


def _answer_fields(node: FunctionNode) -> tuple[str, ...]:
    """The fields of `self` that a predicate reads, in order; empty for a predicate that asks anything else."""
    found: dict[str, None] = {}
    for part in walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            found[part.attr] = None
        elif isinstance(part, ast.Call) and last_name(part.func) == "getattr" and len(part.args) >= 2:
            key = part.args[1]
            if path_of(part.args[0]) == "self" and isinstance(key, ast.Constant):
                found[str(key.value)] = None
    return tuple(found)


def _answer_members(node: FunctionNode, members: tuple[str, ...], words: StateWords) -> tuple[str, ...]:
    """The members that a predicate of an enumeration says yes to (`self in (State.DONE, State.FAILED)`), where every
    refusal is one of them; empty otherwise."""
    named = {part.attr for part in walk(node) if isinstance(part, ast.Attribute)} & set(members)
    refused = {member for member in members if words.is_refused(member)}
    asks = any(
        isinstance(part, ast.Compare)
        and isinstance(part.ops[0], (ast.In, ast.Is, ast.Eq))
        and isinstance(part.left, ast.Name)
        and part.left.id == "self"
        for part in walk(node)
    )
    return tuple(sorted(named)) if asks and refused and refused <= named else ()


def _assigned(node: ast.stmt) -> list[tuple[ast.expr, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                values = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else []
                same = len(values) == len(target.elts)
                pairs += [(part, values[i] if same else node.value) for i, part in enumerate(target.elts)]
            else:
                pairs.append((target, node.value))
        return pairs
    if isinstance(node, ast.AnnAssign):
        return [(node.target, node.value)]
    if isinstance(node, ast.AugAssign):
        return [(node.target, node.value)]
    return []


def _is_blank(value: ast.expr | None) -> bool:
    if value is None:
        return True
    if isinstance(value, ast.Constant):
        return value.value is None or value.value is False or value.value in ("", 0)
    return isinstance(value, (ast.List, ast.Dict, ast.Set, ast.Tuple)) and not getattr(value, "elts", None)


def _mentions(value: ast.expr | None, words: StateWords) -> bool:
    if value is None:
        return False
    for part in walk(value):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value) < 24:
            name = part.value
        if name and words.is_refused(name):
            return True
    return False


def _statements(node: FunctionNode) -> Iterator[ast.stmt]:
    stack: list[ast.stmt] = list(node.body)
    while stack:
        statement = stack.pop()
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            stack.extend(getattr(statement, name, ()))
        for handler in getattr(statement, "handlers", ()):
            stack.extend(handler.body)
        for case in getattr(statement, "cases", ()):
            stack.extend(case.body)


def _writes(tree: CodeTree, node: FunctionNode, words: StateWords, owner: str) -> Iterator[Write]:
    for statement in _statements(node):
        for target, value in _assigned(statement):
            if not (isinstance(target, ast.Attribute) and path_of(target.value) == owner):
                continue
            speaks = words.is_refusing(target.attr) or words.is_refusing(node.name) or _mentions(value, words)
            yield Write(target.attr, node.name, speaks, _is_blank(value), tree.span(target))


def refusals(tree: CodeTree, node: FunctionNode, words: StateWords) -> Iterator[Write]:
    """Writes of a field of something else than `self`, where they speak of a refusal."""
    for statement in _statements(node):
        for target, value in _assigned(statement):
            if not isinstance(target, ast.Attribute) or path_of(target.value) in (None, "self", "cls"):
                continue
            if _is_blank(value):
                continue
            if words.is_refused(target.attr) or words.is_refused(node.name) or _mentions(value, words):
                yield Write(target.attr, node.name, True, False, tree.span(target))


def _self_fields(value: ast.AST | None, alias: Mapping[str, str]) -> set[str]:
    found = set()
    for part in walk(value) if value is not None else ():
        if isinstance(part, ast.Attribute) and path_of(part.value) == "self":
            found.add(part.attr)
        elif isinstance(part, ast.Name) and part.id in alias:
            found.add(alias[part.id])
    return found


def _folds(tree: CodeTree, node: FunctionNode) -> Iterator[Fold]:
    alias: dict[str, str] = {}
    stack: list[tuple[ast.stmt, frozenset[str]]] = [(statement, frozenset()) for statement in reversed(node.body)]
    while stack:
        statement, asked = stack.pop()
        for target, value in _assigned(statement):
            if isinstance(target, ast.Name) and isinstance(value, ast.Attribute) and path_of(value.value) == "self":
                alias[target.id] = value.attr
            if isinstance(target, ast.Attribute) and path_of(target.value) == "self":
                for source in sorted(_self_fields(value, alias) | asked):
                    if source != target.attr:
                        yield Fold(source, target.attr, tree.span(target))
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner = asked
        if isinstance(statement, (ast.If, ast.While)):
            inner = asked | _self_fields(statement.test, alias)
        for name in ("body", "orelse", "finalbody"):
            stack.extend((child, inner) for child in reversed(getattr(statement, name, [])))
        for handler in getattr(statement, "handlers", ()):
            stack.extend((child, inner) for child in handler.body)
        for case in getattr(statement, "cases", ()):
            stack.extend((child, inner | _self_fields(statement.subject, alias)) for child in case.body)  # type: ignore[attr-defined]


def _helper(node: FunctionNode) -> HelperRecord | None:
    """A small function that answers yes or no: what its answer rests on, and what decides which answer is given."""
    body = node.body[1:] if node.body and _is_text(node.body[0]) else node.body
    body = [part for part in body if not isinstance(part, (ast.Import, ast.ImportFrom))]
    if not body or len(body) > SMALL or node.name.startswith("__"):
        return None
    statements = list(_statements(node))
    answers = [part.value for part in statements if isinstance(part, ast.Return) and part.value is not None]
    if not answers or not any(_is_verdict(answer) for answer in answers):
        return None
    asked: list[ast.AST] = list(answers)
    for statement in statements:
        if not any(isinstance(inner, ast.Return) for inner in walk(statement)):
            continue
        if isinstance(statement, (ast.If, ast.While)):
            asked.append(statement.test)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            asked.append(statement.iter)
    assigned = {
        target.id: value
        for part in statements
        for target, value in _assigned(part)
        if isinstance(target, ast.Name) and value is not None
    }
    attributes, calls = set(), set()
    while asked:
        for part in walk(asked.pop()):
            if isinstance(part, ast.Attribute):
                attributes.add(part.attr)
            elif isinstance(part, ast.Name) and part.id in assigned:
                asked.append(assigned.pop(part.id))
            elif isinstance(part, ast.Call):
                calls.add(last_name(part.func))
                if last_name(part.func) == "getattr" and len(part.args) >= 2 and isinstance(part.args[1], ast.Constant):
                    attributes.add(str(part.args[1].value))
    return HelperRecord(node.name, frozenset(attributes), frozenset(calls))


def _touched(body: Iterable[ast.stmt]) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that statements read, and what they call."""
    attributes, calls = set(), set()
    for part in (inner for statement in body for inner in walk(statement)):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            attributes.add(part.attr)
        elif isinstance(part, ast.Call):
            calls.add(last_name(part.func))
            if last_name(part.func) == "getattr" and len(part.args) >= 2 and isinstance(part.args[1], ast.Constant):
                attributes.add(str(part.args[1].value))
    return frozenset(attributes), frozenset(calls)


def method_record(owner: str, node: FunctionNode) -> MethodRecord:
    """What a method of the class `owner` reads, calls and fills."""
    attributes, calls = _touched(node.body)
    fills = {
        path_of(part.func.value)
        for statement in node.body
        for part in walk(statement)
        if isinstance(part, ast.Call) and part.args and isinstance(part.func, ast.Attribute)
    }
    own = frozenset(path for path in fills if path is not None and path.startswith("self."))
    return MethodRecord(owner, node.name, attributes, calls, own)


def _is_verdict(value: ast.expr) -> bool:
    """An answer that is yes or no, or that another function gives."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, bool)
    if isinstance(value, ast.BoolOp):
        return any(_is_verdict(part) for part in value.values)
    if isinstance(value, ast.IfExp):
        return _is_verdict(value.body) or _is_verdict(value.orelse)
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.Not)
    return isinstance(value, (ast.Compare, ast.Call, ast.Attribute, ast.Await, ast.NamedExpr))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def join(records: Iterable[FileRecord], words: StateWords) -> CodeIndex:
    """The index of all records, in order of their paths."""
    ordered = sorted(records, key=lambda entry: entry.path)
    by_name: dict[str, list[ClassRecord]] = {}
    enums: dict[str, list[EnumRecord]] = {}
    flags: dict[str, list[Write]] = {}
    predicates: dict[str, list[tuple[ClassRecord, Predicate]]] = {}
    helpers: list[HelperRecord] = []
    methods: list[MethodRecord] = []
    for entry in ordered:
        helpers.extend(entry.helpers)
        methods.extend(entry.methods)
        for made in entry.classes:
            by_name.setdefault(made.name, []).append(made)
            for predicate in made.predicates:
                predicates.setdefault(predicate.name, []).append((made, predicate))
        for enum in entry.enums:
            enums.setdefault(enum.name, []).append(enum)
        for write in entry.outside:
            flags.setdefault(write.field, []).append(write)
    splits = tuple(
        split for name in sorted(by_name) for made in by_name[name] for split in _splits(made, by_name, flags, words)
    )
    asking = {split.verdict: _asking(split.verdict, helpers) for split in splits}
    return CodeIndex(
        splits,
        {name: tuple(found) for name, found in enums.items()},
        {name: tuple(found) for name, found in by_name.items()},
        {name: tuple(found) for name, found in predicates.items()},
        asking,
        {
            verdict: tuple(
                entry for entry in methods if verdict in entry.attributes or not names.isdisjoint(entry.calls)
            )
            for verdict, names in asking.items()
        },
        {name: tuple(found) for name, found in flags.items()},
    )


def candidate_fields(records: Iterable[FileRecord]) -> frozenset[str]:
    """Fields that may hold a second verdict: the sources of folds into what a predicate reads."""
    found = set()
    for entry in records:
        for made in entry.classes:
            read = {predicate.fields[0] for predicate in made.predicates if len(predicate.fields) == 1}
            spoken = {write.field for write in made.writes if write.refused and not write.blank}
            found |= {
                fold.source
                for fold in made.folds
                if fold.target in read and fold.source not in read and (fold.source in spoken or pending(fold.source))
            }
    return frozenset(found)


def wanted_names(records: Iterable[FileRecord]) -> frozenset[str]:
    """What to look for in the files that have no record yet: second verdict fields, and the helpers that read them."""
    known = list(records)
    names = set(candidate_fields(known))
    helpers = [helper for entry in known for helper in entry.helpers]
    for name in tuple(names):
        names |= _asking(name, helpers)
    return frozenset(name for name in names if len(name) > 3)


def _asking(verdict: str, helpers: Iterable[HelperRecord]) -> frozenset[str]:
    names: set[str] = set()
    known = list(helpers)
    grown = True
    while grown:
        more = {
            helper.name
            for helper in known
            if helper.name not in names and (verdict in helper.attributes or not names.isdisjoint(helper.calls))
        }
        names |= more
        grown = bool(more)
    return frozenset(names)


def _family(made: ClassRecord, by_name: Mapping[str, list[ClassRecord]]) -> list[ClassRecord]:
    """A class and its bases, as far as the project defines them under one name."""
    found, queue = [made], list(made.bases)
    while queue and len(found) < 16:
        known = by_name.get(queue.pop(0), [])
        if len(known) == 1 and known[0] not in found:
            found.append(known[0])
            queue.extend(known[0].bases)
    return found


def _splits(
    made: ClassRecord, by_name: Mapping[str, list[ClassRecord]], flags: Mapping[str, list[Write]], words: StateWords
) -> Iterator[Split]:
    family = _family(made, by_name)
    predicates = [predicate for part in family for predicate in part.predicates]
    writes = [write for part in family for write in part.writes]
    folds = [fold for part in family for fold in part.folds]
    known = {name for part in family for name in part.fields}
    read = {name for predicate in predicates for name in predicate.fields}
    for predicate in predicates:
        if len(predicate.fields) != 1:
            continue
        reads = predicate.fields[0]
        settles = {write.function for write in writes if write.field == reads}
        for fold in folds:
            if fold.target != reads or fold.source in read or fold.source not in known:
                continue
            recorded = next(
                (
                    write
                    for write in writes
                    if write.field == fold.source
                    and not write.blank
                    and write.function != "__init__"
                    and (write.refused or words.is_refused(write.field))
                    and write.function not in settles
                ),
                None,
            ) or next((write for write in flags.get(fold.source, ()) if _flag_of(fold.source, made, words)), None)
            if recorded is not None:
                names = tuple(sorted({other.name for other in predicates if other.fields == (reads,)}))
                yield Split(
                    made.name, names, reads, fold.source, predicate.span, recorded.span, fold.span, predicate.called
                )
                break


def pending(name: str) -> bool:
    """A field that by its name waits to become another one."""
    return name.lstrip("_").startswith(("to_", "pending_", "next_", "deferred_"))


def _flag_of(name: str, made: ClassRecord, words: StateWords) -> bool:
    return words.is_refused(name) or snake(made.name) in name or pending(name)
