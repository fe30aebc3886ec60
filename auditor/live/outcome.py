"""What a live check says: single results, the verdict over them, and the exit code of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from auditor.model.findings import JsonValue
from auditor.model.records import dataclass, field

Status = Literal["pass", "fail", "undecided", "note"]
Verdict = Literal["pass", "fail", "undecided"]
Unknown = Literal["pass", "fail"]

SCHEMA_VERSION = 1
EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_UNDECIDED = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was looked at. `id` is permanent (`version`, `pool`, ...), `subject` the worker, bucket or probe
    that it speaks of (empty for all together), `data` the figures behind the message. A `note` never moves the verdict.
    """

    id: str
    status: Status
    message: str
    subject: str = ""
    data: Mapping[str, JsonValue] = field(default_factory=dict)

    def document(self) -> dict[str, JsonValue]:
        """The result as a JSON object."""
        return {
            "id": self.id,
            "status": self.status,
            "subject": self.subject,
            "message": self.message,
            "data": dict(self.data),
        }


def verdict(results: Iterable[Result]) -> Verdict:
    """`fail` if anything failed; else `undecided` if anything is, or if nothing passed at all; else `pass`."""
    seen = {result.status for result in results}
    if "fail" in seen:
        return "fail"
    if "undecided" in seen or "pass" not in seen:
        return "undecided"
    return "pass"


def exit_code(outcome: Verdict, unknown: Unknown | None) -> int:
    """The exit code of a verdict; `unknown` says what an undecided one counts as, `None` keeps it apart."""
    if outcome == "undecided" and unknown is not None:
        outcome = unknown
    return {"pass": EXIT_PASS, "fail": EXIT_FAIL, "undecided": EXIT_UNDECIDED}[outcome]
