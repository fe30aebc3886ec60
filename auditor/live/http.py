"""Requests to an engine: bounded in time and size, TLS verified, never led to another host, secrets never shown."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

import httpx

from auditor import __version__
from auditor.errors import UsageError
from auditor.model.records import dataclass, field

MAX_BODY_BYTES = 16 * 1024 * 1024  # /server_info of 64 data-parallel ranks, all arguments repeated, stays under 4 MiB
MAX_REDIRECTS = 3
CONNECT_SECONDS = 10.0

Failure = Literal["connect", "timeout", "broken", "tls", "too-large", "redirect", "encoded", "not-json"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A token. Its value appears in the request header and nowhere else."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return "***"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the engine: `timeout` in seconds for one whole request, body included; `ca_file` a PEM bundle that
    is trusted in place of the default one."""

    timeout: float = 30.0
    token: Secret | None = None
    ca_file: Path | None = None
    max_body_bytes: int = MAX_BODY_BYTES


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer whose body arrived whole and inside the bound."""

    status: int
    body: bytes = field(repr=False)
    seconds: float

    def json(self) -> object:
        """The body as JSON; `NoAnswer` when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NoAnswer("not-json", f"HTTP {self.status} with a body that is not JSON") from None


class NoAnswer(Exception):
    """No usable answer came. `reason` is in our own words: what the peer sent is never repeated in it."""

    def __init__(self, kind: Failure, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason

    @property
    def before_answer(self) -> bool:
        """Whether the connection failed before an HTTP answer came: what `--wait` tries again."""
        return self.kind in ("connect", "timeout", "broken")


def base_url(text: str) -> str:
    """A URL given by the user, without a trailing slash; `UsageError` for what cannot be a server's address.

    A user name or password in it is refused: the command line is visible to every process of the machine.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise UsageError("a URL cannot be parsed: write it as http://host:port") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"credentials in a URL are refused ({parts.scheme}://...@{parts.hostname}); use --token-env or --token-file"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"`{text}` is no http or https URL")
    if parts.query or parts.fragment:
        raise UsageError(f"`{parts.scheme}://{parts.netloc}{parts.path}` must not carry a query or fragment")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    url = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    try:
        httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise UsageError(f"`{text}` is no URL: its host name cannot exist") from None
    return url


class Session:
    """An open client. Made by `session()`; `get` and `post` give an `Answer` or raise `NoAnswer`."""

    def __init__(self, client: httpx.AsyncClient, access: Access) -> None:
        self._client = client
        self._access = access

    async def get(self, url: str, host: str | None = None) -> Answer:
        """GET `url`. `host` is the name to ask for where the URL holds one of its addresses."""
        return await self._send("GET", url, None, host)

    async def post(self, url: str, document: object) -> Answer:
        """POST `document` as JSON to `url`."""
        return await self._send("POST", url, json.dumps(document, separators=(",", ":")).encode(), None)

    async def _send(self, method: str, url: str, content: bytes | None, host: str | None) -> Answer:
        limit = self._access.timeout
        try:
            # One deadline over connect, redirects and every byte: a peer that drips headers would never trip a
            # timeout that starts anew with each read.
            return await asyncio.wait_for(self._follow(method, url, content, host), timeout=limit)
        except (asyncio.TimeoutError, TimeoutError, httpx.TimeoutException):
            raise NoAnswer("timeout", f"no complete answer within {limit:g} s") from None
        except httpx.ConnectError as error:
            raise _connect_failure(error) from None
        except httpx.ProxyError:
            raise NoAnswer("connect", "the proxy refused the connection") from None
        except httpx.TransportError:
            raise NoAnswer("broken", "the connection broke before the answer was complete") from None
        except httpx.HTTPError:
            raise NoAnswer("broken", "the answer is not valid HTTP") from None
        except (httpx.InvalidURL, UnicodeError):
            raise NoAnswer("redirect", "a redirect to something that is no URL") from None

    async def _follow(self, method: str, url: str, content: bytes | None, host: str | None) -> Answer:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        extensions: dict[str, str] = {}
        if host is not None:
            headers["Host"] = host
            extensions["sni_hostname"] = urlsplit(f"//{host}").hostname or host
        started = time.monotonic()
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream(
                method, url, content=content, headers=headers, extensions=extensions
            ) as response:
                location = response.headers.get("location")
                if response.status_code in (301, 302, 303, 307, 308) and location:
                    url = _redirect(method, url, location, response.status_code)
                    continue
                # Asked for as-is: a compressed body could unfold to any size before it can be counted.
                if response.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
                    raise NoAnswer("encoded", "the answer is compressed although it was asked for as it is")
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > self._access.max_body_bytes:
                        raise NoAnswer("too-large", f"the answer is larger than {self._access.max_body_bytes} bytes")
                return Answer(response.status_code, bytes(body), time.monotonic() - started)
        raise NoAnswer("redirect", f"more than {MAX_REDIRECTS} redirects")


@asynccontextmanager
async def session(access: Access) -> AsyncIterator[Session]:
    """A client for the length of a block. Proxies and extra CA files of the environment are respected."""
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": f"auditor/{__version__}"}
    if access.token is not None:
        headers["Authorization"] = f"Bearer {access.token.value}"
    try:
        verify: ssl.SSLContext | bool = True
        if access.ca_file is not None:
            verify = ssl.create_default_context(cafile=str(access.ca_file))
        client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(access.timeout, connect=min(CONNECT_SECONDS, access.timeout)),
            follow_redirects=False,
            verify=verify,
            trust_env=True,
        )
    except OSError:
        raise UsageError(f"`{access.ca_file}` holds no CA certificates that can be read") from None
    except (ImportError, ValueError):
        # A SOCKS proxy without its extra package, or a proxy variable that is no URL; it may hold a password.
        raise UsageError("a proxy variable of the environment cannot be used (only http and https proxies)") from None
    async with client:
        yield Session(client, access)


def _redirect(method: str, url: str, location: str, status: int) -> str:
    """Where a redirect leads, if it stays on the same origin (or only moves it from http to https)."""
    target = urljoin(url, location)
    try:
        before, after = urlsplit(url), urlsplit(target)
        same = before.hostname == after.hostname and before.scheme == after.scheme and before.port == after.port
        upgrade = (
            before.hostname == after.hostname
            and (before.scheme, after.scheme) == ("http", "https")
            and (before.port or 80) == 80
            and (after.port or 443) == 443
        )
    except ValueError:
        raise NoAnswer("redirect", "a redirect to something that is no URL") from None
    if not (same or upgrade):
        raise NoAnswer("redirect", f"HTTP {status} to another host, not followed")
    if method != "GET" and status not in (307, 308):
        raise NoAnswer("redirect", f"HTTP {status} in answer to a {method}, not followed")
    return target


def _connect_failure(error: httpx.ConnectError) -> NoAnswer:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NoAnswer("tls", f"the TLS certificate is not trusted ({cause.verify_message})")
        if isinstance(cause, ssl.SSLError):
            return NoAnswer("tls", "no TLS connection could be made")
        if isinstance(cause, ConnectionRefusedError):
            return NoAnswer("connect", "connection refused")
        cause = cause.__cause__ or cause.__context__
    text = str(error).lower()
    if "certificate" in text:
        return NoAnswer("tls", "the TLS certificate is not trusted")
    if "name or service not known" in text or "getaddrinfo" in text or "nodename" in text or "resolution" in text:
        return NoAnswer("connect", "the host name does not resolve")
    return NoAnswer("connect", "no connection")
