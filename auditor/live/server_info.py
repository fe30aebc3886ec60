"""What an engine says of itself: its documents read into one `Worker`, with what they leave open in words.

Sources: the engine's own code, releases 0.4.6 to 0.5.23. `/server_info` merges the server arguments, the first
scheduler's figures (`max_total_num_tokens`, `max_req_input_len`) and `internal_states`, one entry a data-parallel rank.
The resolved context length stands in `/v1/models` (`max_model_len`) alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from auditor.live.capacity import REFUSED_BELOW_CAPACITY, Capacity, capacity_of
from auditor.model.facts import Role
from auditor.model.records import dataclass

Document = Mapping[str, object]

LARGEST = 1 << 48  # no count of tokens, pages or ranks is larger
Kind = Literal["server-info", "models", "loads"]


@dataclass(frozen=True, slots=True)
class Documents:
    """The parsed documents of one worker; `None` where there was none."""

    server_info: Document | None = None
    models: Document | None = None
    loads: Document | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """One engine process as it describes itself. All lengths are in tokens; `None` is unknown.

    `limit` is the first prompt length that is refused, over all ranks. `contexts` are all statements of the context
    length with where they stand, the strongest first. `ranks` are the pools of the data-parallel ranks that are shown.
    """

    name: str
    role: Role
    stated_role: Role
    version: str | None
    contexts: tuple[tuple[str, int], ...]
    capacity: Capacity
    limit: int | None
    ranks: tuple[int | None, ...]
    expected_ranks: int | None
    page_size: int | None
    kv_cache_dtype: str | None
    model: str | None
    served_model: str | None
    auto_truncate: bool | None
    transfer_backend: str | None
    checksum: bool | None

    @property
    def context(self) -> int | None:
        """The context length; the largest one stated, where statements differ."""
        return max((tokens for _, tokens in self.contexts), default=None)

    @property
    def largest_prompt(self) -> int | None:
        """The longest prompt that is served."""
        return None if self.limit is None else self.limit - 1


def kind_of(document: object) -> Kind | None:
    """Which of the engine's documents a JSON value is, by shape."""
    if not isinstance(document, Mapping):
        return None
    if isinstance(document.get("loads"), list):
        return "loads"
    if isinstance(document.get("data"), list) and document.get("object", "list") == "list":
        return "models"
    if {"max_total_num_tokens", "internal_states", "max_req_input_len", "mem_fraction_static"} & set(document):
        return "server-info"
    return None


def read_worker(name: str, asked: Role, documents: Documents, context_length: int | None = None) -> Worker:
    """One worker from its documents. `asked` is the role that the user gave it (`unknown` for none),
    `context_length` what the user states where no document does."""
    info: Document = documents.server_info or {}
    stated = _role(info)
    version = _text(info, "version")
    reported = _count(info, "max_total_num_tokens")
    first_limit = _count(info, "max_req_input_len")
    ranks = _ranks(info, documents.loads)
    diffusion = _text(info, "dllm_algorithm") is not None
    dcp = _count(info, "dcp_size") or 1
    shards = _shards(info)
    contexts = _contexts(info, documents.models, first_limit, reported, _plain(info))
    if not contexts and context_length is not None:
        contexts = (("--context-length", context_length),)
    pools = [pool for pool in (reported, *ranks) if pool is not None]
    context = max((tokens for _, tokens in contexts), default=None)
    capacity = capacity_of(
        reported=reported,
        smallest=min(pools, default=None),
        first_limit=None if first_limit is None or diffusion else first_limit,
        context=context,
        dcp=dcp,
        shards=shards,
        version=version,
    )
    limits = [first_limit] if first_limit is not None else []
    if capacity.low is not None and not diffusion and (first_limit is not None or context is not None):
        # A smaller rank refuses earlier than the first. Without max_req_input_len the formula gives what it would be.
        limits.append(max(min(capacity.low, context or capacity.low) - REFUSED_BELOW_CAPACITY, 0))
    return Worker(
        name=name,
        role=stated if stated != "unknown" else asked,
        stated_role=stated,
        version=version,
        contexts=contexts,
        capacity=capacity,
        limit=min(limits, default=None) or None,
        ranks=ranks,
        expected_ranks=_expected_ranks(info),
        page_size=_count(info, "page_size"),
        kv_cache_dtype=_text(info, "kv_cache_dtype"),
        model=_text(info, "model_path"),
        served_model=_text(info, "served_model_name"),
        auto_truncate=_auto_truncate(info),
        transfer_backend=_text(info, "disaggregation_transfer_backend"),
        checksum=_flag(info, "disaggregation_enable_kv_checksum"),
    )


def model_ids(models: Document | None) -> tuple[str, ...]:
    """The served names in `/v1/models`, adapters left out."""
    return tuple(name for name, _ in _base_models(models))


def context_of_models(models: Document | None) -> int | None:
    """The context length that `/v1/models` states for all models; the smallest, where they differ."""
    return min((length for _, length in _base_models(models) if length is not None), default=None)


