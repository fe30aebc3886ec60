"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def whole_file(path: str, mode: int | None = None) -> Iterator[TextIO]:
    """A stream whose text takes the place of the file when the block ends, and not when it raises. Raises `OSError`.

    A link is written through, not replaced; so are devices and pipes (`/dev/null`, `/dev/stdout`, a process
    substitution), which a rename would turn into plain files. `mode` is that of a new file, by default what the
    process's mask leaves.
    """
    target = os.path.realpath(path)
    try:
        known = os.stat(target)
    except FileNotFoundError:
        known = None
    if known is not None and not stat.S_ISREG(known.st_mode) and not stat.S_ISDIR(known.st_mode):
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    if known is not None and stat.S_ISDIR(known.st_mode):
        raise IsADirectoryError(21, "is a folder", path)
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".auditor-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        rights = stat.S_IMODE(known.st_mode) if known is not None else 0o666 & ~_umask() if mode is None else mode
        os.chmod(draft, rights)
        os.replace(draft, target)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
