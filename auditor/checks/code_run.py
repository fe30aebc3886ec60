"""Runs the code checks: what the index must know of all files first, then each file against it.

Files are judged by their bytes, then by a parser, in pieces; on big trees the parsing runs in worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from auditor.checks import CHECKS
from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_facts import gather_index
from auditor.checks.code_index import CodeIndex
from auditor.checks.code_reading import Reading, few_collections, holds, spread
from auditor.checks.code_shapes import Shape
from auditor.model.facts import CodeModule
from auditor.model.findings import CONFIDENCE_RANK, Confidence, Problem
from auditor.model.records import dataclass, replace
from auditor.model.rules import Rule

Found = list[tuple[Rule, Match]]

# Precision was measured on Python alone: what is found in another language claims no more than this.
CAPS: dict[str, Confidence] = {"csharp": "medium"}


@dataclass(frozen=True, slots=True)
class Pass:
    """One rule with what it needs to run: the index, and the shape of the files that it is run on."""

    rule: Rule
    index: CodeIndex
    shape: Shape | None


def run_code_checks(
    modules: Sequence[CodeModule], rules: Sequence[Rule], jobs: int, profile: str = "strict"
) -> tuple[Found, list[Problem]]:
    """All matches of the rules in the modules, and the files that could not be parsed. Places that cannot reach the
    confidence which `profile` shows are not looked for."""
    with few_collections():
        return _run(modules, rules, jobs, profile)


def _run(modules: Sequence[CodeModule], rules: Sequence[Rule], jobs: int, profile: str) -> tuple[Found, list[Problem]]:
    problems: dict[tuple[str, str], Problem] = {}
    indexes: dict[tuple[object, bool], CodeIndex] = {}
    passes: list[Pass] = []
    for rule in rules:
        check = _check(rule)
        floor = rule.floor.get(profile, "low")
        index = CodeIndex()
        if check.states is not None:
            states, proven = check.states(rule.params), floor == "high"
            if (states, proven) not in indexes:
                wanted = [module for module in modules if _shown(module, check, floor)]
                indexes[states, proven], failed = gather_index(wanted, states, jobs, proven)
                problems.update({(problem.path, problem.reason): problem for problem in failed})
            index = indexes[states, proven]
        shape = check.shape(rule.params, index, floor) if check.shape is not None else None
        if check.shape is None or shape is not None:
            passes.append(Pass(rule, index, shape))
    matches: Found = []
    sizes = [len(module.source.data) for module in modules]
    for found, failed in spread(partial(_judge, passes, profile), modules, sizes, jobs):
        matches.extend((passes[number].rule, match) for number, match in found)
        problems.update({(problem.path, problem.reason): problem for problem in failed})
    return matches, list(problems.values())


@lru_cache(maxsize=64)
def _check_named(name: str) -> CodeCheck[Any]:
    return next(check for check in CHECKS if isinstance(check, CodeCheck) and check.name == name)


def _check(rule: Rule) -> CodeCheck[Any]:
    return _check_named(rule.check)


def _shown(module: CodeModule, check: CodeCheck[Any], floor: str) -> bool:
    cap = CAPS.get(module.language, "high")
    return module.language in check.languages and CONFIDENCE_RANK[cap] >= CONFIDENCE_RANK[floor]


def _concerns(part: Pass, module: CodeModule, profile: str) -> bool:
    rule = part.rule
    return _shown(module, _check(rule), rule.floor.get(profile, "low")) and holds(part.shape, module)


def _judge(
    passes: Sequence[Pass], profile: str, modules: Sequence[CodeModule]
) -> list[tuple[list[tuple[int, Match]], list[Problem]]]:
    """What the modules hold that concern a pass, by its number, and what could not be read of them."""
    answers: list[tuple[list[tuple[int, Match]], list[Problem]]] = []
    for module in modules:
        numbers = [number for number, part in enumerate(passes) if _concerns(part, module, profile)]
        if not numbers:
            continue
        reading, cap = Reading(module), CAPS.get(module.language)
        found: list[tuple[int, Match]] = []
        for number in numbers:
            part = passes[number]
            tree = reading.part(part.shape.holds if part.shape is not None else None)
            if tree is None:
                break
            try:
                matches = list(_check(part.rule).run(tree, part.index, part.rule.params))
            except RecursionError:
                reading.too_deep()
                continue
            except Exception as error:  # noqa: BLE001 - a bug of ours in one file never costs the findings of the others
                reason = f"the rule `{part.rule.id}` failed: {type(error).__name__}: {error}"
                reading.problems.append(Problem(module.source.path, reason, "internal"))
                continue
            if cap is not None:
                matches = [replace(match, confidence=cap) for match in matches]
            found.extend((number, match) for match in matches)
        answers.append((found, reading.problems))
    return answers
