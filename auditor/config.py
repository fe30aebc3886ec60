"""What the user says about the tree and about the audit: `[tool.auditor]` in pyproject.toml, or auditor.toml.

Looked for in the scanned folder and upwards to the repository's root; the nearest file counts, `extends` joins others.
Every wrong key, type and value is an error with path, line, column and the nearest right spelling.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NoReturn

from auditor.errors import ConfigError
from auditor.model.records import dataclass, field, replace

NAMES = ("auditor.toml", "pyproject.toml")
PROFILES = ("default", "strict")
FAIL_ON = ("error", "warning", "note", "never")
MAX_EXTENDS = 8  # files that may extend each other
Reading = Callable[[str], bytes]  # the bytes of a file by its path; raises OSError


@dataclass(frozen=True, slots=True)
class IgnoreEntry:
    """One `[[ignore]]`: findings of `rule` (all rules when empty) in files that match `path`, with a reason, until a
    date that is included. `place` is where it stands."""

    path: str
    rule: str
    reason: str
    until: date | None
    place: str


@dataclass(frozen=True, slots=True)
class PathSettings:
    """One `[[path]]`: what holds for the files that match `match` only."""

    match: str
    gpu: str | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one audit. `assume` says what the tree does not (`gpu`); `params` overrides rule parameters by
    rule id, as texts and lists of texts; `models` gives configurations of models that no catalogue has; empty tuples
    and mappings stand for "as the tool does by itself". `file` is where the settings came from, `root` its folder,
    `said` the keys that stand there (what is said wins over an extended file, even where it is the default)."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    profile: str = "default"
    fail_on: str = "error"
    exclude: tuple[str, ...] = ()
    submodules: bool = False
    baseline: str | None = None
    assume: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    paths: tuple[PathSettings, ...] = ()
    ignores: tuple[IgnoreEntry, ...] = ()
    file: str | None = None
    root: str | None = None
    said: frozenset[str] = frozenset()


def read_bytes(path: str) -> bytes:
    """The bytes of a file on disk. Raises `OSError`."""
    with open(path, "rb") as stream:
        return stream.read()


def find_config(start: str) -> str | None:
    """The configuration file that holds for a folder: in it or above it, up to the repository's root."""
    folder = os.path.abspath(start if os.path.isdir(start) else os.path.dirname(start) or ".")
    while True:
        found = config_in(folder)
        if found is not None:
            return found
        parent = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, ".git")) or parent == folder:
            return None
        folder = parent


def config_in(folder: str, read: Reading = read_bytes) -> str | None:
    """The configuration file of one folder; a file that is there and cannot be read counts, so that loading it says
    so."""
    for name in NAMES:
        path = os.path.join(folder, name)
        try:
            data = read(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        except OSError:
            if name == "pyproject.toml":
                continue  # every project has one: it need not speak of us
            return path
        if name != "pyproject.toml" or _SPEAKS.search(data):
            return path
    return None


_SPEAKS = re.compile(rb"""tool["']?[ \t]*\.[ \t]*["']?auditor\b|(?s:\[[ \t]*tool[ \t]*\].*auditor)""")


def load_config(path: str, _seen: tuple[str, ...] = (), read: Reading = read_bytes) -> Config:
    """The settings of one file and of those that it extends, read by `read`. Raises `ConfigError`."""
    from auditor.decode import decode
    from auditor.errors import ReadError
    from auditor.syntax import toml_spans

    full = os.path.abspath(path)
    if full in _seen or len(_seen) >= MAX_EXTENDS:
        raise ConfigError(f"{path}: `extends` leads in a circle, or through more than {MAX_EXTENDS} files")
    try:
        source, _ = decode(path, read(path))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration `{path}`: {error.strerror}") from None
    try:
        plain = toml_spans.check(source)
        root = toml_spans.parse(source)
    except ReadError as error:
        where = source.position(error.offset) if error.offset is not None else None
        place = f"{path}:{where.line}:{where.column}" if where else path
        raise ConfigError(f"{place}: {error.reason}") from None
    from auditor.config_reading import read_settings

    return read_settings(plain, root, source, path, full, _seen, read)


def fail(path: str, line: int, column: int, message: str) -> NoReturn:
    """Raise the error of one place."""
    raise ConfigError(f"{path}:{line}:{column}: {message}")


def joined(base: Config, own: Config) -> Config:
    """Two configurations, the nearer one on top: single values replace, lists and tables add up."""
    from auditor.rule_params import merged

    return replace(
        own,
        select=own.select or base.select,
        ignore=tuple(dict.fromkeys((*base.ignore, *own.ignore))),
        profile=own.profile if "profile" in own.said else base.profile,
        fail_on=own.fail_on if "fail-on" in own.said else base.fail_on,
        exclude=(*base.exclude, *own.exclude),
        submodules=own.submodules if "submodules" in own.said else base.submodules,
        baseline=own.baseline or base.baseline,
        assume={**base.assume, **own.assume},
        params=merged(base.params, own.params),
        models={**base.models, **own.models},
        paths=(*base.paths, *own.paths),
        ignores=(*base.ignores, *own.ignores),
        said=base.said | own.said,
    )
