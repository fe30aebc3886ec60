"""Asking an engine or its front for text, over each API that they offer, and reading what comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from auditor.live.http import NoAnswer, Session
from auditor.model.records import dataclass, field

Api = Literal["completions", "generate", "chat"]
Prompt = str | list[int]
PATHS: Mapping[Api, str] = {
    "completions": "/v1/completions",
    "generate": "/generate",
    "chat": "/v1/chat/completions",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `text` is what was generated, `body` everything; neither is shown unless asked for. `failure`
    says in our words why there was no answer."""

    status: int | None
    text: str = field(default="", repr=False)
    body: str = field(default="", repr=False)
    prompt_tokens: int | None = None
    failure: str | None = None

    @property
    def digest(self) -> str | None:
        """SHA-256 of the body: what is kept of it."""
        return None if self.status is None else hashlib.sha256(self.body.encode("utf-8", "replace")).hexdigest()


async def generate(open_session: Session, base: str, api: Api, model: str, prompt: Prompt, room: int) -> Reply:
    """One request for at most `room` tokens, without sampling; never raises for what the engine does."""
    try:
        answer = await open_session.post(base + PATHS[api], _request(api, model, prompt, room))
    except NoAnswer as failure:
        return Reply(None, failure=failure.reason)
    body = answer.body.decode("utf-8", "replace")
    documents = _documents(body)
    return Reply(answer.status, _text(documents), body, _prompt_tokens(documents))


async def tokenize(open_session: Session, base: str, model: str, text: str, special: bool) -> list[int]:
    """The engine's own token ids of a text; `NoAnswer` when it does not give them."""
    request = {"model": model, "prompt": text, "add_special_tokens": special}
    answer = await open_session.post(base + "/tokenize", request)
    if answer.status in (404, 405):
        answer = await open_session.post(base + "/v1/tokenize", request)
    if answer.status != 200:
        raise NoAnswer("not-json", f"/tokenize: HTTP {answer.status}")
    value = answer.json()
    tokens = value.get("tokens") if isinstance(value, Mapping) else None
    if not isinstance(tokens, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in tokens):
        raise NoAnswer("not-json", "/tokenize gives no token ids")
    return tokens


def _request(api: Api, model: str, prompt: Prompt, room: int) -> dict[str, object]:
    if api == "generate":
        what = "text" if isinstance(prompt, str) else "input_ids"
        return {what: prompt, "sampling_params": {"max_new_tokens": room, "temperature": 0}, "stream": False}
    if api == "chat":
        message = {"role": "user", "content": prompt}
        return {"model": model, "messages": [message], "max_tokens": room, "temperature": 0, "stream": False}
    return {"model": model, "prompt": prompt, "max_tokens": room, "temperature": 0, "stream": False}


def _documents(body: str) -> list[Mapping[str, object]]:
    """The JSON objects of a body: one, or those of an event stream that a front sent although none was asked for."""
    texts: Sequence[str] = [body]
    if body.lstrip().startswith("data:"):
        texts = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    found = []
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping):
            found.append(value)
    return found


def _text(documents: Sequence[Mapping[str, object]]) -> str:
    parts: list[str] = []
    for document in documents:
        if isinstance(document.get("text"), str):
            parts.append(str(document["text"]))
        choices = document.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping):
                continue
            for holder in (choice, choice.get("message"), choice.get("delta")):
                if isinstance(holder, Mapping):
                    # A reasoning model may spend its few tokens on thinking aloud.
                    fields = (holder.get(name) for name in ("text", "content", "reasoning_content"))
                    parts += [value for value in fields if isinstance(value, str)]
    return "".join(parts)


def _prompt_tokens(documents: Sequence[Mapping[str, object]]) -> int | None:
    for document in reversed(documents):
        for holder in (document.get("usage"), document.get("meta_info")):
            count = holder.get("prompt_tokens") if isinstance(holder, Mapping) else None
            if isinstance(count, int) and not isinstance(count, bool):
                return count
    return None
