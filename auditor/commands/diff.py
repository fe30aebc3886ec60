"""`auditor diff`: what changed between two revisions that moves the KV pool or the engine's version."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.commands.common import FAIL_ON, add_output, document_stream, with_options
from auditor.config import Config, load_config
from auditor.errors import UsageError
from auditor.model.records import dataclass, replace
from auditor.revision_config import committed_config, judged_by, judgement

if TYPE_CHECKING:
    from auditor.hidden import Compared
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
    parser.add_argument(
        "--config", metavar="FILE", help="the configuration of both sides; by default each revision's own"
    )
    add_output(parser, ("terminal", "json", "markdown"))


def run(options: argparse.Namespace) -> int:
    """Audit both revisions and compare them."""
    from auditor.changes import changes_between
    from auditor.report import changes as report
    from auditor.revisions import open_repository

    repository = open_repository(options.repository)
    base, head = _ends(repository, options.base, options.head)
    with tempfile.TemporaryDirectory(prefix="auditor-diff-") as work:
        sides = []
        for name, commit in (("base", base), ("head", head)):
            folder = Path(work, name)
            folder.mkdir()
            sides.append(_side(repository, commit, folder, options))
        compared = _compared(sides[0], sides[1])
    changes = changes_between(compared, base, head, options.worse_from)
    writers = {"terminal": report.write_terminal, "json": report.write_json, "markdown": report.write_markdown}
    with document_stream(options.output) as stream:
        writers[options.format](changes, stream)
    if any(problem.kind == "internal" for result in (compared.old, compared.new) for problem in result.problems):
        return 2
    return 1 if changes.worse else 0


@dataclass(frozen=True, slots=True)
class _Side:
    """One revision: where its files were put, and what its own configuration says."""

    folder: Path
    config: Config  # its `root` is relative to the top of the tree


def _side(repository: Repository, commit: str, folder: Path, options: argparse.Namespace) -> _Side:
    """The files of one revision that readers may want, in a folder of their own, and the configuration of that
    revision: a change of the configuration is a change of the tree."""
    from auditor.reading import index
    from auditor.rulebook import load_rules
    from auditor.scan import ScanRequest, chosen_rules

    top = repository.top() or os.path.abspath(options.repository)
    if options.config is None:
        found = committed_config(repository, commit, top, options.repository)
    else:
        found = load_config(options.config)
    config = with_options(found, options)
    config = _from_top(config, os.path.realpath(top))
    judged = {rule.id for rule in chosen_rules(ScanRequest(config=config)) if rule.family in FAMILIES}
    names = index()
    repository.export(commit, folder, lambda path: bool(names.readers(path)), _keep(load_rules()))
    left_out = tuple(rule.id for rule in load_rules() if rule.id not in judged)
    return _Side(folder, replace(config, select=(), ignore=left_out))


def _from_top(config: Config, top: str) -> Config:
    """The configuration with its places counted from the top of the tree, which stands elsewhere for the audit."""
    if config.root is None:
        return config
    ignores = []
    for entry in config.ignores:
        file, _, line = entry.place.rpartition(":")
        ignores.append(replace(entry, place=f"{os.path.relpath(os.path.realpath(file), top)}:{line}"))
    return replace(config, root=os.path.relpath(os.path.realpath(config.root), top), ignores=tuple(ignores))


def _compared(base: _Side, head: _Side) -> Compared:
    """Both audits; where the configurations judge differently, also each tree as the other one would judge it."""
    from auditor.hidden import Compared
    from auditor.rulebook import load_rules

    if all(len(side.config.ignore) == len(load_rules()) for side in (base, head)):
        raise UsageError(f"no rule of the families {' and '.join(FAMILIES)} is left to judge by")
    old, new = _audit(base, base.config), _audit(head, head.config)
    if judgement(base.config) == judgement(head.config):
        return Compared(old, new, old, new, head.config)
    return Compared(
        old,
        new,
        _audit(base, judged_by(base.config, head.config)),
        _audit(head, judged_by(head.config, base.config)),
        head.config,
    )


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


def _audit(side: _Side, config: Config) -> ScanResult:
    """The audit of one revision, under its own configuration or another one, whose patterns are relative to `root`."""
    from auditor.scan import ScanRequest, scan

    if config.root is not None:
        config = replace(config, root=str(side.folder / config.root))
    result = scan(ScanRequest((str(side.folder),), config))
    for finding in result.findings:
        result.sources[finding.span.path]  # read while the folder is there
    return result


def _keep(rules: tuple[Rule, ...]) -> Callable[[str, bytes], bool]:
    """Whether a file says anything to one of its readers: the same needles as those of a scan."""
    from auditor.decode import utf8_of
    from auditor.reading import index
    from auditor.rulebook import load_rules
    from auditor.scan import plan_of

    watched, names = plan_of(rules, load_rules()).needles, index()

    def keep(path: str, data: bytes) -> bool:
        low = utf8_of(data).lower()
        if any(needle in low for needle in watched):
            return True
        own = [reader.needles for reader in names.readers(path) if reader.needles is not None]
        return any(not needles or any(needle in low for needle in needles) for needles in own)

    return keep
