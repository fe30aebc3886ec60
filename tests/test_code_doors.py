"""Where a refused thing is stopped by a door that asks for the second verdict, a test beside it weighs less."""

from __future__ import annotations

import pytest

from tests.test_code_rules import findings, module

REQUEST = """class Reason: ...


class Req:
    def __init__(self):
        self.finished_reason = None
        self.to_finish = None

    def refuse(self, why):
        self.to_finish = why

    def finished(self):
        return self.finished_reason is not None

    def settle(self):
        if self.to_finish:
            self.finished_reason = self.to_finish
"""
QUEUE = """from request import Req


class PrefillQueue:
    def add(self, req: Req):
        {guard}
        self._enter(req)

    def _enter(self, req: Req):
        self.queue.append(req)

    def pop_ready(self):
        dropped = set()
        for i, req in enumerate(self.queue):
            if isinstance(req.finished_reason, Abort):
                dropped.add(i)
        for i, req in enumerate(self.queue):
            if i in dropped:
                continue
            if not self.adapters.can_schedule_adapter(req, self.running):
                continue
            self.pool.alloc(req)
"""
SCHEDULER = """class Scheduler:
    def take_turn(self, req):
        if isinstance(req.finished_reason, Abort):
            return
        self._add_to_queue(req)

    def _add_to_queue(self, req):
        if self.alone:
            self.waiting.append(req)
        else:
            self.the_prefill_queue.add(req)
"""
ADMIT = "admit-on-negative-state"


@pytest.mark.parametrize(("guard", "confidence"), [("pass", "high"), ("if req.to_finish: return", "medium")])
def test_a_guarded_entrance_lowers_what_is_said_behind_and_before_it(guard: str, confidence: str) -> None:
    files = {"request.py": REQUEST, "queues.py": QUEUE.format(guard=guard), "scheduler.py": SCHEDULER}
    found, _ = findings([module(path, text) for path, text in files.items()])
    assert [entry for entry in found if entry[2] == ADMIT] == [
        ("queues.py", 15, ADMIT, confidence),
        ("scheduler.py", 3, ADMIT, confidence),
    ]


TRANSFER = """class TransferQueue:
    def pop_done(self):
        for i, (req, poll) in enumerate(zip(self.queue, self.polls)):
            if poll == Poll.{state}:
                if isinstance(req.finished_reason, Abort):
                    self.release(req)
                else:
                    self.waiting.append(req)
"""


@pytest.mark.parametrize(("state", "lines"), [("SUCCESS", []), ("FAILED", [5])])
def test_what_comes_along_and_has_succeeded_is_a_positive_test(state: str, lines: list[int]) -> None:
    found, _ = findings([module("request.py", REQUEST), module("transfer.py", TRANSFER.format(state=state))])
    assert [line for _, line, rule, _ in found if rule == ADMIT] == lines


EITHER = """class Backup:
    def step(self, req):
        if {test}:
            self.store.offload(req)
        if req.finished():
            {other}
"""


@pytest.mark.parametrize(("other", "lines"), [("self.store.offload(req)", []), ("self.store.forget(req)", [3])])
def test_what_is_done_either_way_is_not_guarded_by_the_test(other: str, lines: list[int]) -> None:
    text = EITHER.format(test="not req.finished()", other=other)
    found, _ = findings([module("request.py", REQUEST), module("backup.py", text)])
    assert [line for _, line, rule, _ in found if rule == ADMIT] == lines
