"""Command-line options that the three live commands share, and what they make of them."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from auditor.errors import UsageError

HEADROOM = 1.25  # context windows that the pool must hold; the rule `kv-pool-below-context` asks for as many
TOKEN_VARIABLE = "AUDITOR_TOKEN"  # noqa: S105 (the name of a variable, not a token)


def positive(text: str) -> float:
    """A finite number above zero."""
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def seconds(text: str) -> float:
    """A finite number of seconds, zero included."""
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def tokens(text: str) -> int:
    """A positive whole number; `_` and `,` may group digits."""
    try:
        value = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number") from None
    if value <= 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def factor(text: str) -> float:
    """A finite number of at least 1."""
    value = _number(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def share(text: str) -> float:
    """A number between 0 and 1."""
    value = _number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("must lie above 0 and not above 1")
    return value


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """`--format`, `--output`, `--quiet` and `--unknown`."""
    parser.add_argument("--format", choices=("terminal", "json"), default="terminal", help="the form of the report")
    parser.add_argument("--output", metavar="FILE", help="write the report to FILE instead of standard output")
    parser.add_argument("--quiet", action="store_true", help="print nothing but the report")
    parser.add_argument(
        "--unknown", choices=("pass", "fail"), help="what an undecided check counts as (default: its own exit code, 3)"
    )


def add_access_options(parser: argparse.ArgumentParser, timeout: float) -> None:
    """How to reach the engine: time limit, token, CA file."""
    parser.add_argument(
        "--timeout",
        type=positive,
        default=timeout,
        metavar="SECONDS",
        help=f"time limit of one request, answer included (default {timeout:g})",
    )
    parser.add_argument(
        "--token-env",
        metavar="NAME",
        default=None,
        help=f"take the bearer token from this environment variable (default {TOKEN_VARIABLE}, if set)",
    )
    parser.add_argument("--token-file", metavar="FILE", help="take the bearer token from this file")
    parser.add_argument("--ca-file", metavar="FILE", help="trust the CA certificates of this PEM file")


def token(options: argparse.Namespace) -> str | None:
    """The bearer token that the options name; `UsageError` when a named one is not there."""
    if options.token_env is not None and options.token_file is not None:
        raise UsageError("--token-env and --token-file exclude each other")
    if options.token_file is not None:
        try:
            value = Path(options.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"the token file `{options.token_file}` cannot be read") from None
        return _checked(value, f"the token file `{options.token_file}`")
    name = options.token_env or TOKEN_VARIABLE
    value = os.environ.get(name, "").strip()
    if not value:
        if options.token_env is not None:
            raise UsageError(f"the environment variable `{name}` is not set")
        return None
    return _checked(value, f"the environment variable `{name}`")


def _checked(value: str, where: str) -> str:
    if not value:
        raise UsageError(f"{where} is empty")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(f"{where} does not hold a token: it must be one line of printable ASCII without spaces")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError("must be finite")
    return value
