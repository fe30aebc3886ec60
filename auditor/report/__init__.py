"""The reporters: each turns one `ScanResult` into one document, reads no files and decides nothing."""

from __future__ import annotations

import importlib
from typing import TextIO

from auditor.model.findings import ScanResult
from auditor.model.records import dataclass
from auditor.model.rules import Rule


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a reporter may know besides the result: the rules that ran, the level that fails, how wide and colourful
    the terminal is, whether suppressed findings are wanted where a format leaves them out."""

    rules: tuple[Rule, ...] = ()
    fail_on: str = "error"
    width: int | None = None
    colour: bool | None = None
    quiet: bool = False
    show_suppressed: bool = False
    category: str = ""


@dataclass(frozen=True, slots=True)
class Reporter:
    """One output format; `module` holds `write(result, stream, options)`."""

    name: str
    module: str

    def write(self, result: ScanResult, stream: TextIO, options: ReportOptions) -> None:
        """Write the document; imports the reporter's module."""
        importlib.import_module(self.module).write(result, stream, options)


REPORTERS: tuple[Reporter, ...] = (
    Reporter("terminal", "auditor.report.terminal"),
    Reporter("json", "auditor.report.json_document"),
    Reporter("sarif", "auditor.report.sarif"),
    Reporter("github", "auditor.report.github"),
    Reporter("markdown", "auditor.report.markdown"),
)
