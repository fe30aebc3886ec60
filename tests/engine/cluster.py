"""Prefill, decode, and the handoff between them, as the releases 0.5.19 to 0.5.22 do it.

Modelled on the engine: a prompt of `min(context, pool) - 6` tokens or more is refused by the scheduler, not by
the front. Before 0.5.20 the refusal leaves a request of one token that goes on: prefill sends one page, decode has
reserved pages for the whole prompt and reads them all. 0.5.20 drops the refused request after its forward pass, 0.5.21
at the doors. A request that both roles refuse ends with status 200 and no text before 0.5.20.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from auditor.model.records import dataclass, field
from tests.engine.faults import Faults
from tests.engine.pages import PagePool
from tests.engine.toy import Tokenizer, generate

STUB = [0]


@dataclass
class Engine:
    """One worker. `pools` holds one pool size a data-parallel rank; the first one is the one that is used."""

    mode: str = "null"
    version: str = "0.5.22"
    context: int = 2048
    pools: tuple[int, ...] = (4096,)
    page_size: int = 16
    kv_cache_dtype: str = "fp8_e4m3"
    model: str = "org/toy"
    auto_truncate: bool = False
    context_argument: int | None = None
    reuse: str = "fifo"
    backend: str = "mooncake"
    more: Mapping[str, object] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    max_model_len: int | str | None = "context"

    def __post_init__(self) -> None:
        self.pool = PagePool(self.pools[0], self.page_size, self.reuse)

    @property
    def limit(self) -> int:
        """The first prompt length that the scheduler refuses."""
        return min(self.context, self.pools[0]) - 6

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in self.version.split(".")[:3])

    def server_info(self) -> dict[str, object]:
        """The document, in the shape of the version."""
        shown = self.release >= (0, 5, 3)
        states: list[dict[str, object]] = [
            {"last_gen_throughput": 0.0, **({"memory_usage": {"weight": 1.0, "token_capacity": pool}} if shown else {})}
            for pool in self.pools
        ]
        document: dict[str, object] = {
            "model_path": self.model,
            "served_model_name": self.model,
            "context_length": self.context_argument,
            "mem_fraction_static": 0.88,
            "page_size": self.page_size,
            "kv_cache_dtype": self.kv_cache_dtype,
            "tp_size": len(self.pools),
            "dp_size": len(self.pools),
            "max_total_tokens": None,
            "allow_auto_truncate": self.auto_truncate,
            "disaggregation_mode": self.mode,
            "disaggregation_transfer_backend": self.backend,
            "api_key": "sk-the-engine-shows-its-own-key",
            "status": "ready",
            "max_total_num_tokens": self.pools[0],
            "max_req_input_len": self.limit,
            "internal_states": states,
            "version": self.version,
        }
        if self.release >= (0, 5, 20):
            document["launch_command"] = "--model-path org/toy"
        if self.release >= (0, 5, 22):
            document["attn_dp_size"] = 1
        document.update(self.more)
        return {key: value for key, value in document.items() if key not in self.drop}

    def models(self) -> dict[str, object]:
        """`/v1/models`, with an adapter beside the model."""
        length = self.context if self.max_model_len == "context" else self.max_model_len
        return {
            "object": "list",
            "data": [
                {"id": self.model, "object": "model", "max_model_len": length},
                {"id": "an-adapter", "object": "model", "parent": self.model, "max_model_len": None},
            ],
        }

    def loads(self) -> dict[str, object]:
        """`/v1/loads`."""
        return {
            "version": self.version,
            "loads": [{"dp_rank": rank, "max_total_num_tokens": pool} for rank, pool in enumerate(self.pools)],
        }


@dataclass(frozen=True)
class Done:
    """How a request ended. `prompt_tokens` is what the engine counts."""

    status: int
    text: str
    prompt_tokens: int
    completion_tokens: int = 0
    finish_reason: str = "length"


class Cluster:
    """A front with one prefill and one decode worker, or with one worker that does both."""

    def __init__(self, prefill: Engine, decode: Engine | None = None, faults: Faults | None = None) -> None:
        self.prefill = prefill
        self.decode = decode
        self.faults = faults or Faults()
        self.tokenizer = Tokenizer()
        self.requests: list[int] = []  # the prompt lengths that arrived, in order

    @property
    def front(self) -> Engine:
        """The worker whose context the front goes by."""
        return self.prefill

    def complete(self, ids: Sequence[int], room: int) -> Done:
        """Take one request through the whole path."""
        self.requests.append(len(ids))
        context = self.front.context
        if self.faults.front_limit and len(ids) > self.faults.front_limit:
            return Done(413, "the prompt is longer than this service takes", 0)
        cutting = self.prefill.auto_truncate
        if len(ids) >= context and not cutting:
            return Done(400, f"The input ({len(ids)} tokens) is longer than the model's context length.", 0)
        if len(ids) + room > context:
            if not cutting:
                return Done(400, "Requested token count exceeds the model's maximum context length.", 0)
            room = max(context - len(ids), 0) or 16
        if self.decode is None:
            return self._unified(ids, room)
        return self._disaggregated(ids, room, self.decode)

    def _unified(self, ids: Sequence[int], room: int) -> Done:
        engine = self.prefill
        if len(ids) >= engine.limit:
            if not engine.auto_truncate:
                return self._refused(engine, len(ids))
            ids = ids[: engine.limit]
        pages = engine.pool.reserve(len(ids))
        if pages is None:
            return Done(503, "the server is overloaded", 0)
        engine.pool.write(pages, ids)
        return self._read(engine, pages, len(ids), room)

    def _disaggregated(self, ids: Sequence[int], room: int, decode: Engine) -> Done:
        prefill = self.prefill
        sent, reserved = list(ids), len(ids)
        refused_by_prefill = len(ids) >= prefill.limit
        refused_by_decode = len(ids) >= decode.limit
        if refused_by_prefill and prefill.auto_truncate:
            sent, refused_by_prefill = sent[: prefill.limit], False
        if refused_by_decode and decode.auto_truncate:
            reserved, refused_by_decode = min(reserved, decode.limit), False
        guarded = prefill.release >= (0, 5, 20)
        if (refused_by_prefill or refused_by_decode) and guarded:
            return self._refused(decode, len(ids))
        if refused_by_prefill:
            sent = STUB
        if refused_by_decode:
            # Both are stubs, and the verdict is overwritten by a finish of length zero.
            return self._override(Done(200, "", len(ids)))
        pages = decode.pool.reserve(reserved)
        if pages is None:
            return Done(503, "the server is overloaded", 0)
        size = prefill.page_size
        count = -(-len(sent) // size)
        if not refused_by_prefill and len(sent) > 1000:
            count -= min(self.faults.short_transfer, count - 1)
        # The transfer is complete when the status message says so; nobody compares pages sent with pages reserved.
        decode.pool.write(pages, sent[: count * size])
        return self._read(decode, pages, reserved, room)

    def _read(self, engine: Engine, pages: list[int], length: int, room: int) -> Done:
        seen = engine.pool.read(pages, length)
        made = [] if self.faults.mute else generate(seen, room)
        engine.pool.release(pages)
        text = "I am a teapot." if self.faults.mute else self.tokenizer.decode(made)
        return Done(200, text, length, len(made))

    def _refused(self, engine: Engine, length: int) -> Done:
        text = f"Input length ({length} tokens) exceeds the maximum allowed length ({engine.limit} tokens)."
        if self.faults.leak_in_error:
            text += " " + self._stale(engine)
        return self._override(Done(400, text, 0))

    def _stale(self, engine: Engine) -> str:
        everything: array[int] = engine.pool.read(list(range(engine.pool.pages)), engine.pool.pages * engine.page_size)
        return self.tokenizer.decode([number for number in everything if number > 1][:400])

    def _override(self, done: Done) -> Done:
        if self.faults.ok_on_refusal is not None:
            return Done(200, self.faults.ok_on_refusal, done.prompt_tokens)
        if self.faults.refusal_status:
            return Done(self.faults.refusal_status, done.text, 0)
        return done
