"""What the code rules must know of all files before they look at one: gathered from the few that say something of it.

First come the types with a terminal predicate, then the enumerations that tests name, then, for the second verdict
fields found among them, whoever reads or writes those fields, and whoever calls the helpers that do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from auditor.checks.code_index import CodeIndex, FileRecord, join, record, wanted_names
from auditor.checks.code_reading import Reading, Wanted, holds, spread
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

_ALIAS = re.compile(rb"\b([A-Z]\w*) as ([A-Z]\w*)")
ROUNDS = 6  # how far helpers of helpers are followed


def gather_index(
    modules: Sequence[CodeModule], states: StateWords, jobs: int, proven: bool = False
) -> tuple[CodeIndex, list[Problem]]:
    """The index over all modules, and what could not be read for it. With `proven` it leaves out types whose verdict
    cannot be split: they matter for what is less than sure."""
    records: list[FileRecord] = []
    problems: list[Problem] = []
    whole: set[str] = set()

    def add(chosen: Sequence[CodeModule], wanted: Wanted, classes: bool) -> None:
        work = partial(_records, states, wanted, classes)
        for found, complete, failed in spread(work, chosen, [len(module.source.data) for module in chosen], jobs):
            problems.extend(failed)
            if found is not None:
                records.append(found)
                if complete:
                    whole.add(found.path)

    shape = predicate_shape(states)
    wanted = partial(single_field, shape) if proven else shape.holds
    chosen = [module for module in modules if holds(shape, module)]
    add([module for module in chosen if module.language != "python" or wanted(module.source.data)], wanted, True)
    named, aliases, naming = _named_types(modules, states)
    if named:
        shape = class_shape(named)
        add(_left(modules, whole, shape), shape.holds, True)
    asked: frozenset[str] = frozenset()
    for _ in range(ROUNDS):
        names = wanted_names(records) - asked
        if not names:
            break
        asked |= names
        shape = use_shape(names)
        add(_left(modules, whole, shape), shape.holds, False)
    index = join(records, states)
    index.aliases, index.naming = aliases, naming
    return index, problems


def _left(modules: Sequence[CodeModule], whole: set[str], shape: Shape) -> list[CodeModule]:
    return [
        module
        for module in modules
        if module.language == "python" and module.source.path not in whole and holds(shape, module)
    ]


def _named_types(modules: Sequence[CodeModule], states: StateWords) -> tuple[set[str], dict[str, str], frozenset[str]]:
    """The types of which a test may name a member, which of them are imported under another name, and the files with
    such a test."""
    shape = member_shape(states)
    names: set[str] = set()
    aliases: dict[str, str] = {}
    paths: set[str] = set()
    for module in modules:
        if not holds(shape, module):
            continue
        found = enum_names(states, module.source.data)
        for name, alias in _ALIAS.findall(module.source.data) if found else ():
            if alias.decode() in found:
                aliases[alias.decode()] = name.decode()
        if found:
            paths.add(module.source.path)
        names |= found
    return names | set(aliases.values()), aliases, frozenset(paths)


def _records(
    states: StateWords, wanted: Wanted, classes: bool, modules: Sequence[CodeModule]
) -> list[tuple[FileRecord | None, bool, list[Problem]]]:
    """The record of each module, whether it is of the whole file, and what could not be read."""
    found: list[tuple[FileRecord | None, bool, list[Problem]]] = []
    for module in modules:
        reading = Reading(module)
        made = None
        tree = reading.classes(wanted) if classes else reading.part(wanted)
        try:
            made = record(tree, states) if tree is not None else None
        except RecursionError:
            reading.too_deep()
        found.append((made, tree is not None and tree.rest is None, reading.problems))
    return found