def needs_loads(info: Document) -> bool:
    """Whether `/server_info` shows fewer rank pools than there are ranks, so that `/v1/loads` is worth asking."""
    expected = _expected_ranks(info)
    return expected is not None and expected > 1 and sum(pool is not None for pool in _ranks(info, None)) < expected


def _count(document: Document, key: str) -> int | None:
    value = document.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST else None


def _text(document: Document, key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) and value else None


def _flag(document: Document, key: str) -> bool | None:
    value = document.get(key)
    return value if isinstance(value, bool) else None


def _auto_truncate(info: Document) -> bool | None:
    """The resolved argument; else what was asked for at the start (`launch_command`, 0.5.20 and later), where no file
    of arguments could add to it."""
    stated = _flag(info, "allow_auto_truncate")
    command = _text(info, "launch_command")
    if stated is not None or command is None:
        return stated
    words = command.split()
    if any(word == "--config" or "allow_auto_truncate" in word for word in words):
        return None
    # The engine's parser takes every unique beginning of an option.
    return any(word.startswith("--allow") and "--allow-auto-truncate".startswith(word) for word in words)


def _role(info: Document) -> Role:
    # The engine writes the text "null" for a server that does both.
    roles: dict[str | None, Role] = {"null": "unified", "prefill": "prefill", "decode": "decode"}
    return roles.get(_text(info, "disaggregation_mode"), "unknown")


def _states(info: Document) -> Sequence[object] | None:
    states = info.get("internal_states")
    return states if isinstance(states, list) else None


def _ranks(info: Document, loads: Document | None) -> tuple[int | None, ...]:
    pools: list[int | None] = []
    for state in _states(info) or ():
        memory = state.get("memory_usage") if isinstance(state, Mapping) else None
        pools.append(_count(memory, "token_capacity") if isinstance(memory, Mapping) else None)
    listed = loads.get("loads") if loads is not None else None
    if isinstance(listed, list):
        by_rank: dict[int, int | None] = {}
        for index, entry in enumerate(listed):
            if isinstance(entry, Mapping):
                rank = entry.get("dp_rank", index)
                by_rank[rank if isinstance(rank, int) else index] = _count(entry, "max_total_num_tokens")
        found = [by_rank[rank] for rank in sorted(by_rank)]
        if sum(pool is not None for pool in found) > sum(pool is not None for pool in pools):
            return tuple(found)
    return tuple(pools)


def _expected_ranks(info: Document) -> int | None:
    # From 0.5.22 attention groups are counted apart from replicas; one of the two factors is 1.
    size = _count(info, "dp_size")
    if size is not None:
        return size * (_count(info, "attn_dp_size") or 1) if "attn_dp_size" in info else size
    states = _states(info)
    return len(states) if states else None


def _shards(info: Document) -> tuple[int, int | None]:
    """By how much sharded KV pages widen the pool, at least and at most; `None` is unknown."""
    if info.get("enable_kv_cache_sharding") is not True:
        return 1, 1
    context_parallel = _count(info, "attn_cp_size") or 1
    if context_parallel > 1:
        return context_parallel, context_parallel
    # Only latent attention shards over tensor parallelism, and the document does not name the kind of attention.
    tensor_parallel = _count(info, "tp_size")
    if tensor_parallel is None:
        return 1, None
    groups = _count(info, "attn_dp_size") or (_count(info, "dp_size") if info.get("enable_dp_attention") is True else 1)
    return 1, max(tensor_parallel // (groups or 1), 1)


def _base_models(models: Document | None) -> list[tuple[str, int | None]]:
    entries = models.get("data") if models is not None else None
    found: list[tuple[str, int | None]] = []
    for entry in entries if isinstance(entries, list) else ():
        # Adapters are listed too, with a `parent` and no length of their own.
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str) and not entry.get("parent"):
            found.append((entry["id"], _count(entry, "max_model_len")))
    return found


def _plain(info: Document) -> bool:
    """Whether one request can use exactly the reported pool: no diffusion blocks, no context-parallel or sharded
    pages, no sliding-window pool or sparse host pool beside it."""
    widened = (_count(info, "dcp_size") or 1) > 1 or _shards(info) != (1, 1)
    if widened or _text(info, "dllm_algorithm") is not None:
        return False
    memories = [state.get("memory_usage") for state in _states(info) or () if isinstance(state, Mapping)]
    sliding = any(isinstance(memory, Mapping) and memory.get("token_capacity_swa") for memory in memories)
    return not sliding and info.get("enable_hisparse") is not True


def _contexts(
    info: Document, models: Document | None, limit: int | None, pool: int | None, plain: bool
) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    lengths = {length for _, length in _base_models(models) if length is not None}
    found.extend(("max_model_len of /v1/models", length) for length in sorted(lengths, reverse=True))
    argument = _count(info, "context_length")
    if argument is not None:
        found.append(("context_length", argument))
    # Where the pool does not bind, the context does, and the limit is it less six. What widens or narrows the pool (see
    # `_plain`) breaks the arithmetic, and a direct statement is better.
    if not found and limit is not None and pool is not None and plain and limit + REFUSED_BELOW_CAPACITY < pool:
        found.append(("max_req_input_len", limit + REFUSED_BELOW_CAPACITY))
    return tuple(found)
