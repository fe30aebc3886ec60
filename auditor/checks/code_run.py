"""Runs the code checks: what they collect over all files first, then each file against it."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.checks import CHECKS
from auditor.checks.base import CodeCheck, Match
from auditor.errors import ReadError
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.rules import Rule


def run_code_checks(
    modules: Sequence[CodeModule], rules: Sequence[Rule], jobs: int
) -> tuple[list[tuple[Rule, Match]], list[Problem]]:
    """All matches of the rules in the modules, and the files that could not be parsed."""
    matches: list[tuple[Rule, Match]] = []
    problems: dict[tuple[str, str], Problem] = {}
    for rule in rules:
        check = next(check for check in CHECKS if check.name == rule.check)
        if not isinstance(check, CodeCheck):
            continue
        wanted = [module for module in modules if module.language in check.languages]
        collected = {}
        for module in wanted:
            if check.collect is not None:
                collected[module.source.path] = check.collect(module.source, rule.params)
        for module in wanted:
            try:
                matches.extend((rule, match) for match in check.run(module.source, collected, rule.params))
            except ReadError as error:
                span = module.source.span(error.offset, error.offset) if error.offset is not None else None
                path = module.source.path
                problems[path, error.reason] = Problem(path, error.reason, "unread", span)
    return matches, list(problems.values())
