"""Request logs of gateways and engines, read line by line in bounded memory into (length, time to first token)."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from auditor.errors import UsageError
from auditor.live.latency_fields import (
    CANDIDATES,
    FIELDS,
    Field,
    Fields,
    Place,
    failed,
    may_hold,
    number_at,
    place,
    value_at,
)
from auditor.model.records import dataclass, field

if TYPE_CHECKING:
    from io import BufferedReader

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 8 << 20  # an engine's log line with a prompt of a million token ids is about 7 MB
DECODER = json.JSONDecoder()
MAX_GROUPS = 64
MAX_SHAPES = 512
MAX_LENGTH = 1 << 40
MAX_SECONDS = 1e7


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
        if places["status"] and failed(document, places["status"]):
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
                name: tuple(one for one in places if may_hold(document, one)) for name, places in self._all.items()
            }
            if len(self._shapes) < MAX_SHAPES:
                self._shapes[shape] = found
        return found

    def _number(
        self, document: dict[str, object], places: Mapping[Field, tuple[Place, ...]], name: Field
    ) -> float | None:
        for one in places[name]:
            value = number_at(document, one)
            if value is not None:
                if name not in self._tally.paths:
                    self._tally.paths[name] = one.text
                return value
        return None

    def _group(self, document: dict[str, object], places: Sequence[Place]) -> str:
        groups = self._tally.groups
        for one in places:
            value = value_at(document, one.keys)
            if isinstance(value, str) and value:
                name = value[:80]
                if name not in groups:
                    if len(groups) >= MAX_GROUPS:
                        return "(others)"
                    groups.add(name)
                return name
        return ""


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
