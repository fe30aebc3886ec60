"""Request logs of gateways and engines, read line by line in bounded memory into (length, time to first token)."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from auditor.errors import UsageError

if TYPE_CHECKING:
    from io import BufferedReader

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 8 << 20  # an engine's log line with a prompt of a million token ids is about 7 MB
DECODER = json.JSONDecoder()
MAX_GROUPS = 64
MAX_SHAPES = 512
MAX_LENGTH = 1 << 40
MAX_SECONDS = 1e7
Field = Literal["length", "ttft", "cached", "status", "queue", "group"]
FIELDS: tuple[Field, ...] = ("length", "ttft", "cached", "status", "queue", "group")
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

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


FAILED = frozenset({"error", "failed", "aborted", "abort", "cancelled", "canceled", "timeout", "rejected"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands: keys from the outside in; `count` takes the number of items or characters there; `unit` is
    the factor that gives seconds (times only)."""

    text: str
    keys: tuple[str, ...]
    count: bool = False
    unit: float = 1.0


class Sample(NamedTuple):
    """One request: `length` in the unit of the log (tokens, as a rule), `seconds` to the first token less the time in
    the queue where that is logged, `cached` tokens, `None` when the log does not say."""

    group: str
    length: int
    seconds: float
    cached: float | None


@dataclass
class Tally:
    """What became of the lines. `reasons` counts those that gave no sample, by reason; `paths` are the fields found."""

    lines: int = 0
    samples: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    paths: dict[Field, str] = field(default_factory=dict)
    truncated: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)


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


def samples(paths: Sequence[str], mapping: Fields, tally: Tally) -> Iterator[Sample]:
    """Every request of the logs that has a length and a time; the rest is counted in `tally`. `-` is standard input.
    Raises `UsageError` for a path that cannot be opened."""
    finder = _Finder(mapping, tally)
    for path in paths:
        for line in _lines(path, tally):
            tally.lines += 1
            sample = finder.sample(line)
            if sample is not None:
                tally.samples += 1
                yield sample


class _Finder:
    """Finds the fields of one line after the other. Which candidates can stand in it follows from its outermost keys,
    and lines of one log have few sets of those."""

    def __init__(self, fields: Fields, tally: Tally) -> None:
        self._tally = tally
        self._all: dict[Field, tuple[Place, ...]] = {}
        self._shapes: dict[tuple[str, ...], dict[Field, tuple[Place, ...]]] = {}
        for name in FIELDS:
            known = fields.named.get(name)
            unit = fields.unit if name == "ttft" else None
            candidates = (known,) if known is not None else tuple(place(text, unit) for text in CANDIDATES[name])
            self._all[name] = candidates

    def sample(self, line: bytes) -> Sample | None:
        """The request of a line, `None` when it holds none; the tally says why."""
        reasons = self._tally.reasons
        document = _document(line)
        if document is None:
            reasons["not JSON" if line.strip() else "empty"] += 1
            return None
        places = self._places(document)
        length, seconds = self._number(document, places, "length"), self._number(document, places, "ttft")
        if length is None or seconds is None:
            reasons["no length and time"] += 1
            return None
        if places["status"] and _failed(document, places["status"]):
            reasons["failed request"] += 1
            return None
        if not 1 <= length < MAX_LENGTH or not 0 <= seconds < MAX_SECONDS:
            reasons["impossible figures"] += 1
            return None
        if seconds == 0:
            # Not an answer in no time: a figure that was never set (no streaming, an aborted request).
            reasons["zero time"] += 1
            return None
        if places["queue"]:
            queue = self._number(document, places, "queue")
            if queue is not None and 0 < queue < seconds:
                seconds -= queue
        cached = self._number(document, places, "cached") if places["cached"] else None
        group = self._group(document, places["group"]) if places["group"] else ""
        return Sample(group, int(length), seconds, cached)

    def _places(self, document: dict[str, object]) -> dict[Field, tuple[Place, ...]]:
        shape = tuple(document)
        found = self._shapes.get(shape)
        if found is None:
            found = {
                name: tuple(one for one in places if _may_hold(document, one)) for name, places in self._all.items()
            }
            if len(self._shapes) < MAX_SHAPES:
                self._shapes[shape] = found
        return found

    def _number(
        self, document: dict[str, object], places: Mapping[Field, tuple[Place, ...]], name: Field
    ) -> float | None:
        for one in places[name]:
            value = _at(document, one)
            if value is not None:
                if name not in self._tally.paths:
                    self._tally.paths[name] = one.text
                return value
        return None

    def _group(self, document: dict[str, object], places: Sequence[Place]) -> str:
        groups = self._tally.groups
        for one in places:
            value = _value(document, one.keys)
            if isinstance(value, str) and value:
                name = value[:80]
                if name not in groups:
                    if len(groups) >= MAX_GROUPS:
                        return "(others)"
                    groups.add(name)
                return name
        return ""


