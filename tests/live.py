"""What the tests of the live commands share: running a command against test engines, and reading its report."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from auditor.cli import main
from auditor.model.records import dataclass
from tests.engine import Cluster, Faults, Running, serve

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file")


@dataclass(frozen=True)
class Run:
    """One run of a command: exit code, JSON report (empty when there is none), both streams."""

    code: int
    report: dict[str, Any]
    out: str
    err: str

    def status(self, identifier: str) -> set[str]:
        """The statuses that a check ended with, over all subjects."""
        return {one["status"] for one in self.report.get("results", ()) if one["id"] == identifier}

    def failed(self) -> set[str]:
        """The checks that failed."""
        return {one["id"] for one in self.report.get("results", ()) if one["status"] == "fail"}

    def undecided(self) -> set[str]:
        """The checks that could not be decided."""
        return {one["id"] for one in self.report.get("results", ()) if one["status"] == "undecided"}


def run(*arguments: str) -> Run:
    """Run `auditor` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*arguments])
    text = out.getvalue()
    report = json.loads(text) if text.startswith("{") else {}
    return Run(code, report, text, err.getvalue())


@dataclass(frozen=True)
class Served:
    """A cluster with its addresses."""

    cluster: Cluster
    front: Running
    prefill: Running
    decode: Running


@contextmanager
def served(
    cluster: Cluster,
    front: Faults | None = None,
    prefill: Faults | None = None,
    decode: Faults | None = None,
) -> Iterator[Served]:
    """All roles of a cluster on loopback, each with its own faults."""
    with ExitStack() as stack:
        roles = [
            stack.enter_context(serve(cluster, role, faults))
            for role, faults in (("front", front), ("prefill", prefill), ("decode", decode))
        ]
        yield Served(cluster, *roles)


def words(arguments: Sequence[str], where: Served) -> list[str]:
    """Arguments with `{front}`, `{prefill}` and `{decode}` filled in."""
    return [
        word.format(front=where.front.url, prefill=where.prefill.url, decode=where.decode.url) for word in arguments
    ]
