"""No token, prompt or foreign text leaves the live commands unasked: not in a report, a log line or an exception."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from auditor.cli import main
from auditor.live.http import Access, Answer, Secret
from auditor.model.records import replace
from tests.engine import Cluster, Engine, Faults
from tests.live import PROXY_VARIABLES, Served, served, words

TOKEN = "sk-live-7f3a9c"
PASSWORD = "hunter2"
ENGINE_KEY = "sk-the-engine-shows-its-own-key"
PROMPT = "the merger closes on friday"
ANSWER = "patient 4711 has"
SECRETS = (TOKEN, PASSWORD, ENGINE_KEY, PROMPT, ANSWER)
PREFILL = Engine(mode="prefill", version="0.5.19", context=3072, pools=(2048,))
DECODE = Engine(mode="decode", version="0.5.19", context=3072, pools=(6144,))
PAIR = ("--prefill", "{prefill}", "--decode", "{decode}")
# What the canary itself plants must not show either: in an engine that leaks it stands next to what tenants sent.
PLANTED = ("Register ", "lists the code", "river runs")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("AUDITOR_TOKEN", TOKEN)


def shown(*arguments: str) -> str:
    """Everything that a run of the command writes, exceptions included."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        main([*arguments])
    return out.getvalue()


def named(faults: Faults) -> str:
    """What differs from an engine in health."""
    return " ".join(name for name, value in vars(faults).items() if value != getattr(Faults(), name)) or "in health"


def tenants(where: Served) -> None:
    """Other tenants' traffic: their prompts stand in the pages of decode."""
    cluster = where.cluster
    for _ in range(4):
        cluster.complete(cluster.tokenizer.encode(f"{PROMPT}. {ANSWER} a fever. " * 60)[:1900], 8)


FAULTS = (
    Faults(),
    Faults(token=TOKEN),
    Faults(token="another"),
    Faults(status=500),
    Faults(body=json.dumps({"error": f"{PROMPT} {ANSWER}"}).encode()),
    Faults(body=f"{ANSWER} <html>".encode()),
    Faults(redirect=f"http://user:{PASSWORD}@127.0.0.2:9/{TOKEN}"),
    Faults(garbage=True),
    Faults(cut=True),
    Faults(slam=99),
    Faults(half_open=True),
)
COMMANDS = (
    ("gate", *PAIR, "--timeout", "0.4"),
    ("gate", *PAIR, "--timeout", "0.4", "--format", "json"),
    ("gate", *PAIR, "--timeout", "0.4", "--wait", "0.1", "--interval", "0.05"),
    ("canary", "{front}", *PAIR, "--timeout", "0.5", "--format", "json"),
    ("canary", "{front}", "--limit", "2042", "--context-length", "3072", "--model", "org/toy", "--timeout", "0.5"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command[0]} {len(command)}")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: named(fault))
def test_nothing_secret_is_shown(command: tuple[str, ...], fault: Faults) -> None:
    with served(Cluster(replace(PREFILL), replace(DECODE)), fault, fault, fault) as where:
        tenants(where)
        text = shown(*words(command, where))
    assert [secret for secret in (*SECRETS, *PLANTED) if secret in text] == []


@pytest.mark.parametrize(
    "leak", [Faults(leak_in_error=True), Faults(ok_on_refusal=f"{PROMPT} {ANSWER}")], ids=lambda fault: named(fault)
)
@pytest.mark.parametrize("version", ["0.5.19", "0.5.22"])
def test_what_leaks_is_not_repeated(version: str, leak: Faults) -> None:
    cluster = Cluster(replace(PREFILL, version=version), replace(DECODE, version=version), faults=leak)
    for form in ("terminal", "json"):
        with served(cluster) as where:
            tenants(where)
            text = shown(*words(("canary", "{front}", *PAIR, "--timeout", "5", "--format", form), where))
        assert "FAIL" in text or '"fail"' in text
        assert [secret for secret in (*SECRETS, *PLANTED) if secret in text] == []


def test_what_is_asked_for_is_shown() -> None:
    with served(Cluster(replace(PREFILL), replace(DECODE))) as where:
        tenants(where)
        text = shown(*words(("canary", "{front}", *PAIR, "--timeout", "5", "--plants", "1", "--show-text"), where))
    assert ANSWER in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("gate", f"http://user:{PASSWORD}@127.0.0.1:9"),
        ("gate", f"http://127.0.0.1:9/?key={PASSWORD}"),
        ("canary", f"https://:{PASSWORD}@127.0.0.1:9"),
        ("gate", f"http://user:{PASSWORD}@127.0.0.1:notaport"),
        ("gate", f"http://user:{PASSWORD}@[::1"),
        ("gate", f"ftp://user:{PASSWORD}@host"),
    ],
)
def test_a_password_in_a_url_is_not_repeated(arguments: tuple[str, ...]) -> None:
    assert PASSWORD not in shown(*arguments)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "HTTPS_PROXY"])
@pytest.mark.parametrize("scheme", ["http", "socks5", "nonsense"])
def test_a_password_of_a_proxy_is_not_shown(monkeypatch: pytest.MonkeyPatch, variable: str, scheme: str) -> None:
    monkeypatch.setenv(variable, f"{scheme}://user:{PASSWORD}@127.0.0.1:9")
    assert PASSWORD not in shown("gate", "http://127.0.0.1:9", "https://127.0.0.1:9", "--timeout", "1")


@pytest.mark.parametrize("bad", [f"{PASSWORD}\nX-Header: 1", f"{PASSWORD} two", f"{PASSWORD}\x00"])
def test_a_token_that_is_none_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bad: str) -> None:
    path = tmp_path / "token"
    path.write_text(bad, encoding="utf-8")
    text = shown("gate", "http://127.0.0.1:9", "--token-file", str(path))
    assert (PASSWORD in text, text.count("\n")) == (False, 1)


def test_prompts_of_a_log_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [json.dumps({"prompt": PROMPT, "text": ANSWER, "prompt_len": 9000, "ttft": 0.1})] * 40
    path.write_text("\n".join([*lines, f"{PROMPT} {TOKEN}", f'{{"prompt": "{PROMPT}'] * 2), encoding="utf-8")
    for form in ("terminal", "json"):
        text = shown("latency", str(path), "--format", form)
        assert [secret for secret in SECRETS if secret in text] == []


def test_no_repr_holds_a_token_or_a_body() -> None:
    assert TOKEN not in repr(Access(token=Secret(TOKEN))) + str(Secret(TOKEN)) + f"{Secret(TOKEN)}"
    assert ANSWER not in repr(Answer(200, ANSWER.encode(), 0.1))
