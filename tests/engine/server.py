"""The HTTP surface: an asynchronous server on 127.0.0.1 that answers for one role of a cluster, faults included."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.model.records import dataclass, field
from tests.engine.cluster import Cluster, Done, Engine
from tests.engine.faults import Faults

MAX_REQUEST = 64 * 1024 * 1024


@dataclass
class Request:
    """One request, body whole."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        """The body as an object, empty when it is none."""
        try:
            value = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass
class Running:
    """A server that runs. `seen` are the requests so far, as (method, path, headers)."""

    url: str
    seen: list[Request] = field(default_factory=list)


@contextmanager
def serve(
    cluster: Cluster, role: str = "front", faults: Faults | None = None, tls: tuple[Path, Path] | None = None
) -> Iterator[Running]:
    """Serve one role (`front`, `prefill` or `decode`) of a cluster on a free loopback port while a block runs; `tls` is
    a certificate and its key."""
    app = _App(cluster, role, faults or Faults())
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ports: list[int] = []
    stop: list[Callable[[], None]] = []

    async def main() -> None:
        context = None
        if tls is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*tls)
        server = await asyncio.start_server(app.connection, "127.0.0.1", 0, limit=MAX_REQUEST, ssl=context)
        ports.append(server.sockets[0].getsockname()[1])
        ended = asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        ready.set()
        await ended.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    if not ready.wait(10):
        raise RuntimeError("the test engine did not start")
    app.running.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{ports[0]}"
    try:
        yield app.running
    finally:
        stop[0]()
        thread.join(10)
        loop.close()


class _App:
    def __init__(self, cluster: Cluster, role: str, faults: Faults) -> None:
        self.cluster = cluster
        self.role = role
        self.faults = faults
        self.running = Running("")
        self._slammed = 0
        self._answered = 0

    @property
    def engine(self) -> Engine:
        if self.role == "decode" and self.cluster.decode is not None:
            return self.cluster.decode
        return self.cluster.prefill

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _request(reader)
        if request is None:
            return
        self.running.seen.append(request)
        faults = self.faults
        if faults.applies(request.path):
            if self._slammed < faults.slam:
                self._slammed += 1
                return
            if faults.half_open:
                await asyncio.sleep(3600)
            if faults.delay:
                await asyncio.sleep(faults.delay)
            if faults.garbage:
                writer.write(b"\x00\x01 hello, this is no HTTP\r\n\r\n")
                await writer.drain()
                return
        status, body, headers = self._answer(request)
        if headers.get("content-encoding") is None and faults.gzip and faults.applies(request.path):
            body, headers = gzip.compress(body), {**headers, "content-encoding": "gzip"}
        lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in {"content-type": "application/json", **headers}.items()]
        data = "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body
        if faults.cut and faults.applies(request.path):
            data = data[: len(data) - max(len(body) // 2, 1)]
        if faults.drip and faults.applies(request.path):
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(faults.drip)
            return
        writer.write(data)
        await writer.drain()

    def _answer(self, request: Request) -> tuple[int, bytes, dict[str, str]]:
        faults = self.faults
        if faults.applies(request.path):
            self._answered += 1
            if faults.redirect:
                return 307, b"", {"location": faults.redirect + request.path}
            if faults.token and request.headers.get("authorization") != f"Bearer {faults.token}":
                return 401, b'{"error":"Unauthorized"}', {}
            if faults.status:
                return faults.status, b'{"error":{"message":"no"}}', dict(faults.headers)
            if faults.status_once and self._answered == 1:
                return faults.status_once, b'{"error":{"message":"no"}}', {}
            if faults.huge:
                return 200, b'{"filler":"' + b"x" * faults.huge + b'"}', {}
            if faults.body is not None:
                return 200, faults.body, {}
        path = request.path
        if path in faults.missing:
            return 404, b'{"detail":"Not Found"}', {}
        status, value = self._route(request)
        body = json.dumps(value).encode()
        headers = dict(faults.headers)
        if faults.sse and path.endswith("completions"):
            body = b"data: " + body + b"\n\ndata: [DONE]\n\n"
            headers["content-type"] = "text/event-stream"
        return status, body, headers

    def _route(self, request: Request) -> tuple[int, object]:
        engine, path = self.engine, request.path
        if request.method == "GET":
            if path == "/server_info" and engine.release >= (0, 5, 6):
                return 200, engine.server_info()
            if path == "/get_server_info":
                return 200, engine.server_info()
            if path == "/v1/models":
                return 200, engine.models()
            if path == "/v1/loads" and engine.release >= (0, 5, 9):
                return 200, engine.loads()
            if path == "/health":
                return 200, {}
            return 404, {"detail": "Not Found"}
        given = request.json()
        if path in ("/tokenize", "/v1/tokenize"):
            ids = self.cluster.tokenizer.encode(str(given.get("prompt")), given.get("add_special_tokens") is not False)
            return 200, {"tokens": ids, "count": len(ids), "max_model_len": engine.context}
        if path == "/v1/completions":
            return self._completion(self._ids(given.get("prompt")), int(str(given.get("max_tokens", 16))), "text")
        if path == "/v1/chat/completions":
            ids = self._chat(given.get("messages"))
            room = given.get("max_completion_tokens", given.get("max_tokens", 16))
            return self._completion(ids, int(str(room)), "chat")
        if path == "/generate":
            parameters = given.get("sampling_params")
            room = parameters.get("max_new_tokens", 16) if isinstance(parameters, dict) else 16
            return self._completion(self._ids(given.get("input_ids", given.get("text"))), int(room), "generate")
        return 404, {"detail": "Not Found"}

    def _ids(self, prompt: object) -> list[int]:
        if isinstance(prompt, list):
            return [number for number in prompt if isinstance(number, int)]
        return self.cluster.tokenizer.encode(str(prompt))

    def _chat(self, messages: object) -> list[int]:
        text = ""
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                text += f"<{message.get('role')}>{message.get('content')}"
        # The one instruction that the toy model follows; a real one needs no such help.
        asked = re.search(r"does register (\w+) list\?", text)
        if asked is not None:
            text += f"<assistant>Register {asked[1]} lists the code"
        return self.cluster.tokenizer.encode(text)

    def _completion(self, ids: list[int], room: int, api: str) -> tuple[int, object]:
        done = self.cluster.complete(ids, room)
        if done.status != 200:
            kind = {"message": done.text, "type": "BadRequestError", "code": done.status}
            return done.status, {"object": "error", **kind} if api != "generate" else {"error": kind}
        return 200, self._body(done, api)

    def _body(self, done: Done, api: str) -> dict[str, object]:
        model = self.cluster.front.model
        faults = self.cluster.faults
        counted = done.prompt_tokens + faults.wrong_usage
        if api == "generate":
            meta = {} if faults.no_usage else {"prompt_tokens": counted, "cached_tokens": 0}
            return {"text": done.text, "meta_info": {"finish_reason": {"type": done.finish_reason}, **meta}}
        choice: dict[str, object] = {"index": 0, "finish_reason": done.finish_reason}
        if api == "chat":
            choice["message"] = {"role": "assistant", "content": done.text}
        else:
            choice["text"] = done.text
        body: dict[str, object] = {"id": "x", "model": model, "choices": [choice]}
        if not faults.no_usage:
            body["usage"] = {"prompt_tokens": counted, "completion_tokens": done.completion_tokens}
        return body


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {}
    for line in lines[1:]:
        if ":" in line:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    # As a proxy it is sent the whole URL.
    path = "/" + target.split("://", 1)[1].split("/", 1)[1] if "://" in target else target
    return Request(method, path.split("?")[0], headers, body)
