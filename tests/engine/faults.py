"""Faults to order. Each names what goes wrong; the default is an engine in health."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.records import dataclass, field


@dataclass
class Faults:
    """`paths` limits the transport faults to these paths (empty is all). Times in seconds, `huge` in bytes."""

    paths: tuple[str, ...] = ()
    delay: float = 0.0  # answer late
    half_open: bool = False  # take the request and never answer
    drip: float = 0.0  # one byte of the answer in so many seconds
    cut: bool = False  # close in the middle of the body
    slam: int = 0  # close this many connections without a word, then behave
    status: int = 0  # answer everything with this status
    status_once: int = 0  # answer the first request with this status
    body: bytes | None = None  # answer with these bytes instead
    huge: int = 0  # answer with so many bytes
    garbage: bool = False  # answer with something that is not HTTP
    gzip: bool = False  # compress the answer although nobody asked for it
    redirect: str = ""  # send elsewhere
    token: str = ""  # ask for this bearer token
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # paths that do not exist
    # What the engine does wrong with a request.
    short_transfer: int = 0  # so many pages too few for a prompt that was accepted and is longer than a thousand tokens
    mute: bool = False  # the model never copies
    ok_on_refusal: str | None = None  # a refusal is answered with 200 and this text
    refusal_status: int = 0  # a refusal is answered with this status
    leak_in_error: bool = False  # the refusal shows what stands in the pages
    front_limit: int = 0  # the front refuses longer prompts with 413
    no_usage: bool = False  # no usage figures
    wrong_usage: int = 0  # the usage figures are off by this many tokens
    sse: bool = False  # answer a plain request with an event stream

    def applies(self, path: str) -> bool:
        """Whether the transport faults touch this path."""
        return not self.paths or path in self.paths
