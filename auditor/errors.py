"""The errors that end a command: all are the caller's to mend, all exit with 2, one line each."""

from __future__ import annotations


class AuditorError(Exception):
    """Something about the call, the configuration, the rule files or the output is wrong."""


class UsageError(AuditorError):
    """The command line asks for something that does not exist or cannot be done."""


class ConfigError(AuditorError):
    """The configuration file is wrong; the message carries path, line and column."""


class RuleFileError(AuditorError):
    """A rule file is wrong or missing; the message carries path, line and column."""


class OutputError(AuditorError):
    """The report or the baseline cannot be written."""


class ReadError(Exception):
    """A reader cannot understand its file. Data, not failure: the engine lists the file and goes on.

    `offset` is the character offset at which it went wrong, `None` when it is the file as a whole. `limit` marks a
    bound of ours (size, depth, aliases) and not an error of the file's.
    """

    def __init__(self, reason: str, offset: int | None = None, *, limit: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        self.limit = limit
