"""The readers: one a file format. Each says what is written in a file, with exact spans, and has no opinion.

The registry below is the whole list, in order: where two readers state the same fact at the same span, the first one is
kept, so formats stand before shapes. A reader's module is imported when a file needs it and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.errors import ReadError
    from auditor.model.facts import Fact
    from auditor.model.spans import SourceFile

    ReadFunction = Callable[[SourceFile], Iterator[Fact | ReadError]]


@dataclass(frozen=True, slots=True)
class Reader:
    """One format. `patterns` are globs on the path relative to the root, in lower case: without a `/` they match the
    file name, with one the end of the path. `needles` are byte strings (lower case; the file is compared in lower
    case) of which the file must hold one; `None` stands for the names that the rules watch, `()` reads always.
    `module` holds `read(source) -> Iterator[Fact]`, which may raise `ReadError` and nothing else, or yield one and go
    on (a bad document among good ones). `reads` and `skips` are the row of the format in docs/formats.md. Raise
    `version` when the output changes: it is part of the cache key.
    """

    name: str
    module: str
    patterns: tuple[str, ...]
    title: str
    reads: str
    skips: str
    needles: tuple[bytes, ...] | None = None
    excludes: tuple[str, ...] = ()
    version: int = 1

    def load(self) -> ReadFunction:
        """The reader's function; imports its module."""
        return importlib.import_module(self.module).read  # type: ignore[no-any-return]


READERS: tuple[Reader, ...] = (
    Reader(
        "requirements",
        "auditor.readers.requirements",
        ("*.txt", "*.in", "*.pip", "*requirements*", "*constraints*", "*requirements*.lock", "requirements/*"),
        "pip requirements and constraints",
        "names, extras, specifiers, markers, URLs, `git+` sources, wheel and sdist names, continuations, hashes",
        "included files (`-r`, `-c`) are read by their own name; local paths",
        excludes=("*.py", "*.toml", "*.md", "*.rst", "*.yaml", "*.yml", "*.json", "*.sh"),
    ),
)
