"""`auditor diff`: what changed between two revisions that moves the KV pool or the engine's version."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.commands.common import FAIL_ON, add_output, config_of, document_stream
from auditor.errors import UsageError

if TYPE_CHECKING:
    from auditor.config import Config
    from auditor.model.findings import ScanResult
    from auditor.model.rules import Rule
    from auditor.revisions import Repository

FAMILIES = ("version", "capacity")
DESCRIPTION = """\
Compares two revisions by the git objects; the work tree is not touched and nothing is fetched. A change of
quantization, parallelism, graph sizes, static fraction, context length, KV type, model, image or GPU moves the KV pool:
each is a reason to run the gate again. BASE...HEAD compares with the last common commit, as a pull request does.
Exit code: 0 exposure did not get worse, 1 it did, 2 not done."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `diff`."""
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("base", metavar="BASE", help="the revision before, or BASE..HEAD, or BASE...HEAD")
    parser.add_argument("head", metavar="HEAD", nargs="?", help="the revision after (default: HEAD)")
    parser.add_argument("--repository", metavar="FOLDER", default=".", help="a folder inside the git repository")
    parser.add_argument(
        "--fail-on",
        dest="worse_from",
        choices=FAIL_ON,
        default="warning",
        help="the least level at which a new finding counts as worse (default: warning)",
    )
    parser.add_argument("--select", action="append", metavar="RULE,...", help="judge by these rules only")
    parser.add_argument("--ignore", action="append", metavar="RULE,...", help="judge by all rules but these")
    parser.add_argument("--config", metavar="FILE", help="the configuration; by default that of the repository")
    add_output(parser, ("terminal", "json", "markdown"))


def run(options: argparse.Namespace) -> int:
    """Audit both revisions and compare them."""
    from auditor.changes import changes_between
    from auditor.report import changes as report
    from auditor.revisions import open_repository

    repository = open_repository(options.repository)
    base, head = _ends(repository, options.base, options.head)
    options.paths = [options.repository]
    config = config_of(options)
    with tempfile.TemporaryDirectory(prefix="auditor-diff-") as work:
        results = []
        for name, commit in (("base", base), ("head", head)):
            folder = Path(work, name)
            folder.mkdir()
            results.append(_audit(repository, commit, folder, config))
    changes = changes_between(results[0], results[1], base, head, options.worse_from)
    writers = {"terminal": report.write_terminal, "json": report.write_json, "markdown": report.write_markdown}
    with document_stream(options.output) as stream:
        writers[options.format](changes, stream)
    if any(problem.kind == "internal" for result in results for problem in result.problems):
        return 2
    return 1 if changes.worse else 0


def _ends(repository: Repository, base: str, head: str | None) -> tuple[str, str]:
    """The two commits of `BASE HEAD`, `BASE..HEAD` and `BASE...HEAD`."""
    dots = "..." if "..." in base else ".." if ".." in base else ""
    if dots:
        if head is not None:
            raise UsageError(f"`{base}` names both ends already; `{head}` is one too many")
        first, _, last = base.partition(dots)
        first, last = first or "HEAD", last or "HEAD"
        if dots == "...":
            return repository.merge_base(first, last), repository.commit(last)
        return repository.commit(first), repository.commit(last)
    return repository.commit(base), repository.commit(head or "HEAD")


def _audit(repository: Repository, commit: str, folder: Path, config: Config) -> ScanResult:
    """The audit of one revision, in a folder of its own that holds the files which readers may want."""
    from auditor.reading import index
    from auditor.scan import ScanRequest, chosen_rules, scan

    rules = chosen_rules(ScanRequest(config=config))
    judged = tuple(rule.id for rule in rules if rule.family in FAMILIES)
    if not judged:
        raise UsageError(f"no rule of the families {' and '.join(FAMILIES)} is left to judge by")
    names = index()
    repository.export(commit, folder, lambda path: bool(names.readers(path)), _keep(rules))
    top = repository.top()
    root = getattr(config, "root", None)
    if root is not None and top is not None:
        # patterns of the configuration are relative to its folder; that folder is now below the exported tree
        config = _moved(config, str(folder / os.path.relpath(root, top)))
    result = scan(ScanRequest((str(folder),), replace(config, select=judged, ignore=())))
    for finding in result.findings:
        result.sources[finding.span.path]  # read while the folder is there
    return result


def _moved(config: Config, root: str) -> Config:
    changes: dict[str, Any] = {"root": root}
    return replace(config, **changes)


def _keep(rules: tuple[Rule, ...]) -> Callable[[str, bytes], bool]:
    """Whether a file says anything to one of its readers: the same needles as those of a scan."""
    from auditor.decode import mark_of
    from auditor.reading import index
    from auditor.rulebook import load_rules
    from auditor.scan import plan_of

    watched, names = plan_of(rules, load_rules()).needles, index()

    def keep(path: str, data: bytes) -> bool:
        low = data.lower()
        if mark_of(data) or any(needle in low for needle in watched):
            return True
        own = [reader.needles for reader in names.readers(path) if reader.needles is not None]
        return any(not needles or any(needle in low for needle in needles) for needles in own)

    return keep
