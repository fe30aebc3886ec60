"""Runs the code checks: what the index must know of all files first, then each file against it.

Files are judged by their bytes, then by a parser, in pieces; on big trees the parsing runs in worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from auditor.checks import CHECKS
from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_facts import Look, gather_index
from auditor.checks.code_index import (
    ClassRecord,
    CodeIndex,
    EnumRecord,
    FileRecord,
    Fold,
    HelperRecord,
    MethodRecord,
    Predicate,
    Write,
)
from auditor.checks.code_reading import Crew, Reading, few_collections, holds
from auditor.checks.code_sets import SetRecord
from auditor.checks.code_shapes import Shape
from auditor.checks.positive_predicate import Positive
from auditor.model.facts import CodeModule, Related
from auditor.model.findings import CONFIDENCE_RANK, Confidence, Edit, Problem
from auditor.model.records import dataclass, replace
from auditor.model.rules import Rule
from auditor.model.spans import Position, Span

if TYPE_CHECKING:
    from auditor.cache import FactCache

Found = list[tuple[Rule, Match]]

# Precision was measured on Python alone: what is found in another language claims no more than this.
CAPS: dict[str, Confidence] = {"csharp": "medium"}

# What answers about a file are made of: the only records that are made again from a cache.
KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ClassRecord, Edit, EnumRecord, FileRecord, Fold, HelperRecord, Look, Match, MethodRecord, Position, Positive,
        Predicate, Problem, Related, SetRecord, Span, Write,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """Which files a rule is run on: those of these languages whose bytes have this shape."""

    languages: tuple[str, ...]
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Pass:
    """One rule with what it needs to run: the index, and the shape of the functions that it is run on."""

    rule: Rule
    index: CodeIndex
    shape: Shape | None


def run_code_checks(
    modules: Sequence[CodeModule],
    rules: Sequence[Rule],
    jobs: int,
    profile: str = "strict",
    cache: FactCache | None = None,
) -> tuple[Found, list[Problem]]:
    """All matches of the rules in the modules, and the files that could not be parsed. Places that cannot reach the
    confidence which `profile` shows are not looked for. What `cache` knows is not found out again."""
    with few_collections():
        return _run(modules, rules, Crew(jobs, cache, KINDS), profile)


def _run(modules: Sequence[CodeModule], rules: Sequence[Rule], crew: Crew, profile: str) -> tuple[Found, list[Problem]]:
    problems: dict[tuple[str, str], Problem] = {}
    indexes: dict[tuple[object, bool], CodeIndex] = {}
    passes: list[Pass] = []
    asked: list[Asked] = []
    for rule in rules:
        check = _check(rule)
        floor = rule.floor.get(profile, "low")
        languages = tuple(language for language in check.languages if _shown(language, floor))
        index = CodeIndex()
        if check.states is not None:
            states, proven = check.states(rule.params), floor == "high"
            if (states, proven) not in indexes:
                wanted = [module for module in modules if module.language in languages]
                indexes[states, proven], failed = gather_index(wanted, states, crew, proven)
                problems.update({(problem.path, problem.reason): problem for problem in failed})
            index = indexes[states, proven]
        shape = check.shape(rule.params, index, floor) if check.shape is not None else None
        if check.shape is None or shape is not None:
            passes.append(Pass(rule, index, shape))
            asked.append(Asked(languages, shape))
    concerned = crew.each(partial(_concerned, tuple(asked)), modules, modules)
    items = [(module, numbers) for module, numbers in zip(modules, concerned, strict=True) if numbers]
    work = partial(_judge, tuple(passes))
    matches: Found = []
    for found, failed in crew.each(work, items, [module for module, _ in items], parsed=True):
        matches.extend((passes[number].rule, match) for number, match in found)
        problems.update({(problem.path, problem.reason): problem for problem in failed})
    return matches, list(problems.values())


@lru_cache(maxsize=64)
def _check_named(name: str) -> CodeCheck[Any]:
    return next(check for check in CHECKS if isinstance(check, CodeCheck) and check.name == name)


def _check(rule: Rule) -> CodeCheck[Any]:
    return _check_named(rule.check)


def _shown(language: str, floor: str) -> bool:
    return CONFIDENCE_RANK[CAPS.get(language, "high")] >= CONFIDENCE_RANK[floor]


def _concerned(asked: Sequence[Asked], modules: Sequence[CodeModule]) -> list[tuple[int, ...]]:
    """Which of the rules each module concerns, by their number."""
    return [
        tuple(
            number
            for number, part in enumerate(asked)
            if module.language in part.languages and holds(part.shape, module)
        )
        for module in modules
    ]


def _judge(
    passes: Sequence[Pass], items: Sequence[tuple[CodeModule, tuple[int, ...]]]
) -> list[tuple[list[tuple[int, Match]], list[Problem]]]:
    """What the modules hold for the rules that they concern, by the rule's number, and what could not be read."""
    answers: list[tuple[list[tuple[int, Match]], list[Problem]]] = []
    for module, numbers in items:
        reading, cap = Reading(module), CAPS.get(module.language)
        found: list[tuple[int, Match]] = []
        for number in numbers:
            part = passes[number]
            try:
                tree = reading.part(part.shape.holds if part.shape is not None else None)
                if tree is None:
                    break
                matches = list(_check(part.rule).run(tree, part.index, part.rule.params))
            except RecursionError:
                reading.too_deep()
                continue
            except Exception as error:  # noqa: BLE001 - kept, shown, and the rest goes on
                reading.broke(f"the rule `{part.rule.id}`", error)
                continue
            if cap is not None:
                matches = [replace(match, confidence=cap) for match in matches]
            found.extend((number, match) for match in matches)
        answers.append((found, reading.problems))
    return answers
