"""Text to standard output, and what becomes of it when that cannot be written."""

from __future__ import annotations

import os
import sys

from auditor.errors import OutputError


def print_text(text: str) -> None:
    """Write all of it now; what the encoding cannot hold is replaced, so a code page never ends an audit. Raises
    `OutputError` (a full disk), and `BrokenPipeError` where the reader went away."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()
        raise OutputError(f"cannot write the report: {error.strerror}") from None


def drop() -> None:
    """What is still in the buffer goes nowhere: at shutdown the interpreter would try again, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
