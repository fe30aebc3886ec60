"""Packages that a command installs: pip, uv, conda and their kin, and wheels that are fetched by address."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from auditor.model.facts import Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.syntax.words import Word

_PIP = re.compile(r"pip[\d.]*$")
_PYTHON = re.compile(r"(?:python|pypy|py)[\d.]*(?:\.exe)?$|\$")
_VALUED = {
    "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links",
    "-t", "--target", "--prefix", "--root", "--platform", "--python-version", "--implementation", "--abi",
    "--python", "-p", "--only-binary", "--no-binary", "--progress-bar", "--timeout", "--retries", "--proxy",
    "--trusted-host", "--cache-dir", "--log", "--src", "--config-settings", "-C", "--global-option",
    "--build-option", "--upgrade-strategy", "--report", "--index-strategy", "--torch-backend", "--index",
    "--default-index", "--resolution", "--prerelease", "--group", "--extra", "--optional", "--tag", "--rev",
    "--branch", "-n", "--name", "--override", "--overrides", "--build-constraint", "-b", "--build-constraints",
    "-d", "--dest", "-w", "--wheel-dir", "--no-build-isolation-package", "--no-build-package", "--refresh-package",
    "--reinstall-package", "--upgrade-package", "-P", "--exclude-newer", "--link-mode", "--config-file",
    "--project", "--directory", "--source", "--package", "--channel", "--feature", "--solver", "--file", "--cert",
    "--client-cert", "--keyring-provider", "--exists-action",
}  # fmt: skip
"""Options with a value (pip 25, uv 0.8, poetry, pdm, conda, pixi manuals); the value is no package."""
_TOOLS: dict[tuple[str, ...], str] = {
    ("uv", "pip", "install"): "pip",
    ("uv", "add"): "pip",
    ("uv", "tool", "install"): "pip",
    ("poetry", "add"): "poetry",
    ("pdm", "add"): "pip",
    ("pipenv", "install"): "pip",
    ("pipx", "install"): "pip",
    ("pipx", "inject"): "pip",
    ("rye", "add"): "pip",
    ("pixi", "add"): "conda",
    ("conda", "install"): "conda",
    ("conda", "create"): "conda",
    ("mamba", "install"): "conda",
    ("mamba", "create"): "conda",
    ("micromamba", "install"): "conda",
    ("micromamba", "create"): "conda",
}


def install_facts(words: Sequence[Word], source: SourceFile, scope: str) -> Iterator[Fact]:
    """The packages that one command installs or downloads."""
    texts = [word.text for word in words]
    program = texts[0].rpartition("/")[2]
    start, kind = _start(program, texts)
    if start is None and program in _CARRIERS:
        start, kind = _carried(texts)
        if program == "uv" and start is not None:
            yield from _with(words[:start], source, scope)
    if start is None:
        if program in ("wget", "curl", "aria2c"):
            for word in words[1:]:
                if ".whl" in word.text:
                    yield from _one(word, source, scope)
        elif program in ("uv", "uvx"):
            yield from _with(words, source, scope)
        return
    index = start
    while index < len(words):
        word, text = words[index], texts[index]
        index += 1
        if text == "--with" or (text in ("-e", "--editable") and index < len(words)):
            if index < len(words):
                yield from _one(words[index], source, scope)
                index += 1
        elif text.startswith("-"):
            if text in _VALUED and "=" not in text:
                index += 1
        elif kind == "poetry" and "@" in text and (reference := _constrained(word, source, scope)) is not None:
            yield reference
        elif kind == "conda" and (match := re.fullmatch(r"(?:[\w.-]+::)?([A-Za-z][\w.-]*)=([\w.]+)(?:=.*)?", text)):
            name = re.sub(r"[-_.]+", "-", match.group(1)).lower()
            yield PackageReference(
                name, "pinned", scope, word.span, specifier=f"=={match.group(2)}", version=match.group(2)
            )
        else:
            yield from _one(word, source, scope)


_CARRIERS = frozenset(
    {
        "docker", "podman", "nerdctl", "docker-compose", "kubectl", "oc", "apptainer", "singularity", "ssh", "srun",
        "poetry", "pdm", "uv", "hatch", "pipenv", "rye", "pixi", "nsenter", "chroot", "su-exec", "gosu", "xargs",
    }
)  # fmt: skip
"""Programs behind which another command stands, in a container, on another machine or in an environment."""
_POETRY = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?@([\^~<>=!]{0,2}\d[\w.,*<>=!^~|-]*)")


def _carried(texts: Sequence[str]) -> tuple[int | None, str]:
    """The same for a command that stands behind one that carries it; text that is only printed is none."""
    for index in range(1, len(texts) - 1):
        program = texts[index].rpartition("/")[2]
        if program in ("echo", "printf"):
            return None, ""
        if _PIP.match(program) or re.fullmatch(r"python[\d.]*", program):
            start, kind = _start(program, texts[index:])
            if start is not None:
                return start + index, kind
    return None, ""


def _constrained(word: Word, source: SourceFile, scope: str) -> PackageReference | None:
    """`poetry add name@^1.2`: a name and Poetry's constraint."""
    match = _POETRY.fullmatch(word.text)
    if match is None:
        return None
    name, stated = re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]
    exact = stated.lstrip("=")
    if re.fullmatch(r"\d[\w.]*", exact):
        return PackageReference(name, "pinned", scope, word.span, specifier=f"=={exact}", version=exact)
    return PackageReference(name, "range", scope, word.span, specifier=stated)


def _start(program: str, texts: Sequence[str]) -> tuple[int | None, str]:
    """The index of the first argument behind the verb, and how arguments are written."""
    if _PIP.match(program) and program != "pipenv":
        return _verb(texts, 1)
    if _PYTHON.search(program):
        for index in range(1, len(texts) - 1):
            if texts[index] == "-m" and texts[index + 1] in ("pip", "uv"):
                return _verb(texts, index + (3 if texts[index + 1] == "uv" else 2))
        return None, ""
    bare = [index for index, text in enumerate(texts) if not text.startswith("-")]
    for verbs, kind in _TOOLS.items():
        if tuple(texts[index].rpartition("/")[2] for index in bare[: len(verbs)]) == verbs:
            return bare[len(verbs) - 1] + 1, kind
    if program in ("conda", "mamba", "micromamba") and "run" in texts and "pip" in texts:
        return _verb(texts, texts.index("pip") + 1)
    return None, ""


def _verb(texts: Sequence[str], index: int) -> tuple[int | None, str]:
    while index < len(texts) and texts[index].startswith("-"):
        index += 2 if texts[index] in _VALUED else 1
    if index < len(texts) and texts[index] in ("install", "download", "wheel"):
        return index + 1, "pip"
    return None, ""


def _with(words: Sequence[Word], source: SourceFile, scope: str) -> Iterator[Fact]:
    """`uv run --with sglang==X`, `uvx --from sglang==X`."""
    for before, word in pairwise(words):
        if before.text in ("--with", "--from"):
            yield from _one(word, source, scope)


def _one(word: Word, source: SourceFile, scope: str) -> Iterator[Fact]:
    reference = importlib.import_module("auditor.syntax.requirement_lines").requirement_of_word(word, source, scope)
    if reference is not None:
        yield reference
