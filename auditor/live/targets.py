"""Where a worker's documents come from: a running engine, or documents saved from one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from auditor.errors import UsageError
from auditor.live.http import MAX_BODY_BYTES, Access, Answer, NoAnswer, Session, base_url, session
from auditor.live.server_info import Document, Documents, kind_of, needs_loads
from auditor.model.facts import Role
from auditor.model.records import dataclass

TCP = 6  # IPPROTO_TCP: one entry an address, not one a socket type
AT_ONCE = 8  # requests under way: a gate over sixty ranks must not look like an attack


@dataclass(frozen=True, slots=True)
class Target:
    """One worker as the user named it: a URL, a path, or `-` for standard input. `host` is the host of a URL whose
    name was replaced by one of its addresses."""

    role: Role
    text: str
    url: str | None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What was got from one target: its documents, and in words what was not got."""

    target: Target
    documents: Documents
    problems: tuple[str, ...] = ()
    connection_failed: bool = False


def target(role: Role, text: str) -> Target:
    """A target from the command line; `UsageError` for what is neither a file nor a URL."""
    if text == "-":
        return Target(role, "-", None)
    if "://" in text:
        url = base_url(text)
        return Target(role, url, url)
    if Path(text).is_file():
        return Target(role, text, None)
    if ":" in text and "/" not in text:
        raise UsageError(f"`{text}` is no file; a running engine is written with its scheme: http://{text}")
    raise UsageError(f"`{text}` does not exist")


def observe_saved(saved: Target) -> Observation:
    """The documents of a file: one JSON document, or several one after the other, each known by its shape."""
    text = _read(saved.text)
    decoder = json.JSONDecoder()
    found: dict[str, Document] = {}
    problems: list[str] = []
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            problems.append("the file holds something that is not JSON")
            break
        for document in _unpacked(value):
            kind = kind_of(document)
            if kind is not None:
                found.setdefault(kind, document)
    if "server-info" not in found:
        problems.append("the file holds no /server_info document")
    documents = Documents(found.get("server-info"), found.get("models"), found.get("loads"))
    return Observation(saved, documents, tuple(problems))


async def observe_running(open_session: Session, running: Target) -> Observation:
    """The documents of a running engine: `/server_info` (or its old name), `/v1/models`, and `/v1/loads` where
    `/server_info` does not show the pool of every rank."""
    problems: list[str] = []
    info: Document | None = None
    models: Document | None = None
    loads: Document | None = None

    async def get(path: str) -> Answer:
        return await open_session.get(f"{running.url}{path}", running.host)

    try:
        # The new name first (0.5.6 and later), then the old one (0.4.6 and later, deprecated).
        answer = await get("/server_info")
        if answer.status in (404, 405):
            answer = await get("/get_server_info")
        info = _document(answer, "server-info")
    except NoAnswer as failure:
        problems.append(f"/server_info: {failure.reason}")
        if failure.before_answer:
            return Observation(running, Documents(), tuple(problems), connection_failed=True)
    try:
        models = _document(await get("/v1/models"), "models")
    except NoAnswer as failure:
        problems.append(f"/v1/models: {failure.reason}")
    if info is not None and needs_loads(info):
        try:
            loads = _document(await get("/v1/loads"), "loads")
        except NoAnswer as failure:
            problems.append(f"/v1/loads: {failure.reason}")
    return Observation(running, Documents(info, models, loads), tuple(problems))


async def observe(
    targets: Sequence[Target],
    access: Access,
    *,
    all_addresses: bool = False,
    wait: float = 0.0,
    interval: float = 5.0,
    agreed: Callable[[Sequence[Observation]], bool] = lambda _: True,
    waiting: Callable[[str], None] = lambda _: None,
) -> tuple[Observation, ...]:
    """Observe every target; with `all_addresses`, every address that a target's host name stands for.

    For up to `wait` seconds, connection failures are tried again every `interval` seconds, and so is everything while
    the workers do not agree; an HTTP answer of any status is an answer and ends the waiting.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait
    saved = {one: observe_saved(one) for one in targets if one.url is None}
    gate = asyncio.Semaphore(AT_ONCE)
    async with session(access) as open_session:

        async def one(each: Target) -> list[Observation]:
            if each.url is None:
                return [saved[each]]
            places = await _addresses(each) if all_addresses else [each]
            if not places:
                return [Observation(each, Documents(), ("the host name does not resolve",), connection_failed=True)]
            found = []
            for place in places:
                async with gate:
                    found.append(await observe_running(open_session, place))
            return found

        while True:
            seen = tuple(chain.from_iterable(await asyncio.gather(*(one(each) for each in targets))))
            failed = [each for each in seen if each.connection_failed]
            if not failed and (len(saved) == len(targets) or agreed(seen)):
                return seen
            if not failed and any(each.documents.server_info is None for each in seen):
                return seen
            left = deadline - loop.time()
            if left <= 0:
                return seen
            waiting(f"{failed[0].target.text}: {failed[0].problems[0]}" if failed else "the workers do not agree yet")
            await asyncio.sleep(min(interval, left))


async def _addresses(named: Target) -> list[Target]:
    """One target for each address of a host name: behind a headless service stand many workers."""
    parts = urlsplit(named.url or "")
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, proto=TCP)
    except OSError:
        return []
    addresses = sorted({str(entry[4][0]) for entry in found})
    if addresses == [host]:
        return [named]
    return [
        Target(
            named.role,
            f"{named.text} [{address}]",
            f"{parts.scheme}://{f'[{address}]' if ':' in address else address}:{port}{parts.path}",
            parts.netloc,
        )
        for address in addresses
    ]


def _document(answer: Answer, kind: str) -> Document:
    if answer.status in (401, 403):
        raise NoAnswer("not-json", f"HTTP {answer.status}: a token is needed, or this one is not accepted")
    if answer.status != 200:
        raise NoAnswer("not-json", f"HTTP {answer.status}")
    value = answer.json()
    if kind_of(value) != kind or not isinstance(value, dict):
        raise NoAnswer("not-json", "the answer is JSON, but not the engine's document")
    return value


def _unpacked(value: object) -> list[Document]:
    # A bundle, {"server_info": {...}, "models": {...}}, is as good as the documents side by side.
    if not isinstance(value, dict):
        return []
    if kind_of(value) is not None:
        return [value]
    return [inner for inner in value.values() if isinstance(inner, dict)]


def _read(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BODY_BYTES + 1)
        else:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BODY_BYTES + 1)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    if len(data) > MAX_BODY_BYTES:
        raise UsageError(f"`{path}` is larger than {MAX_BODY_BYTES} bytes")
    return data.decode("utf-8-sig", "replace")
