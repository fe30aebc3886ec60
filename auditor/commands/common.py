"""What several commands share: options, configuration, where the document goes."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from auditor.config import Config, find_config, load_config
from auditor.errors import OutputError, UsageError
from auditor.model.records import replace
from auditor.standard_output import print_text
from auditor.whole_file import whole_file

PROFILES = ("default", "strict")
FAIL_ON = ("error", "warning", "note", "never")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """The paths and the options that say what is looked at."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; the working folder by default")
    parser.add_argument("--config", metavar="FILE", help="read this configuration and look for no other")
    parser.add_argument("--select", action="append", metavar="RULE,...", help="run these rules only")
    parser.add_argument("--ignore", action="append", metavar="RULE,...", help="run all rules but these")
    parser.add_argument(
        "--profile", choices=PROFILES, help="strict: notes become warnings, warnings errors, more rules on"
    )
    parser.add_argument("--submodules", action="store_true", default=None, help="look into git submodules too")
    parser.add_argument("--jobs", type=_jobs, default=None, metavar="N", help="processes at most; all cores by default")
    parser.add_argument("--no-cache", action="store_true", help="keep and use no cached facts")


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...]) -> None:
    """Where the document goes and in which form."""
    parser.add_argument("--format", choices=formats, default="terminal", help="the form of the report")
    parser.add_argument("--output", metavar="FILE", help="write the report there, whole or not at all")
    parser.add_argument("--quiet", action="store_true", help="findings only, nothing about unread files")


def _jobs(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of processes from 1")
    return int(text)


def jobs_of(options: argparse.Namespace) -> int:
    """As many processes as cores, unless the user says otherwise."""
    return options.jobs or os.cpu_count() or 1


def config_of(options: argparse.Namespace) -> Config:
    """The configuration of what is scanned, with what the command line adds and overrides."""
    return with_options(_file_config(options), options)


def with_options(config: Config, options: argparse.Namespace) -> Config:
    """A configuration with what the command line says put over it. Raises `UsageError`."""
    changes: dict[str, object] = {}
    for name in ("select", "ignore"):
        words = [word.strip() for value in getattr(options, name) or () for word in value.split(",")]
        if words:
            if not all(words):
                raise UsageError(f"`--{name}` holds an empty rule name")
            changes[name] = tuple(words)
    for name in ("profile", "fail_on", "submodules"):
        if getattr(options, name, None) is not None:
            changes[name] = getattr(options, name)
    return replace(config, **changes)  # type: ignore[arg-type]


def _file_config(options: argparse.Namespace) -> Config:
    """The settings of `--config FILE`, else of the file that holds for what is scanned."""
    given = getattr(options, "config", None)
    if given is not None:
        return load_config(given)
    paths = getattr(options, "paths", None) or ["."]
    found = find_config(paths[0] if len(paths) == 1 else os.getcwd())
    return load_config(found) if found is not None else Config()


@contextmanager
def document_stream(path: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears whole at the end or not at all. Raises `OutputError`."""
    if path is None:
        stream = io.StringIO()
        stream.isatty = sys.stdout.isatty  # type: ignore[method-assign]
        yield stream
        print_text(stream.getvalue())
        return
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise OutputError(f"cannot write `{path}`: {error.strerror}") from None
