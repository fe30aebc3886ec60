"""The audit, top to bottom: walk, read, resolve, check, suppress."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from auditor.checks import CHECKS
from auditor.checks.base import AnyCheck, Check, CodeCheck, Match
from auditor.config import Config, IgnoreEntry, PathSettings
from auditor.errors import UsageError
from auditor.model.facts import CodeModule, Fact, FactSet, Gpu, ModelConfig, fact_set
from auditor.model.findings import CONFIDENCE_RANK, Finding, JsonValue, Level, Problem, ScanResult, Stats
from auditor.model.records import dataclass, field, replace
from auditor.model.rules import Rule
from auditor.model.spans import Position, Span
from auditor.nearest import hint
from auditor.reading import FileResult, Plan, index, modules_of, read_files
from auditor.rulebook import load_rules, with_params
from auditor.sources import Sources
from auditor.suppress import Ignore, config_ignores, suppress, suppress_by_config
from auditor.walk import LANGUAGES, git_top, walk
from auditor.watched import watched

if TYPE_CHECKING:
    from auditor.cache import FactCache

_RAISED: dict[str, Level] = {"note": "warning", "warning": "error", "error": "error"}
_RANK = {"note": 0, "warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to audit: the paths as given, the settings, how many processes at most, and the rules (all by default).
    `cached`: what an earlier audit of the same tree found out may be used, and is kept for the next."""

    paths: tuple[str, ...] = (".",)
    config: Config = field(default_factory=Config)
    jobs: int = 1
    rules: tuple[Rule, ...] | None = None
    today: date = field(default_factory=date.today)
    cached: bool = False


def scan(request: ScanRequest) -> ScanResult:
    """The whole audit of the given paths. Raises `UsageError` for a path or a rule that does not exist."""
    rules = chosen_rules(request)
    facts, results, problems, sources, walked = gather(request, rules)
    notes = list(walked.notes)
    whole_tree = any(os.path.isdir(path) for path in request.paths)
    matches, more = _run_checks(facts, rules, whole_tree, notes)
    problems += more
    written = [result.path for result in results if result.modules]
    modules = modules_of(results, {path: sources[path] for path in written if path in sources})
    problems += [Problem(path, _GONE, "unread") for path in written if path not in sources]
    if modules and any(isinstance(_check(rule), CodeCheck) for rule in rules):
        from auditor.checks.code_run import run_code_checks

        judged, profile = shown(rules, request.config.profile), request.config.profile
        cache = _cache(request, walked.root, modules, judged)
        code, more = run_code_checks(modules, judged, request.jobs, profile, cache)
        if cache is not None:
            cache.save()
        matches += code
        problems += more
    ignores = [ignore for result in results for ignore in result.ignores]
    known = {rule.id for rule in request.rules or load_rules()}
    ignores, malformed = _judge_ignores(ignores, known)
    problems += malformed
    matches += _unread(rules, problems, sources)
    findings = findings_of(matches, request.config.profile)
    findings, unused = suppress(findings, ignores)
    spoken = _unused(rules, unused) + _malformed(rules, malformed)
    if request.config.ignores or request.config.paths:
        silenced = config_ignores(request.config, walked.root)
        findings, idle, expired = suppress_by_config(findings, silenced, request.today)
        spoken += _config_ignores(rules, idle if whole_tree else [], expired, walked.root, sources, notes)
    findings += findings_of(spoken, request.config.profile)
    findings, more = _still_there(findings, sources)
    problems += more
    findings.sort(key=lambda finding: finding.sort_key)
    problems.sort(key=lambda problem: (problem.path, problem.span.start.offset if problem.span else -1, problem.reason))
    prefix = _prefix(walked.root)
    findings = [replace(finding, prefix=prefix) for finding in findings] if prefix else findings
    stats = Stats(walked.files, sum(result.read for result in results), tuple(notes))
    return ScanResult(tuple(findings), tuple(problems), facts, stats, sources, prefix, whole_tree)


CACHED_BYTES = 2_000_000  # of source files; reading and writing a cache costs more than it spares for less


