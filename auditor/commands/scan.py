"""`auditor scan`: the audit."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from auditor.baseline import Entry, apply_baseline, read_baseline, write_baseline
from auditor.commands.common import FAIL_ON, add_output, add_paths, config_of, document_stream, jobs_of
from auditor.errors import UsageError
from auditor.model.findings import LEVELS, ScanResult
from auditor.model.records import replace
from auditor.report import REPORTERS, ReportOptions
from auditor.visible import visible

MAX_NAMED = 10  # baseline entries that are named in one note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `scan`."""
    add_paths(parser)
    add_output(parser, tuple(reporter.name for reporter in REPORTERS))
    parser.add_argument(
        "--fail-on", choices=FAIL_ON, help="the least level that makes the exit code 1 (default: error)"
    )
    parser.add_argument("--baseline", metavar="FILE", help="findings that stand in this file do not count")
    parser.add_argument("--write-baseline", metavar="FILE", help="write all findings that count to this file")
    parser.add_argument("--category", default="", metavar="WORD", help="category of the SARIF log (`auditor/WORD/`)")
    parser.add_argument("--fix", action="store_true", help="rewrite what is safe to rewrite, then report what is left")
    parser.add_argument("--diff", action="store_true", help="print what --fix would change, as a patch; write nothing")
    parser.add_argument("--show-suppressed", action="store_true", help="show suppressed findings in every format")


def run(options: argparse.Namespace) -> int:
    """Audit, report, and say by the exit code whether something counts."""
    from auditor.quick import remember
    from auditor.rulebook import load_rules
    from auditor.scan import ScanRequest, chosen_rules, plan_of, scan

    if (options.fix or options.diff) and options.write_baseline:
        raise UsageError("--write-baseline keeps findings and --fix takes them away: one at a time")
    config = config_of(options)
    if not chosen_rules(ScanRequest(config=config)):
        raise UsageError("no rule is left to run: what is selected is also ignored")
    options.baseline = options.baseline or config.baseline
    entries = _baseline(options)
    request = ScanRequest(tuple(options.paths) or (".",), config, jobs_of(options), cached=not options.no_cache)
    result = scan(request)
    if options.write_baseline:
        entries = entries or []
        result = _apply(result, entries, options)
        write_baseline(options.write_baseline, result.findings)
        entries = read_baseline(options.write_baseline)
    if entries is not None:
        result = _apply(result, entries, options)
    if result.active:
        from auditor.fixing import with_edits

        result = with_edits(result, load_rules())
        if options.diff or options.fix:
            _say_relock(result)
        if options.fix and not options.diff and _rewrite(result, options):
            result = scan(request)
            if entries is not None:
                result = _apply(result, entries, options)
            result = with_edits(result, load_rules())
    if options.diff:
        return _patch(result, options, config.fail_on)
    reporter = next(reporter for reporter in REPORTERS if reporter.name == options.format)
    report = ReportOptions(
        rules=load_rules(),
        fail_on=config.fail_on,
        quiet=options.quiet,
        show_suppressed=options.show_suppressed,
        category=options.category,
    )
    with document_stream(options.output) as stream:
        reporter.write(result, stream, report)
    if not options.no_cache:
        plan = plan_of(load_rules(), load_rules())
        remember(plan.needles, dict(plan.code_needles))
    for problem in result.problems:
        if problem.kind == "internal":
            sys.stderr.write(visible(f"auditor: {problem.path}: {problem.reason}; please report this") + "\n")
    return exit_code(result, config.fail_on)


def _rewrite(result: ScanResult, options: argparse.Namespace) -> int:
    """Write what is safe to rewrite; how many places were changed."""
    from auditor.fixing import rewrites, write_rewrites
    from auditor.walk import root_of

    found = rewrites(result)
    places = write_rewrites(found, root_of(tuple(options.paths) or (".",)))
    files = f"{len(found)} file{'s' if len(found) != 1 else ''}"
    sys.stderr.write(f"auditor: changed {places} place{'s' if places != 1 else ''} in {files}\n")
    return places


def _patch(result: ScanResult, options: argparse.Namespace, fail_on: str) -> int:
    from auditor.fixing import rewrites, unified

    with document_stream(options.output) as stream:
        stream.writelines(unified(rewrites(result)))
    return exit_code(result, fail_on)


def _say_relock(result: ScanResult) -> None:
    from auditor.fixing import relock_commands

    for command in relock_commands(result):
        sys.stderr.write(visible(f"auditor: locks are not edited, they are made again: {command}") + "\n")


def _baseline(options: argparse.Namespace) -> list[Entry] | None:
    """The entries to apply; a file that is only about to be written may be missing."""
    if not options.baseline:
        return None
    if options.baseline == options.write_baseline and not os.path.exists(options.baseline):
        return None
    return read_baseline(options.baseline)


def _apply(result: ScanResult, entries: Sequence[Entry], options: argparse.Namespace) -> ScanResult:
    """The result with the baseline's findings marked; of a folder, entries that match nothing are named."""
    name = os.path.basename(options.write_baseline or options.baseline)
    findings, left = apply_baseline(result.findings, entries, name)
    notes = result.stats.notes
    left = [entry for entry in left if entry.path.startswith(result.prefix)]  # the others were not looked at
    if left and any(os.path.isdir(path) for path in options.paths or (".",)):
        shown = ", ".join(f"{entry.rule} in {entry.path} (line {entry.line})" for entry in left[:MAX_NAMED])
        more = f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
        count = f"{len(left)} baseline entr{'ies match' if len(left) > 1 else 'y matches'} nothing any more"
        notes = (*notes, f"{count}: {shown}{more}; write the baseline anew")
    return replace(result, findings=tuple(findings), stats=replace(result.stats, notes=notes))


def exit_code(result: ScanResult, fail_on: str) -> int:
    """2 when a part of the audit failed, 1 when a finding is at or above the level that fails, else 0."""
    if any(problem.kind == "internal" for problem in result.problems):
        return 2
    if fail_on == "never":
        return 0
    counted = LEVELS[: LEVELS.index(fail_on) + 1]
    return 1 if any(finding.level in counted for finding in result.active) else 0
