"""Runs the code checks: what the index must know of all files first, then each file against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from auditor.checks import CHECKS
from auditor.checks.base import CodeCheck, Match
from auditor.checks.code_checks import admit_shapes, enum_names, index_shapes
from auditor.checks.code_index import CodeIndex, FileRecord, join, record, wanted_names
from auditor.checks.code_words import StateWords
from auditor.errors import ReadError
from auditor.model.facts import CodeModule
from auditor.model.findings import Problem
from auditor.model.rules import Rule
from auditor.syntax.code_tree import CodeTree, parse, parse_matching

TOO_DEEP = "nested too deeply for the code rules"
ROUNDS = 6  # how far helpers of helpers are followed


def run_code_checks(
    modules: Sequence[CodeModule], rules: Sequence[Rule], jobs: int
) -> tuple[list[tuple[Rule, Match]], list[Problem]]:
    """All matches of the rules in the modules, and the files that could not be parsed."""

    matches: list[tuple[Rule, Match]] = []
    problems: dict[tuple[str, str], Problem] = {}
    trees: dict[str, CodeTree | None] = {}

    def part_of(module: CodeModule, patterns: Sequence[re.Pattern[bytes]]) -> CodeTree | None:
        path = module.source.path
        if path in trees:
            return trees[path]
        part = parse_matching(module.source, module.language, patterns, lambda: tree_of(module))
        return tree_of(module) if part is None else part

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
                records = _records(wanted, states, tree_of, part_of, problems)
                indexes[states] = join(records.values(), states)
            index = indexes[states]
        patterns = check.shape(rule.params, index) if check.shape is not None else None
        if check.shape is not None and patterns is None:
            continue
        for module in wanted:
            data = module.source.data
            # The patterns are for Python, the language of large trees.
            python = module.language == "python"
            if python and patterns is not None and not any(pattern.search(data) for pattern in patterns):
                continue
            tree = tree_of(module) if patterns is None else part_of(module, patterns)
            if tree is None:
                continue
            path = module.source.path
            try:
                found = [(rule, match) for match in check.run(tree, index, rule.params)]
                if module.language != "python":
                    # Precision was measured on Python alone: elsewhere only the strict profile shows what is found.
                    found = [(rule, replace(match, confidence="medium")) for _, match in found]
                matches.extend(found)
            except RecursionError:
                problems[path, "depth"] = Problem(path, TOO_DEEP, "limit")
            except Exception as error:  # noqa: BLE001 - a bug of ours in one file never costs the findings of the others
                reason = f"the rule `{rule.id}` failed: {type(error).__name__}: {error}"
                problems[path, reason] = Problem(path, reason, "internal")
    return matches, list(problems.values())


def _records(
    modules: Sequence[CodeModule],
    states: StateWords,
    tree_of: Callable[[CodeModule], CodeTree | None],
    part_of: Callable[[CodeModule, Sequence[re.Pattern[bytes]]], CodeTree | None],
    problems: dict[tuple[str, str], Problem],
) -> dict[str, FileRecord]:
    """The records that the index needs: first the files that define a terminal predicate, then those that write or read
    the fields found there, and those that define the enumerations which tests name."""
    records: dict[str, FileRecord] = {}

    def note(key: str, path: str, tree: CodeTree) -> None:
        try:
            records[key] = record(tree, states)
        except RecursionError:
            problems[path, "depth"] = Problem(path, TOO_DEEP, "limit")

    def add(patterns: Sequence[re.Pattern[bytes]]) -> None:
        for module in modules:
            path, data = module.source.path, module.source.data
            python = module.language == "python"
            if path not in records and (not python or any(pattern.search(data) for pattern in patterns)):
                tree = tree_of(module)
                if tree is not None:
                    note(path, path, tree)

    add(index_shapes(states))
    shapes, member = admit_shapes(states)[1:], enum_names(states)
    enums = {
        name
        for module in modules
        if any(shape.search(module.source.data) for shape in shapes[:2])
        for name in member.findall(module.source.data)
    }
    if enums:
        add((re.compile(rb"(?:class|enum) (?:" + b"|".join(sorted(map(re.escape, enums))) + rb")\b"),))
    asked: frozenset[str] = frozenset()
    for turn in range(ROUNDS):
        names = wanted_names(records.values()) - asked
        if not names:
            break
        asked |= names
        words = b"|".join(re.escape(name.encode()) for name in sorted(names))
        pattern = re.compile(rb"[. ](?:" + words + rb")\b")
        for module in modules:
            path, data = module.source.path, module.source.data
            if path in records or module.language != "python" or not pattern.search(data):
                continue
            tree = part_of(module, (pattern,))
            if tree is not None:
                note(f"{path}#{turn}", path, tree)
    return records
