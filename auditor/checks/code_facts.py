"""What the code rules must know of all files before they look at one: gathered from the few that say something of it.

First come the types with a terminal predicate, then the enumerations that tests name, then, for the second verdict
fields found among them, whoever reads or writes those fields, and whoever calls the helpers that do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from auditor.checks.code_index import CodeIndex, FileRecord, join, record, wanted_names
from auditor.checks.code_reading import Crew, Reading, holds
from auditor.checks.code_sets import SetRecord, named_sets, resolved
from auditor.checks.code_shapes import (
    Shape,
    class_shape,
    enum_names,
    member_shape,
    predicate_shape,
    single_field,
    use_shape,
)
from auditor.checks.code_words import StateWords
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.records import dataclass

_ALIAS = re.compile(rb"\b([A-Z]\w*) as ([A-Z]\w*)")
ROUNDS = 6  # how far helpers of helpers are followed


def gather_index(
    modules: Sequence[CodeModule], states: StateWords, crew: Crew, proven: bool = False
) -> tuple[CodeIndex, list[Problem]]:
    """The index over all modules, and what could not be read for it. With `proven` it leaves out types whose verdict
    cannot be split: they matter for what is less than sure."""
    records: list[FileRecord] = []
    problems: list[Problem] = []
    whole: set[str] = set()

    def add(chosen: Sequence[CodeModule], shape: Shape, classes: bool, single: bool = False) -> None:
        work = partial(_records, states, shape, classes, single)
        for found, complete, failed in crew.each(work, chosen, chosen, parsed=True):
            problems.extend(failed)
            if found is not None:
                records.append(found)
                if complete:
                    whole.add(found.path)

    def left(shape: Shape) -> list[CodeModule]:
        unknown = [module for module in modules if module.language == "python" and module.source.path not in whole]
        held = crew.each(partial(_hold, shape), unknown, unknown, light=True)
        return [module for module, holding in zip(unknown, held, strict=True) if holding]

    looks = crew.each(partial(_looks, states, proven), modules, modules)
    add(
        [module for module, look in zip(modules, looks, strict=True) if look.predicate],
        predicate_shape(states),
        classes=True,
        single=proven,
    )
    named = {name for look in looks for name in look.types}
    aliases = {alias: name for look in looks for alias, name in look.aliases}
    naming = frozenset(module.source.path for module, look in zip(modules, looks, strict=True) if look.types)
    named |= set(aliases.values())
    if named:
        shape = class_shape(named)
        add(left(shape), shape, classes=True)
    asked: frozenset[str] = frozenset()
    for _ in range(ROUNDS):
        names = wanted_names(records) - asked
        if not names:
            break
        asked |= names
        shape = use_shape(names)
        add(left(shape), shape, classes=False)
    index = join(records, states)
    index.aliases, index.naming = aliases, naming
    index.sets = resolved((entry for look in looks for entry in look.sets), aliases)
    return index, problems


@dataclass(frozen=True, slots=True)
class Look:
    """What the bytes of a file say: whether it may hold a terminal predicate that is wanted, the types of which it
    names a member, which of them are imported under another name, and the named sets of such members."""

    predicate: bool
    types: frozenset[str]
    aliases: tuple[tuple[str, str], ...] = ()
    sets: tuple[SetRecord, ...] = ()


def _looks(states: StateWords, proven: bool, modules: Sequence[CodeModule]) -> list[Look]:
    asking, naming = predicate_shape(states), member_shape(states)
    found: list[Look] = []
    for module in modules:
        data = module.source.data
        predicate = holds(asking, module)
        if predicate and proven and module.language == "python":
            predicate = single_field(asking, data)
        types = frozenset(enum_names(states, data)) if holds(naming, module) else frozenset()
        pairs = _ALIAS.findall(data) if types else ()
        aliases = tuple((alias.decode(), name.decode()) for name, alias in pairs if alias.decode() in types)
        sets = tuple(named_sets(module.source.path, data, module.language)) if types else ()
        found.append(Look(predicate, types, aliases, sets))
    return found


def _hold(shape: Shape, modules: Sequence[CodeModule]) -> list[bool]:
    return [holds(shape, module) for module in modules]


def _records(
    states: StateWords, shape: Shape, classes: bool, single: bool, modules: Sequence[CodeModule]
) -> list[tuple[FileRecord | None, bool, list[Problem]]]:
    """The record of each module, whether it is of the whole file, and what could not be read."""
    wanted = partial(single_field, shape) if single else shape.holds
    found: list[tuple[FileRecord | None, bool, list[Problem]]] = []
    for module in modules:
        reading = Reading(module)
        made = tree = None
        try:
            tree = reading.classes(wanted) if classes else reading.part(wanted)
            made = record(tree, states) if tree is not None else None
        except RecursionError:
            reading.too_deep()
        except Exception as error:  # noqa: BLE001 - kept, shown, and the rest goes on
            reading.broke("the index of the code rules", error)
        found.append((made, tree is not None and tree.rest is None, reading.problems))
    return found