def _may_hold(document: dict[str, object], one: Place) -> bool:
    return any(".".join(one.keys[:size]) in document for size in range(1, len(one.keys) + 1))


def _failed(document: dict[str, object], places: Sequence[Place]) -> bool:
    """Whether the request was refused, broken off, or ended in an error: its first token was not one of an answer."""
    for one in places:
        value = _value(document, one.keys)
        if type(value) is int:
            if value >= 400:
                return True
        elif type(value) is str:
            if (value.isdigit() and int(value) >= 400) or value.lower() in FAILED:
                return True
            if value and one.keys[-1] == "error":
                return True
        elif value and one.keys[-1] == "error":
            return True
    return False


def _at(document: dict[str, object], one: Place) -> float | None:
    value = _value(document, one.keys)
    kind = type(value)
    if one.count:
        return float(len(value)) if isinstance(value, (str, list)) else None
    if kind is float or kind is int or kind is str:
        try:
            return float(value) * one.unit  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            return None
    return None


def _value(document: dict[str, object], keys: tuple[str, ...]) -> object:
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
        at = int(keys[0]) if keys[0].isdigit() else len(document)
        return _odd_value(document[at], keys[1:]) if at < len(document) else None
    if not isinstance(document, dict):
        return None
    for size in range(1, len(keys) + 1):
        joined = ".".join(keys[:size])
        if joined in document:
            return _odd_value(document[joined], keys[size:])
    return None


def _unit_of(keys: str) -> float:
    name = keys.rsplit(".", 1)[-1].lower()
    for suffix, unit in (("_ms", "ms"), ("millis", "ms"), ("milliseconds", "ms"), ("_us", "us"), ("_ns", "ns")):
        if name.endswith(suffix):
            return UNITS[unit]
    return 1.0


def _document(line: bytes) -> dict[str, object] | None:
    """The JSON object of a line: the line itself, what stands behind a log prefix, or what a container log wraps."""
    start = line.find(b"{")
    if start < 0:
        return None
    try:
        value, _ = DECODER.raw_decode(
            line.decode("utf-8", "replace") if start == 0 else line[start:].decode("utf-8", "replace")
        )
        if "log" in value:
            inner = value["log"]
            if isinstance(inner, str) and "{" in inner:
                value, _ = DECODER.raw_decode(inner, inner.index("{"))
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def _lines(path: str, tally: Tally) -> Iterator[bytes]:
    try:
        with _open(path) as stream:
            yield from _split(stream, tally)
    except (EOFError, gzip.BadGzipFile):
        tally.truncated.append(path)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror or 'no such log'}") from None


def _open(path: str) -> BufferedReader:
    if path == "-":
        return cast("BufferedReader", sys.stdin.buffer)
    if Path(path).is_dir():
        raise UsageError(f"`{path}` is a folder; name its files")
    stream = Path(path).open("rb")  # noqa: SIM115 (the caller closes it)
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    # It has the methods that are used here, under another type.
    return cast("BufferedReader", gzip.GzipFile(fileobj=stream)) if packed else stream


def _split(stream: BufferedReader, tally: Tally) -> Iterator[bytes]:
    rest = b""
    skipping = False
    # `read1`: of a packed log that breaks off, everything up to there is read.
    while chunk := stream.read1(CHUNK_BYTES):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if skipping:
                skipping = False
                tally.lines += 1
                tally.reasons["line too long"] += 1
                continue
            yield line
        if len(rest) > MAX_LINE_BYTES:
            rest, skipping = b"", True
    if skipping:
        tally.lines += 1
        tally.reasons["line too long"] += 1
    elif rest:
        yield rest
