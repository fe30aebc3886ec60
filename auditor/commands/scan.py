"""`auditor scan`: the audit."""

from __future__ import annotations

import argparse
import sys

from auditor.commands.common import FAIL_ON, add_output, add_paths, config_of, document_stream, jobs_of
from auditor.model.findings import LEVELS, ScanResult
from auditor.report import REPORTERS, ReportOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `scan`."""
    add_paths(parser)
    add_output(parser, tuple(reporter.name for reporter in REPORTERS))
    parser.add_argument(
        "--fail-on", choices=FAIL_ON, help="the least level that makes the exit code 1 (default: error)"
    )
    parser.add_argument("--show-suppressed", action="store_true", help="show suppressed findings in every format")


def run(options: argparse.Namespace) -> int:
    """Audit, report, and say by the exit code whether something counts."""
    from auditor.quick import remember
    from auditor.rulebook import load_rules
    from auditor.scan import ScanRequest, plan_of, scan

    config = config_of(options)
    result = scan(ScanRequest(tuple(options.paths) or (".",), config, jobs_of(options)))
    reporter = next(reporter for reporter in REPORTERS if reporter.name == options.format)
    report = ReportOptions(
        rules=load_rules(), fail_on=config.fail_on, quiet=options.quiet, show_suppressed=options.show_suppressed
    )
    with document_stream(options.output) as stream:
        reporter.write(result, stream, report)
    if not options.no_cache:
        plan = plan_of(load_rules(), load_rules())
        remember(plan.needles, dict(plan.code_needles))
    for problem in result.problems:
        if problem.kind == "internal":
            sys.stderr.write(f"auditor: {problem.path}: {problem.reason}; please report this\n")
    return exit_code(result, config.fail_on)


def exit_code(result: ScanResult, fail_on: str) -> int:
    """2 when a part of the audit failed, 1 when a finding is at or above the level that fails, else 0."""
    if any(problem.kind == "internal" for problem in result.problems):
        return 2
    if fail_on == "never":
        return 0
    counted = LEVELS[: LEVELS.index(fail_on) + 1]
    return 1 if any(finding.level in counted for finding in result.active) else 0