def _cache(request: ScanRequest, root: str, modules: Sequence[CodeModule], rules: Sequence[Rule]) -> FactCache | None:
    """Where the answers of the code rules are kept, on a tree that is large enough for it to be of use."""
    if not request.cached or sum(len(module.source.data) for module in modules) < CACHED_BYTES:
        return None
    from auditor.cache import cache_of

    return cache_of(root, request.paths, request.config.profile, tuple((rule.id, rule.params) for rule in rules))


_GONE = "went away while the audit ran"


def _still_there(findings: Sequence[Finding], sources: Sources) -> tuple[list[Finding], list[Problem]]:
    """The findings that can be shown: a file that a worker process read may be gone by now. Such files are problems."""
    gone = sorted({finding.span.path for finding in findings if finding.span.path not in sources})
    kept = [
        replace(
            finding,
            related=tuple(related for related in finding.related if related.span.path in sources),
            flow=tuple(related for related in finding.flow if related.span.path in sources),
            edits=tuple(edit for edit in finding.edits if edit.span.path in sources),
        )
        for finding in findings
        if finding.span.path in sources
    ]
    return kept, [Problem(path, _GONE, "unread") for path in gone]


def _prefix(root: str) -> str:
    """From the repository's root to the root of the scan; links on the way there are followed, as git does."""
    root = os.path.realpath(root)
    top = git_top(root)
    return "" if top is None or top == root else os.path.relpath(root, top).replace(os.sep, "/") + "/"


def gather(
    request: ScanRequest, rules: Sequence[Rule]
) -> tuple[FactSet, list[FileResult], list[Problem], Sources, Any]:
    """The facts of the tree, resolved, and what it took to get them: the first half of an audit."""
    plan = plan_of(rules, request.rules or load_rules())
    walked = walk(
        request.paths,
        index(),
        wanted=frozenset(LANGUAGES) if plan.code_needles else frozenset(),
        exclude=request.config.exclude,
        base=request.config.root,
        submodules=request.config.submodules,
    )
    results = read_files(walked.candidates, plan, request.jobs)
    sources = Sources(walked.root)
    for result in results:
        if result.source is not None:
            sources.put(result.source)
    problems = [problem for result in results for problem in result.problems]
    problems += [Problem(path, f"the folder cannot be read: {reason}", "unread") for path, reason in walked.unread]
    facts = fact_set([fact for result in results for fact in result.facts])
    if any(facts):
        from auditor.resolve import resolve

        facts = _assume(watched(resolve(facts, sources)), request.config, walked.root)
    return facts, results, problems, sources, walked


def shown(rules: Iterable[Rule], profile: str) -> list[Rule]:
    """The code rules of which the profile shows anything: source is not searched for what nobody will see."""
    shown = []
    for rule in rules:
        levels = {
            outcome: rule.strict.get(outcome, level) if profile == "strict" else level
            for outcome, level in rule.levels.items()
        }
        if isinstance(_check(rule), CodeCheck) and any(level != "off" for level in levels.values()):
            shown.append(rule)
    return shown


def plan_of(rules: Iterable[Rule], known: Iterable[Rule]) -> Plan:
    """The names and needles that the known rules watch, chosen or not: what a file says does not depend on which rules
    judge it. Source needles are those of the chosen ones."""
    names: set[str] = set()
    needles: set[str] = set()
    code: dict[str, set[bytes]] = {}
    for rule in known:
        names.update(getattr(rule.params, "packages", ()))
        needles.update(getattr(rule.params, "needles", ()))
    for rule in rules:
        check = _check(rule)
        if isinstance(check, CodeCheck):
            for language in check.languages:
                code.setdefault(language, set()).update(check.needles(rule.params))
    return Plan(
        frozenset(names),
        tuple(sorted({name.encode() for name in names | needles})),
        tuple((language, tuple(sorted(found))) for language, found in sorted(code.items())),
    )


def chosen_rules(request: ScanRequest) -> tuple[Rule, ...]:
    """The rules that run: all, or those selected, less those ignored. Raises `UsageError` for an unknown id."""
    rules = request.rules or load_rules()
    known = {rule.id for rule in rules}
    for name in (*request.config.select, *request.config.ignore):
        if name not in known:
            raise UsageError(f"there is no rule `{name}`; {hint(name, known, '`auditor rules` lists them')}")
    selected = set(request.config.select) or known
    chosen = [rule for rule in rules if rule.id in selected and rule.id not in request.config.ignore]
    return tuple(_with_params(rule, request.config.params.get(rule.id)) for rule in chosen)


