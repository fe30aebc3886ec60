"""The parameters of the code checks: every word that a check compares names with, so that a rule file can set it."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.checks.code_words import AdmissionWords, StateWords, Texts, Words
from auditor.model.records import dataclass, field


@dataclass(frozen=True, slots=True)
class AdmitParams:
    """`known_enums` gives the members of enumerations that live in packages outside of the scanned tree, by the dotted
    name that they are imported under; `far_predicates` are predicates that cover every end (futures, tasks); `ready`
    are words of a member that names the state of what may enter: a fix compares with that one."""

    states: StateWords = field(default_factory=StateWords)
    admits: AdmissionWords = field(default_factory=AdmissionWords)
    known_enums: Mapping[str, Texts] = field(default_factory=dict)
    far_predicates: Texts = ("done", "IsCompleted")
    ready: Words = (
        "ready", "valid", "admitted", "accepted", "admissible", "approved", "eligible", "runnable", "schedulable",
        "allowed", "permitted", "authorized", "qualified", "acceptable", "verified", "usable",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SplitParams:
    """`holders` are words of a class name that make its doors the entrance of a queue: there confidence is high.
    `returning` are words of methods that take back what was admitted before."""

    states: StateWords = field(default_factory=StateWords)
    admits: AdmissionWords = field(default_factory=AdmissionWords)
    holders: Words = (
        "queue", "pool", "room", "waiting", "lobby", "backlog", "inbox", "mailbox", "buffer", "line", "waitlist",
        "intake", "hopper", "lane", "channel", "store", "stack", "heap", "reservoir", "gate", "desk", "dock",
    )  # fmt: skip
    returning: Words = (
        "retract", "retracted", "rebootstrap", "requeue", "resume", "restore", "return", "preempt", "preempted", "hold",
        "park", "suspend", "undo", "rollback",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SlotParams:
    """Pools of slots, pages, rows. `releasing` and `taking` begin the names of methods that give a handle back or hand
    one out; `vague` are those of the former that say it only in a class of `pools`, `getting` begin names that may hand
    out as well, and `turning` begin names in `back` that give nothing back; `free` are words of a container of free
    handles (`loose` alone do not prove it), `aside` of one that is not (deferral lists, figures; a class may prove all
    the same that it pools one of `pooled`); `wiping` are calls that make the old content unusable; `owning` are words
    of what tells one tenant of a handle from the next; `keys` are words of parameters that are no handles."""

    releasing: Words = (
        "free", "release", "give", "recycle", "put", "return", "dealloc", "deallocate", "unreserve", "restore",
        "relinquish", "hand", "surrender", "drop", "checkin", "despawn", "destroy", "retire", "reclaim", "vacate",
        "dispose", "kill", "unassign", "unlease", "repool", "remove", "delete", "giveback", "putback",
        "handback", "erase", "leave", "logout", "unregister", "deregister", "disconnect", "evict", "end", "terminate",
        "reap",
    )  # fmt: skip
    vague: Words = (
        "put", "hand", "restore", "drop", "destroy", "dispose", "kill", "remove", "delete", "erase", "leave", "logout",
        "unregister", "deregister", "disconnect", "evict", "end", "terminate", "reap",
    )  # fmt: skip
    turning: Words = ("call", "fall", "roll", "write", "push", "feed", "play", "look", "read", "track", "step", "trace")
    pools: Words = ("pool", "allocator", "arena", "slab", "freelist", "recycler", "pools")
    getting: Words = (
        "get", "obtain", "open", "spawn", "create", "new", "fetch", "pull", "request", "draw", "provide", "lend",
        "hire", "make",
    )  # fmt: skip
    taking: Words = (
        "alloc", "allocate", "reserve", "acquire", "take", "claim", "prealloc", "preallocate", "borrow", "lease",
        "rent", "grab", "checkout",
    )  # fmt: skip
    free: Words = (
        "free", "idle", "available", "avail", "vacant", "unused", "spare", "recycled", "freelist", "freed",
        "unallocated", "reusable", "released", "release", "pool", "empty", "open", "stock", "unoccupied", "bag",
    )  # fmt: skip
    loose: Words = ("released", "release", "pool", "empty", "open", "stock", "bag")
    aside: Words = (
        "group", "groups", "deferred", "defer", "later", "count", "counts", "counter", "num", "total", "scratch",
        "stats", "metrics", "log", "history", "result", "results", "callbacks", "context", "contexts", "trt",
        "thread", "worker", "workers", "connection", "connections", "conn", "session", "fenced", "fence", "awaiting",
        "pending",
    )  # fmt: skip
    pooled: Words = (
        "connection",
        "connections",
        "conn",
        "session",
        "worker",
        "workers",
        "thread",
        "context",
        "contexts",
    )
    wiping: Words = (
        "reset", "clear", "zero", "fill", "close", "rollback", "wipe", "scrub", "erase", "invalidate", "purge",
        "clean", "cleanup", "sanitize", "sanitise", "truncate", "unmap", "forget", "disconnect", "restore", "revoke",
        "evict", "blank", "shred", "discard", "reinit", "reinitialize", "expire", "unbind", "detach",
        "memset", "nullify", "expunge",
    )  # fmt: skip
    owning: Words = (
        "generation", "gen", "gens", "generations", "epoch", "epochs", "version", "versions", "owner", "owners",
        "token", "lease", "ticket", "nonce", "tag", "stamp", "request", "req", "rid", "tenant", "serial", "sequence",
        "era", "incarnation", "holder", "cookie", "revision", "valid", "holders", "stamps", "leases", "tickets",
        "tenants", "serials", "revisions",
    )  # fmt: skip
    keys: Words = (
        "layer", "key", "keys", "request", "req", "rid", "name", "replica", "command", "layers", "hash", "uuid",
        "path", "url", "field", "attr", "attribute", "kind", "type", "encoder", "decoder", "worker", "rank", "device",
        "stream", "dim", "axis", "batch", "head", "step", "l", "coordinates", "coords",
    )  # fmt: skip
    capacity: Words = (
        "capacity", "available", "ensure", "room", "enough", "fits", "can", "check", "has", "assert", "require",
        "wait", "evict", "grow", "refill", "count", "size", "len", "empty", "remaining",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TransferParams:
    """`moving` are words of functions and classes that move data, except beside one of `settling` (`commit` and `load`
    alone are also what transactions and models do); `success` are states that say all has arrived, `announcing` calls
    that set or tell a state, `unready` words of states that say it of a part; `amounts` are words of quantities;
    `aside` are words of life-cycle calls, telemetry and stand-ins, `beginning` begin names of what starts and ends
    nothing, `living` are words of enumerations that follow a life and no data."""

    moving: Words = (
        "transfer", "transfers", "receive", "receiver", "received", "recv", "send", "sender", "commit", "copy",
        "migrate", "migration", "offload", "offloader", "mover", "move", "sink", "upload", "uploader", "download",
        "downloader", "fetch", "ship", "replicate", "push", "pull", "prefetch", "load", "onload", "sync", "stream",
        "ingest", "relay", "handover", "handoff", "carrier", "courier", "import", "export", "chunk", "loader", "pump",
        "drain", "deliver", "kv", "copier", "migrator", "replicator", "exporter", "importer", "fetcher", "puller",
        "pusher", "streamer", "restorer", "mirror", "synchronizer", "syncer", "dma", "blit", "blitter", "transmit",
        "transmitter", "transmission", "spill", "spiller", "swap", "swapper", "evacuate", "evacuator", "rebalancer",
        "transport", "transporter", "shipper", "shipment", "delivery", "replication", "copying",
        "sending", "chunks", "moving", "uploads", "downloads", "copies", "conveyor", "ferry", "backup", "transferred",
        "spooler",
    )  # fmt: skip
    settling: Words = (
        "transaction", "transactions", "session", "connection", "conn", "cursor", "database", "db", "sql", "orm",
        "table",
        "context", "turn", "conversation", "savepoint", "model", "models", "weight", "weights", "startup", "config",
        "plugin", "module", "handshake", "hello", "greeting", "negotiate", "negotiation", "login", "parser", "parse",
        "lexer", "tokenizer", "metadata", "script", "command", "signal", "control", "audio", "settings",
        "workflow", "machine", "actor", "camera", "callbacks",
    )  # fmt: skip
    unready: Words = (
        "awaiting", "waiting", "wait", "await", "pending", "parsing", "partial", "partially", "almost", "not", "before",
        "until", "user", "closing", "half",
    )  # fmt: skip
    beginning: Words = ("init", "start", "begin", "prepare", "reset", "setup", "clear", "open", "create", "register")
    living: Words = (
        "request", "req", "node", "turn", "session", "connection", "handshake", "parser", "transaction", "ws", "close",
        "code", "component", "service", "server", "process", "model", "client", "peer", "user", "player", "worker",
    )  # fmt: skip
    success: Words = (
        "success", "succeeded", "done", "complete", "completed", "finished", "ok", "transferred", "received",
        "arrived", "ready", "committed", "copied", "delivered", "loaded", "sent",
    )  # fmt: skip
    states: Words = ("state", "status", "phase", "stage", "poll", "verdict", "outcome", "result", "progress")
    announcing: Words = (
        "update",
        "set",
        "notify",
        "mark",
        "announce",
        "report",
        "publish",
        "transition",
        "conclude",
        "emit",
    )
    amounts: Words = (
        "len", "length", "lengths", "count", "counts", "num", "bytes", "nbytes", "size", "sizes", "pages", "page",
        "tokens", "token", "expected", "received", "total", "written", "sent", "copied", "amount", "remaining",
        "left", "offset", "sum", "numel", "blocks", "chunks", "parts", "arrived", "rows", "required", "reserved",
        "getsize", "filesize", "tell", "quantity", "missing", "want", "wanted", "got", "checksum", "crc", "digest",
    )  # fmt: skip
    aside: Words = (
        "request", "finish", "telemetry", "metric", "metrics", "fake", "mock", "dummy", "stub", "log", "logger",
        "trace", "stats", "test", "cancel", "workflow", "executor", "task", "span", "event", "worker", "handoff",
        "job", "run",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatusParams:
    """`endpoints` are paths that generate, `prefixes` what may stand before one; `noting` are words of functions that
    do not look into an answer, `access` words and pairs of words of tests where the status is the point, `stand_ins`
    words of what answers in place of an engine."""

    endpoints: Texts = (
        "/generate", "/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate_stream",
        "/completions", "/chat/completions", "/api/generate", "/api/chat",
    )  # fmt: skip
    bodies: Texts = (
        "json", "text", "content", "iter_lines", "aiter_lines", "iter_content", "aiter_text", "aiter_bytes",
        "iter_text", "iter_bytes", "body", "data", "read", "aread", "raw", "stream", "iter_any", "choices",
        "get_json", "iter_chunked", "Content",
    )  # fmt: skip
    noting: Words = (
        "log", "record", "time", "timing", "elapsed", "latency", "show", "report", "note", "status", "observe", "raise",
    )  # fmt: skip
    prefixes: Texts = (
        "api", "v1", "v2", "v3", "v1beta", "beta", "openai", "anthropic", "llm", "llms", "model", "models", "engine",
        "engines", "inference", "infer", "text", "proxy", "server", "backend", "gateway", "router", "chat", "native",
        "sglang", "vllm", "tgi", "ollama", "default", "worker", "serve", "serving", "service", "deployments", "compat",
        "compatible-mode", "paas", "v4", "generation", "nlp", "ai", "lm", "completion",
    )  # fmt: skip
    access: Texts = (
        "auth", "authorization", "authorisation", "authentication", "authenticated", "authenticate", "authorized",
        "unauthorized", "unauthenticated", "bearer", "apikey", "api_key", "permission", "permissions", "forbidden",
        "rbac", "acl", "cors", "csrf", "jwt", "oauth", "oidc", "sso", "login", "ratelimit", "rate_limit", "throttle",
        "throttling", "throttled", "quota", "quotas", "access_control", "tls", "ssl", "mtls", "valid_key", "key_works",
        "valid_token", "not_found", "404", "401", "403", "429", "ratelimiter", "rate_limiter", "limiter", "budget",
    )  # fmt: skip
    stand_ins: Words = (
        "mock", "mocks", "mocked", "mocker", "monkeypatch", "patch", "fake", "stub", "stubs", "dummy", "respx", "magic",
        "fakes", "stubbed", "faked", "canned",
    )  # fmt: skip
