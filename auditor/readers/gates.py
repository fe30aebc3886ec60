"""Steps that hold a running engine against its own limits before it takes requests: `auditor gate`, and scripts that
compare the pool that the engine reports with its context."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile

# The words stand on one line, in one list, or one a line: what may stand between them is no letter and no `#`.
_BETWEEN = r"[^\w#]{1,40}?(?:args:[^\w#]{1,40}?)?"
_GATE = re.compile(rf"\bauditor[\"']?{_BETWEEN}gate\b")
# The checks beside it: content of a running engine, and what a change does to its pool. An argument follows.
_OTHERS = tuple(
    (name, re.compile(rf"\bauditor[\"']?{_BETWEEN}{name}\b(?=[\"']?[\s,]+(?:-[ \t]+)?[\w\"'$/.-])"))
    for name in ("canary", "diff")
)
LARGEST_SCRIPT = 256 * 1024  # characters
_OWN = re.compile(r"max_total_num_tokens")
_CONTEXT = re.compile(r"context_len|max_req_input_len|max_model_len")
_ASKS = re.compile(r"\b(?:curl|wget|requests|httpx|urlopen|aiohttp|urllib3|http|xh)\b")
_LIMIT = re.compile(r"--edge-limit[\"']?(?:[=,\s\"'-]+)(\d[\d_]*)\b")
_SPOKEN = re.compile(r"(?:^|[\s\"'])#|\b(?:echo|printf|print)\b[^;&|]*$")
_LINE = re.compile(r"(?:[^\n\\]|\\\n|\\.)*")  # to the end of the command's line, continued lines with it
_IGNORED = re.compile(r"\|\|\s*(?:true|:|exit 0|echo)(?![\w-])|;\s*(?:true|:|exit 0)(?![\w-])")
_NEXT_STEP = re.compile(r"\n[ \t]*- (?=\w+:)")
_GOES_ON = re.compile(r"\b(?:continue-on-error|allow_failure):[ \t]*true\b")
_COMMENT = re.compile(r"^[ \t]*(?:#|//).*$", re.MULTILINE)


def read(source: SourceFile) -> Iterator[Fact]:
    """The gate of a file, the front's limit that it is told, and the checks that stand beside it."""
    text = _COMMENT.sub(lambda match: " " * len(match.group()), source.text)
    for name, pattern in _OTHERS:
        other = _run(pattern, text)
        if other is not None:
            yield Definition(name, other.group(), "gate", source.path, source.span(*other.span()))
    found = _run(_GATE, text) or _own(source, text)
    if found is None:
        return
    yield Definition("gate", found.group(), "gate", source.path, source.span(*found.span()))
    for limit in _LIMIT.finditer(text):
        value = int(limit.group(1).replace("_", ""))
        yield Definition("edge-limit", value, "gate", source.path, source.span(*limit.span()))


def _run(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first place where the command is run and its answer counts: not in a comment, not as printed text, not where
    a failure is thrown away."""
    return next((match for match in pattern.finditer(text) if _counts(text, match)), None)


def _counts(text: str, match: re.Match[str]) -> bool:
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    if _SPOKEN.search(before):
        return False
    end = _LINE.match(text, match.end())
    if end is not None and _IGNORED.search(end[0]):
        return False
    first = max(text.rfind("\n- ", 0, match.start()), text.rfind(" - ", 0, match.start()), 0)
    last = _NEXT_STEP.search(text, match.end())
    return _GOES_ON.search(text, first, last.start() if last is not None else len(text)) is None


def _own(source: SourceFile, text: str) -> re.Match[str] | None:
    """A step of somebody's own: it asks the engine for its server info, compares pool and context, and fails on it."""
    if not ("server_info" in text and _OWN.search(text) and _CONTEXT.search(text) and _ASKS.search(text)):
        return None
    if source.path.lower().endswith(".py"):
        if len(source.text) > LARGEST_SCRIPT:
            return None  # no step that somebody writes
        from auditor.readers.gate_python import python_gate

        line = python_gate(source.text)
        return _OWN.search(source.text, source.line_starts[line - 1]) if line is not None else None
    from auditor.readers.gate_shell import shell_gate

    offset = shell_gate(source.path, text, source.text, _counts)
    return _OWN.search(text, offset) if offset is not None else None
