"""Where the figures of a request stand in a log line: the usual names, and those that the user gives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from auditor.errors import UsageError
from auditor.model.records import dataclass

Field = Literal["length", "ttft", "cached", "status", "queue", "group"]
FIELDS: tuple[Field, ...] = ("length", "ttft", "cached", "status", "queue", "group")
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "ms": ("_ms", "Ms", "_MS", "millis", "Millis", "milliseconds", "Milliseconds"),
    "us": ("_us", "Us", "micros", "microseconds"),
    "ns": ("_ns", "Ns", "nanos", "nanoseconds"),
}

# Names under which the fields stand in logs, in order of trust. For the length, what the client sent comes first: an
# engine that refuses a prompt counts one token for it, and that is the very request that must not be lost.
CANDIDATES: Mapping[Field, tuple[str, ...]] = {
    "length": (
        "client_prompt_tokens",
        "client_tokens",
        "request_prompt_tokens",
        "request_tokens",
        "input_tokens",
        "prompt_tokens",
        "promptTokens",
        "num_prompt_tokens",
        "prompt_token_count",
        "prompt_tokens_count",
        "prompt_length",
        "prompt_len",
        "input_length",
        "input_len",
        "request_length",
        "usage.prompt_tokens",
        "usage.input_tokens",
        "gen_ai.usage.input_tokens",
        "attributes.gen_ai.usage.input_tokens",
        "out.meta_info.prompt_tokens",
        "meta_info.prompt_tokens",
    ),
    "ttft": (
        "ttft_ms",
        "ttftMs",
        "time_to_first_token_ms",
        "first_token_ms",
        "prefill_ms",
        "ttft_us",
        "time_to_first_token_us",
        "ttft_seconds",
        "ttft_s",
        "ttft",
        "time_to_first_token_seconds",
        "time_to_first_token_s",
        "time_to_first_token",
        "first_token_seconds",
        "first_token_s",
        "first_token_latency",
        "metrics.time_to_first_token_ms",
        "metrics.ttft_ms",
        "metrics.ttft",
        "gen_ai.server.time_to_first_token",
        "gen_ai.latency.time_to_first_token",
        "attributes.gen_ai.latency.time_to_first_token",
        "out.meta_info.first_token_latency",
        "meta_info.first_token_latency",
    ),
    "cached": (
        "cached_tokens",
        "promptCachedTokens",
        "prompt_cached_tokens",
        "usage.prompt_tokens_details.cached_tokens",
        "prompt_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "usage.cache_read_input_tokens",
        "out.meta_info.cached_tokens",
        "meta_info.cached_tokens",
    ),
    "status": (
        "status_code",
        "http_status",
        "response_code",
        "status",
        "response.status",
        "error",
        "finish_reason",
        "finish_reason.type",
        "meta_info.finish_reason.type",
        "out.meta_info.finish_reason.type",
    ),
    "queue": ("queue_time_ms", "queue_ms", "queue_time", "out.meta_info.queue_time", "meta_info.queue_time"),
    "group": ("model", "model_name", "request.model", "gen_ai.request.model", "obj.model"),
}


HTTP_ERROR = re.compile(r"[45][0-9][0-9]")
FAILED = frozenset({"error", "failed", "aborted", "abort", "cancelled", "canceled", "timeout", "rejected"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands: keys from the outside in; `count` takes the number of items or characters there; `unit` is
    the factor that gives seconds (times only)."""

    text: str
    keys: tuple[str, ...]
    count: bool = False
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class Fields:
    """Which field stands where; a field that is not named is looked for under the usual names."""

    named: Mapping[Field, Place]
    unit: float | None = None


def parse_field(text: str) -> tuple[Field, str]:
    """`NAME=PATH` from the command line."""
    name, separator, path = text.partition("=")
    for known in FIELDS:
        if name == known and separator and path:
            return known, path
    raise UsageError(f"`--field {text}` is not NAME=PATH with NAME one of {', '.join(FIELDS)}")


def place(text: str, unit: float | None) -> Place:
    """A path: dotted keys, `len:` in front for the number of items or characters."""
    count = text.startswith("len:")
    keys = text[4:] if count else text
    return Place(text, tuple(keys.split(".")), count, unit if unit is not None else _unit_of(keys))


def may_hold(document: dict[str, object], one: Place) -> bool:
    """Whether the outermost keys of a document leave room for a place."""
    return any(".".join(one.keys[:size]) in document for size in range(1, len(one.keys) + 1))


def failed(document: dict[str, object], places: Sequence[Place]) -> bool:
    """Whether the request was refused, broken off, or ended in an error: its first token was not one of an answer."""
    for one in places:
        value = value_at(document, one.keys)
        if type(value) is int:
            if value >= 400:
                return True
        elif type(value) is str:
            if HTTP_ERROR.fullmatch(value) or value.lower() in FAILED or (value and one.keys[-1] == "error"):
                return True
        elif value and one.keys[-1] == "error":
            return True
    return False


def number_at(document: dict[str, object], one: Place) -> float | None:
    """The number at a place, in seconds for times; `None` where there is none."""
    value = value_at(document, one.keys)
    kind = type(value)
    if one.count:
        return float(len(value)) if isinstance(value, (str, list)) else None
    if kind is float or kind is int or kind is str:
        try:
            return float(value) * one.unit  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            return None
    return None


def value_at(document: dict[str, object], keys: tuple[str, ...]) -> object:
    """The value at the keys. The plain way first: a log of gigabytes asks this for every field of every line."""
    value: object = document
    for key in keys:
        if type(value) is not dict or key not in value:
            return _odd_value(document, keys) if len(keys) > 1 else None
        value = value[key]
    return value


def _odd_value(document: object, keys: tuple[str, ...]) -> object:
    """The value at keys that may hold dots themselves (`gen_ai.usage.input_tokens`), stand in a list, or in a text that
    is JSON."""
    if not keys:
        return document
    if isinstance(document, str) and document.startswith("{"):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError):
            return None
    if isinstance(document, list):
        at = int(keys[0]) if keys[0].isdecimal() else len(document)
        return _odd_value(document[at], keys[1:]) if at < len(document) else None
    if not isinstance(document, dict):
        return None
    for size in range(1, len(keys) + 1):
        joined = ".".join(keys[:size])
        if joined in document:
            return _odd_value(document[joined], keys[size:])
    return None


def _unit_of(keys: str) -> float:
    name = keys.rsplit(".", 1)[-1]
    for unit, endings in SUFFIXES.items():
        if name.endswith(endings):
            return UNITS[unit]
    return 1.0