def _with_params(rule: Rule, params: Mapping[str, Any] | None) -> Rule:
    if not params:
        return rule
    changed = with_params(rule, params)
    if not isinstance(changed, Rule):
        raise UsageError(str(changed))
    return changed


def _check(rule: Rule) -> AnyCheck:
    return next(check for check in CHECKS if check.name == rule.check)


def _assume(facts: FactSet, config: Config, root: str) -> FactSet:
    """What the configuration says of the tree: the accelerator of launches that name none, models of its own."""
    launches = []
    for launch in facts.launches:
        known = launch.gpu
        gpu = config.assume.get("gpu")
        for settings in config.paths:
            if settings.gpu and _matches(settings, launch.span.path, config, root):
                gpu = settings.gpu
        if gpu and (known is None or known.type is None):
            launch = replace(launch, gpu=Gpu(gpu, known.count if known else None, known.span if known else None))
        launches.append(launch)
    nowhere = Position(0, 1, 1)
    models = [
        ModelConfig(name, values, "configuration", Span(config.file or "auditor.toml", nowhere, nowhere))
        for name, values in sorted(config.models.items())
    ]
    return replace(facts, launches=tuple(launches), models=(*facts.models, *models))


def _matches(settings: PathSettings, path: str, config: Config, root: str) -> bool:
    from pathspec import GitIgnoreSpec

    full = os.path.join(root, *path.split("/"))
    name = os.path.relpath(full, config.root or root).replace(os.sep, "/")
    return bool(GitIgnoreSpec.from_lines([settings.match]).match_file(name))


def _run_checks(
    facts: FactSet, rules: Sequence[Rule], whole_tree: bool, notes: list[str]
) -> tuple[list[tuple[Rule, Match]], list[Problem]]:
    matches: list[tuple[Rule, Match]] = []
    problems: list[Problem] = []
    left_out = []
    for rule in rules:
        check = _check(rule)
        if not isinstance(check, Check):
            continue
        if check.whole_tree and not whole_tree:
            left_out.append(rule.id)
            continue
        try:
            matches.extend((rule, match) for match in check.run(facts, rule.params))
        except Exception as error:  # noqa: BLE001 - one failing rule never costs the findings of the others
            reason = f"the rule `{rule.id}` failed: {type(error).__name__}: {error}"
            problems.append(Problem(rule.path, reason, "internal"))
    if left_out and any(facts):
        notes.append(f"not run on single files, because they compare files: {', '.join(left_out)}")
    return matches, problems


def findings_of(matches: Iterable[tuple[Rule, Match]], profile: str) -> list[Finding]:
    """Matches as findings: level by rule and profile, the message filled in, the ordinal of equals counted."""
    shown = []
    for rule, match in matches:
        level = level_of(rule, match, profile)
        confidence = min(rule.confidence, match.confidence or rule.confidence, key=lambda word: CONFIDENCE_RANK[word])
        floor = rule.floor.get(profile, "low")
        if level is not None and CONFIDENCE_RANK[match.confidence or rule.confidence] >= CONFIDENCE_RANK[floor]:
            shown.append((rule, match, level, match.confidence or confidence))
    shown.sort(key=lambda entry: (entry[1].span, entry[0].id, entry[1].subject, entry[1].outcome))
    counts: Counter[tuple[str, ...]] = Counter()
    findings = []
    for rule, match, level, confidence in shown:
        key = (rule.id, match.span.path, rule.check, match.subject, match.scope)
        counts[key] += 1
        properties: dict[str, JsonValue] = {"outcome": match.outcome, **match.properties}
        findings.append(
            Finding(
                rule=rule.id,
                outcome=match.outcome,
                level=level,
                confidence=confidence,
                message=rule.messages[match.outcome].format_map(_Values(match.values)),
                span=match.span,
                identity=(rule.check, match.subject, match.scope, str(counts[key])),
                remedy=match.remedy if match.remedy is not None else rule.remedy,
                related=match.related,
                flow=match.flow,
                properties=properties,
                edits=match.edits,
            )
        )
    return findings


