"""Runs the code checks: what the index must know of all files first, then each file against it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.checks import CHECKS
from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_checks import index_shape
from auditor.errors import ReadError
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.rules import Rule

ROUNDS = 6  # how far helpers of helpers are followed


def run_code_checks(
    modules: Sequence[CodeModule], rules: Sequence[Rule], jobs: int
) -> tuple[list[tuple[Rule, Match]], list[Problem]]:
    """All matches of the rules in the modules, and the files that could not be parsed."""
    from auditor.checks.code_index import CodeIndex, FileRecord, join, record, wanted_names
    from auditor.syntax.code_tree import CodeTree, parse

    matches: list[tuple[Rule, Match]] = []
    problems: dict[tuple[str, str], Problem] = {}
    trees: dict[str, CodeTree | None] = {}

    def tree_of(module: CodeModule) -> CodeTree | None:
        path = module.source.path
        if path not in trees:
            try:
                trees[path] = parse(module.source, module.language)
            except ReadError as error:
                trees[path] = None
                span = module.source.span(error.offset, error.offset) if error.offset is not None else None
                problems[path, error.reason] = Problem(path, error.reason, "limit" if error.limit else "unread", span)
        return trees[path]

    indexes: dict[object, CodeIndex] = {}
    for rule in rules:
        check = next(check for check in CHECKS if check.name == rule.check)
        if not isinstance(check, CodeCheck):
            continue
        wanted = [module for module in modules if module.language in check.languages]
        index = CodeIndex()
        if check.states is not None:
            states = check.states(rule.params)
            if states not in indexes:
                first = index_shape(states)
                records: dict[str, FileRecord] = {}
                asked: frozenset[str] = frozenset()
                for turn in range(ROUNDS):
                    # First the files that define something; then those that read or write what was found there.
                    names = frozenset() if turn == 0 else wanted_names(records.values()) - asked
                    if turn and not names:
                        break
                    asked |= names
                    words = re.compile(b"|".join(rb"\b" + re.escape(name.encode()) + rb"\b" for name in sorted(names)))
                    for module in wanted:
                        if module.source.path in records:
                            continue
                        if not (first if turn == 0 else words).search(module.source.data):
                            continue
                        tree = tree_of(module)
                        if tree is not None:
                            records[module.source.path] = record(tree, states)
                indexes[states] = join(records.values(), states)
            index = indexes[states]
        pattern = check.shape(rule.params, index) if check.shape is not None else None
        if check.shape is not None and pattern is None:
            continue
        for module in wanted:
            if pattern is not None and not pattern.search(module.source.data):
                continue
            tree = tree_of(module)
            if tree is not None:
                matches.extend((rule, match) for match in check.run(tree, index, rule.params))
    return matches, list(problems.values())
