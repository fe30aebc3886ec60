"""The vocabularies of the code rules: which names mean over, refused, valid, queue, reserve. All are rule parameters.

Entries are single words; an identifier matches when one of its words does (`is_finished` and `isFinished` hold
`finished`). The defaults were collected from schedulers, pools, queues and servers on the package index.
"""

from __future__ import annotations

from typing import Annotated

from auditor.model.records import dataclass
from auditor.syntax.names import word_set, words

Words = Annotated[tuple[str, ...], "words that identifiers are compared with, piece by piece"]
Texts = tuple[str, ...]

# Words around the word that counts: they say nothing of the state.
_FILLING = frozenset(
    {
        "is", "has", "have", "was", "been", "already", "get", "in", "at", "the", "end", "all", "fully", "request",
        "req",
        "job", "task", "generation", "state", "status", "to", "be", "now", "reached", "with", "run", "flag", "running",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StateWords:
    """Words of a life cycle. `over`: it has ended, however. `refused`: it must not be used. `valid`: it may be used;
    those of them in `room` ask whether there is room for it, which a refused one can have as well. `state`: attributes
    that hold a state. `reason`: attributes that are empty until it has ended. Of an enumeration's members alone:
    `served` had what it came for, an end where a refusal stands beside it; `ruined` must not be used any more.
    `refusing` are verbs of methods and fields that record a refusal, where the class shows what becomes of it."""

    over: Words = (
        "finished", "finish", "done", "completed", "complete", "ended", "over", "terminal", "terminated", "settled",
        "concluded", "finalized", "finalised", "fulfilled", "succeeded", "success", "dead", "gone", "exhausted",
    )  # fmt: skip
    served: Words = (
        "retired", "served", "consumed", "fetched", "delivered", "resolved", "archived", "shipped", "uploaded",
        "downloaded", "answered", "printed", "rendered", "handled", "processed", "passed", "closed", "paid", "played",
        "published", "drained", "destroyed", "disposed", "departed", "returned", "collected", "merged", "landed",
        "accomplished", "acked", "acknowledged", "adjourned", "billed", "built", "cashed", "checkedout", "committed",
        "compiled", "copied", "crawled", "cooked", "decommissioned", "deployed", "discharged", "emitted", "encoded",
        "executed", "exited", "exported", "extracted", "filled", "flushed", "harvested", "imported", "indexed",
        "ingested", "invoiced", "mailed", "migrated", "parsed", "persisted", "posted", "redeemed", "released",
        "replied", "responded", "sent", "sold", "solved", "spent", "stored", "synced", "transcoded", "transferred",
        "transmitted", "tallied", "trained", "vacated", "won", "written", "generated", "decoded", "streamed",
        "received", "saved", "satisfied", "reaped", "recycled", "freed", "claimed", "applied", "converted",
        "translated", "transformed", "graduated", "buried", "left",
    )  # fmt: skip
    ruined: Words = (
        "timeout", "timedout", "timed", "stale", "lost", "broken", "skipped", "deleted", "removed", "purged",
        "superseded", "obsolete", "obsoleted", "outdated", "orphaned", "orphan", "shed", "ousted", "trashed", "halted",
        "interrupted", "tainted", "recalled", "defunct", "faulty", "fatal", "panicked", "overflowed", "unsupported",
        "unauthorised", "nullified", "reverted", "suppressed", "zombie", "eliminated", "defeated", "disbanded",
        "forsaken", "deserted", "overruled", "exiled", "shunned", "squashed", "culled", "spoiled", "wrecked", "junked",
        "compromised", "infected", "fraudulent", "suspicious", "unusable", "bad", "bust", "busted", "outbid", "moot",
        "deadletter", "deadlettered", "overdue", "walkover", "violated",
    )  # fmt: skip
    refused: Words = (
        "abort", "aborted", "aborting", "cancel", "cancelled", "canceled", "cancelling", "canceling", "reject",
        "rejected", "rejecting", "rejection", "refuse", "refused", "refusal", "deny", "denied", "denial", "decline",
        "declined", "veto", "vetoed", "revoke", "revoked", "kill", "killed", "error", "errored", "fail", "failed",
        "failure", "faulted", "invalid", "invalidate", "invalidated", "expired", "stopped", "dropped", "discarded",
        "evicted", "banned", "ban", "barred", "blocked", "forbid", "forbidden", "void", "voided", "withdraw",
        "withdrawn", "dismiss", "dismissed", "turned", "poisoned", "ignored", "crashed", "quarantined", "bounce",
        "bounced", "disallow", "disallowed", "unauthorized", "disqualified", "disqualify", "expelled", "expel",
        "scrapped", "scrap", "annul", "annulled", "quash", "quashed", "doomed", "disabled",
        "unschedulable", "exclude", "excluded", "lapsed", "turn", "abandon", "abandoned", "forfeit", "forfeited",
        "kick", "kicked", "eject", "ejected", "cancellation", "revocation", "dismissal", "nack", "nacked", "condemned",
        "corrupt", "corrupted", "malformed", "blacklisted", "blocklisted", "rescinded", "repudiated", "unfit",
    )  # fmt: skip
    refusing: Words = ("drop", "discard", "evict", "expel", "oust", "shed", "ditch", "bail", "banish", "strike")
    valid: Words = (
        "valid", "ready", "accepted", "admitted", "allocated", "approved", "alive", "runnable", "schedulable",
        "eligible", "healthy", "allowed", "granted", "can", "may", "usable", "live", "fits", "authorized",
        "permitted", "qualified", "retracted", "verified", "confirmed", "available", "acceptable",
        "admissible",
    )  # fmt: skip
    room: Words = ("can", "may", "fits", "available")
    state: Words = ("state", "status", "phase", "stage", "lifecycle", "condition", "verdict", "outcome", "poll")
    reason: Words = (
        "reason",
        "outcome",
        "verdict",
        "ended",
        "end",
        "closed",
        "finished",
        "completed",
        "finish",
        "settled",
    )
    liveness: Words = (
        "closed",
        "closing",
        "stopping",
        "shutdown",
        "stopped",
        "exit",
        "exiting",
        "quit",
        "disconnected",
    )

    def is_over(self, name: str) -> bool:
        """Whether a predicate or flag of this name says that its object has ended, and nothing else."""
        parts = [word for word in words(name) if word not in _FILLING]
        if parts and parts[0] in ("not", "un", "non", "never"):
            return False
        return bool(parts) and all(part in self.over for part in parts)

    def is_ended(self, name: str) -> bool:
        """Whether a predicate of this name may say that its object has ended; wider than `is_over`, for where the class
        itself proves the rest (`is_closed`, `has_left`)."""
        parts = [word for word in words(name) if word not in _FILLING]
        if parts and parts[0] in ("not", "un", "non", "never"):
            return False
        return bool(parts) and all(part in self.over or part in self.served for part in parts)

    def is_refusing(self, name: str) -> bool:
        """Whether a field or a method of this name records a refusal."""
        return self.is_refused(name) or not word_set(name).isdisjoint(self.refusing)

    def is_refused(self, name: str) -> bool:
        """Whether a name speaks of a refusal."""
        return not word_set(name).isdisjoint(self.refused)

    def is_valid(self, name: str) -> bool:
        """Whether a name speaks of permission to be used."""
        return not word_set(name).isdisjoint(self.valid)

    def is_room(self, name: str) -> bool:
        """Whether a name asks for room alone (`can_schedule`, `fits`)."""
        parts = word_set(name)
        return not parts.isdisjoint(self.room) and parts.isdisjoint((*self.refused, *set(self.valid) - set(self.room)))

    def is_state(self, name: str) -> bool:
        """Whether an attribute or getter of this name holds a state."""
        parts = words(name)
        return bool(parts) and (parts[-1] in self.state or parts[-1].removesuffix("s").removesuffix("e") in self.state)

    def is_reason(self, name: str) -> bool:
        """Whether an attribute of this name is empty until its object has ended (`finish_reason`, `closed_as`)."""
        parts = word_set(name)
        if parts.isdisjoint(self.reason):
            return False
        return parts <= _REASON_SHAPES

    def is_final(self, member: str) -> bool:
        """Whether an enumeration member or a state's text names an end, good or bad."""
        parts = word_set(member)
        return not (parts.isdisjoint(self.over) and parts.isdisjoint(self.refused))

    def is_barred(self, member: str) -> bool:
        """Whether an enumeration member says that its thing must not be used."""
        parts = word_set(member)
        return not (parts.isdisjoint(self.refused) and parts.isdisjoint(self.ruined))

    def is_served(self, member: str) -> bool:
        """Whether an enumeration member says by its last word that its thing had what it came for, and no more than
        that: it is an end only where a refusal stands beside it."""
        return words(member)[-1:] != () and words(member)[-1] in self.served and not self.is_end(member, False)

    def is_end(self, member: str, served: bool = True) -> bool:
        """Whether an enumeration member may name an end; with `served` also one that says what came of it."""
        return self.is_final(member) or self.is_barred(member) or (served and self.is_served(member))


_REASON_SHAPES = frozenset(
    {
        "reason", "finish", "finished", "end", "ended", "close", "closed", "completion", "completed", "complete",
        "terminal", "termination", "final", "exit", "outcome", "verdict", "as", "at", "by", "with", "cause", "settled",
        "time", "code", "on", "done", "conclusion", "is", "stop",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AdmissionWords:
    """What takes a thing in. `verbs` are calls that do it whatever they are called on; `storing` are calls that do it
    on a container whose name holds one of `containers`; a name with one of `aside` is neither."""

    verbs: Words = (
        "alloc", "allocate", "reserve", "prealloc", "preallocate", "assign", "bootstrap", "enqueue", "submit",
        "schedule", "admit", "dispatch", "send", "transfer", "offload", "grant", "lease", "requeue", "book", "hand",
        "post", "deliver", "forward", "accept", "launch", "route", "place", "rent", "seat",
    )  # fmt: skip
    storing: Words = (
        "append", "appendleft", "add", "insert", "put", "push", "extend", "extendleft", "heappush", "offer",
        "setdefault", "update", "write", "enqueue", "store", "register",
    )  # fmt: skip
    containers: Words = (
        "queue", "queues", "queued", "q", "waiting", "waitlist", "waiters", "pending", "ready", "backlog", "inbox",
        "mailbox", "pool", "batch", "running", "admitted", "accepted", "todo", "inflight", "flight", "active",
        "slots", "slot", "scheduled", "buffer", "lane", "lanes", "work", "worklist", "jobs", "requests", "reqs",
        "tickets", "heap", "fifo", "deque", "channel", "staging", "line", "room", "lobby", "intake", "prefill",
        "decode", "bootstrap", "inputs", "entries", "rows", "residents", "seats", "bays", "sends", "sending",
        "transfers", "runnable", "reserved", "hopper", "belt", "incoming", "outbox", "dock", "gate", "desk",
        "registry", "tray", "rack", "shelf", "basket", "roster", "berth", "berths", "conveyor", "spool",
    )  # fmt: skip
    aside: Words = (
        "fail", "failed", "failure", "failures", "error", "errors", "abort", "aborted", "drain", "drained", "victim",
        "victims", "seen", "visited", "stat", "stats", "statistics", "metric", "metrics", "log", "logs", "logger",
        "history", "output", "outputs", "result", "results", "response", "responses", "finished", "done", "completed",
        "remove", "removed", "drop", "dropped", "delete", "deleted", "evict", "evicted", "retract", "retracted",
        "cancel", "cancelled", "canceled", "garbage", "expired", "dead", "skip", "skipped", "report", "summary",
        "kill", "reply", "message", "messages", "event", "events", "notification", "heartbeat", "ack", "signal",
        "cleanup", "gauge", "counter", "trace", "span", "chunk", "chunks", "token", "tokens", "warning", "warnings",
        "callback", "callbacks", "listener", "listeners", "status", "debug", "stopped", "stop", "trash", "rejected",
        "orphans", "stale", "not", "non", "never", "snapshot", "dump", "stream", "progress", "telemetry",
    )  # fmt: skip
    bystanders: Words = (
        "metric", "metrics", "log", "logging", "dump", "poll", "cancel", "close", "retract", "preempt", "cleanup",
        "clean", "abort", "shutdown", "stop", "kill", "drain", "evict", "free", "stats", "snapshot", "validate",
        "debug", "simulate", "simulator", "benchmark", "bench", "report", "terminate", "teardown", "dispose",
        "describe", "repr", "str", "stream", "monitor", "watch", "wait", "join", "release", "remove", "delete",
        "purge", "reap", "pause", "finish", "render", "print", "display", "test", "expire", "fail",
    )  # fmt: skip

    def takes(self, name: str) -> bool:
        """Whether a call of this name admits its argument whatever it is called on."""
        parts = [word for word in words(name) if word not in ("try", "maybe", "do", "async", "pre", "a", "nowait")]
        if not parts or not word_set(name).isdisjoint(self.aside):
            return False
        if parts[0] in self.verbs:
            return True
        # `_add_request_to_queue`, `push_to_waiting`: the target stands in the name.
        return parts[0] in self.storing and not set(parts[1:]).isdisjoint(self.containers)

    def stores(self, name: str) -> bool:
        """Whether a call of this name puts its argument into the container that it is called on."""
        parts = words(name)
        parts = parts[1:] if parts[:1] == ("try",) else parts
        return bool(parts) and parts[0] in self.storing and word_set(name).isdisjoint(self.aside)

    def is_container(self, name: str) -> bool:
        """Whether a name is one of a queue, a pool or the like, and not of a list of failures or figures."""
        parts = word_set(name)
        return not parts.isdisjoint(self.containers) and parts.isdisjoint(self.aside)

    def aside_free(self, path: str) -> bool:
        """Whether no part of a receiver's path speaks of failures, figures or output."""
        return all(word_set(part).isdisjoint(self.aside) for part in path.split("."))

    def stands_by(self, name: str) -> bool:
        """Whether a function of this name watches or disposes instead of admitting."""
        return not word_set(name).isdisjoint(self.bystanders)