class _Values(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return f"({key} unknown)"


def level_of(rule: Rule, match: Match, profile: str) -> Level | None:
    """The level of one match: the rule's for its outcome, lowered where the match says so, raised under `strict`."""
    base = rule.levels[match.outcome]
    if profile == "strict":
        special = rule.strict.get(match.outcome)
        if special is not None:
            base = special
            return None if base == "off" else base
    if base == "off":
        return None
    if match.level is not None and _RANK[match.level] < _RANK[base]:
        base = match.level
    return _RAISED[base] if profile == "strict" else base


def _judge_ignores(ignores: Sequence[Ignore], known: set[str]) -> tuple[list[Ignore], list[Problem]]:
    good, problems = [], []
    for ignore in ignores:
        unknown = [name for name in ignore.rules if name not in known]
        error = ignore.error or (f"the ignore names a rule that does not exist: `{unknown[0]}`" if unknown else "")
        if error:
            reason = f"{error} at line {ignore.span.start.line}"
            problems.append(Problem(ignore.span.path, reason, "unread", ignore.span))
        if not ignore.error and len(unknown) < len(ignore.rules):
            good.append(ignore)
    return good, problems


def _unread(rules: Sequence[Rule], problems: Sequence[Problem], sources: Sources) -> list[tuple[Rule, Match]]:
    rule = next((rule for rule in rules if rule.check == "unread-evidence"), None)
    if rule is None:
        return []
    matches = []
    for problem in problems:
        if not problem.evidence or (problem.path not in sources and problem.span is None):
            continue
        span = problem.span
        if span is None or span.start == span.end:
            source = sources[problem.path]
            line = span.start.line if span is not None else 1
            first = source.line_starts[line - 1]
            span = source.span(first, first + len(source.line_text(line)))
        matches.append((rule, Match("unread", span, subject="file", values={"reason": problem.reason})))
    return matches


def _unused(rules: Sequence[Rule], ignores: Sequence[Ignore]) -> list[tuple[Rule, Match]]:
    rule = next((rule for rule in rules if rule.check == "unused-ignore"), None)
    active = {rule.id for rule in rules}
    if rule is None:
        return []
    return [
        (
            rule,
            Match(
                "unused",
                ignore.span,
                ",".join(ignore.rules),
                values={"rules": ", ".join(ignore.rules), "reason": ignore.reason},
            ),
        )
        for ignore in ignores
        if active.issuperset(ignore.rules)
    ]


def _malformed(rules: Sequence[Rule], problems: Sequence[Problem]) -> list[tuple[Rule, Match]]:
    rule = next((rule for rule in rules if rule.check == "unused-ignore"), None)
    return [
        (rule, Match("malformed", problem.span, "malformed", values={"reason": problem.reason, "rules": ""}))
        for problem in problems
        if rule is not None and problem.span is not None
    ]


def _config_ignores(
    rules: Sequence[Rule],
    idle: Sequence[IgnoreEntry],
    expired: Sequence[IgnoreEntry],
    root: str,
    sources: Sources,
    notes: list[str],
) -> list[tuple[Rule, Match]]:
    """Entries of the configuration that silence nothing: findings where the file is part of the tree, else notes."""
    rule = next((rule for rule in rules if rule.check == "unused-ignore"), None)
    active = {rule.id for rule in rules}
    found = []
    for outcome, entries in (("unused", idle), ("expired", expired)):
        for entry in entries:
            if entry.rule and entry.rule not in active:
                continue
            file, _, line = entry.place.rpartition(":")
            path = os.path.relpath(file, root).replace(os.sep, "/")
            values: dict[str, JsonValue] = {"rules": entry.rule or "any rule", "until": str(entry.until)}
            if rule is None or path.startswith("../") or path not in sources:
                notes.append(f"{outcome} ignore at {path}:{line}")
                continue
            source = sources[path]
            start = source.line_starts[int(line) - 1]
            span = source.span(start, start + len(source.line_text(int(line)).rstrip()))
            found.append((rule, Match(outcome, span, entry.rule or entry.path, values=values)))
    return found


def all_facts(facts: FactSet) -> list[Fact]:
    """The facts in order of path, line and column."""
    return sorted(facts, key=lambda fact: (fact.span, type(fact).__name__))
