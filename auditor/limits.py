"""The bounds of an audit, in one place. A file that meets one is reported, never skipped in silence."""

from __future__ import annotations

MAX_FILE_BYTES = 32 * 1024 * 1024  # larger than any lockfile seen; a bigger file is listed under `unread`
MAX_CODE_BYTES = 2 * 1024 * 1024  # source for the code checks: a larger file is generated data
BINARY_PROBE_BYTES = 8192  # a NUL byte in here, and no byte-order mark: the file is not text
