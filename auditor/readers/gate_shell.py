"""Shell that asks a running engine for its pool, holds it against the context, and fails where the pool is short: a
script, or the shell and Python text inside of a manifest. Printed text and comments are no step."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise

from auditor.readers.gate_python import LIMIT, POOL, across, figure, python_gate

LARGEST = 128 * 1024  # characters
MOST = 200  # of each of these words
_MANY = ("[", "<<", "if ", "((", "jq", "read ", "echo", "print", "test ", "&&", "||")
_PRINTED = re.compile(r"\b(?:echo|printf|print)\b(?:[ \t]+-\w+)*(?:[ \t]+(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'))+")
_BARE = re.compile(r"\b(?:echo|printf|print)\b[^\n;&|)]*")
_HEREDOC = re.compile(r"^(?P<line>[^\n]*?)<<-?[ \t]*[\"'\\]?(?P<end>\w+)[\"']?(?P<rest>[^\n]*)\n", re.MULTILINE)
_BLOCK = re.compile(r"^(?P<indent>[ \t]*)(?=[^ \t\n])[^\n]*[|>][-+\d]*[ \t]*\n", re.MULTILINE)
_ASKS = re.compile(r"\b(?:curl|wget|http|httpie|xh)\b")
_SET = re.compile(
    r"(?:^|[\s;&({\"'])(?:(?:export|local|readonly|declare|typeset)[ \t]+(?:-\w+[ \t]+)?)?([A-Za-z_]\w*)=(?!=)"
)
_READ = re.compile(r"\bread[ \t]+(?:-\w+[ \t]+){0,8}([A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*){0,20})[ \t]*(?=<|;)")
_NEXT = re.compile(r";[ \t]*(?:[A-Za-z_]\w*=|\[|if\b|test\b|\(\()|(?<![|(])\n")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ORDERINGS = (
    re.compile(
        r"(?<![\w\]])\[\[?[ \t]+((?:(?!\s\])[^\n]){1,240}?)[ \t]-(?:lt|le|gt|ge)[ \t]+([^\n]{1,240}?)[ \t]+\]\]?"
    ),
    re.compile(r"\btest[ \t]+([^\n;&|]{1,240}?)[ \t]-(?:lt|le|gt|ge)[ \t]+([^\n;&|]{1,240})"),
    re.compile(r"(?<![$\w(])\(\(([^\n<>]{1,240}?)[<>]=?([^\n<>]{1,240}?)\)\)"),
)
_CLAUSE = re.compile(r"&&|\|\|")
# A filter that fails: `jq -e`, or one that raises.
_JQ = re.compile(
    r"\bjq\b(?P<options>[^\n'\"]{0,200})(?P<quote>['\"])(?P<filter>(?:(?!(?P=quote))[\s\S]){1,2000})(?P=quote)"
)
_STRICT = re.compile(r"(?:-\w*e\w*|--exit-status)(?![\w-])")
_ERREXIT = re.compile(r"\bset[ \t]+(?:-\w*e|-o[ \t]+errexit)|\b(?:ba|da|k|z)?sh[\"', \t]+-\w*e")
_SHEBANG = re.compile(r"#![^\n]*sh[ \t]+-\w*e")
_EXIT = re.compile(r"\b(?:exit|return)[ \t]+(?!0\b)[\w$\"]|\b(?:die|fail|abort)\b|\bfalse\b|\bkill[ \t]")
_TESTED = re.compile(r"\b(if|elif|while|until)\b[ \t!]*[^\n;]*$")
_OPENS_OR_CLOSES = re.compile(r"\b(if(?=[ \t])|fi)\b")
_JOINS = re.compile(r"\|\||&&|;|\|")
# Steps of these files end at the first command that fails.
_PIPELINE = re.compile(r"(?:^|/)\.(?:github|forgejo|gitea)/workflows/|(?:^|/)\.gitlab-ci", re.IGNORECASE)


def shell_gate(path: str, text: str, raw: str, counts: Callable[[str, re.Match[str]], bool]) -> int | None:
    """The offset where the compared pool is first named; none where nothing compares. `text` has its comments blanked,
    `raw` has not; `counts` says whether a failure at a match stays a failure. A text that is far from a step that
    somebody writes shows no gate: the search looks back from each comparison, and would take long."""
    if len(raw) > LARGEST or any(raw.count(word) > MOST for word in _MANY) or raw.count("=") > 10 * MOST:
        return None
    for start, body in _python(raw):
        line = python_gate(textwrap.dedent(body))
        if line is not None:
            return start
    plain = _unprinted(text).replace("\\\n", "  ")
    if "server_info" not in plain or not LIMIT.search(plain) or not _ASKS.search(plain):
        return None
    named = POOL.search(plain)
    if named is None:
        return None
    kinds = _variables(plain)
    strict = bool(_ERREXIT.search(plain) or _SHEBANG.match(raw) or _PIPELINE.search(path))
    script = path.lower().endswith((".sh", ".bash"))
    for match in _comparisons(plain, kinds):
        if counts(plain, match) and _ends(plain, match, strict, script):
            return named.start()
    return None


def _unprinted(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    made = _BARE.sub(blank, _PRINTED.sub(blank, text))
    for match in _HEREDOC.finditer(made):
        if re.search(r"\bcat[ \t]*$", match["line"]) and ">" not in match["rest"]:
            end = _heredoc_end(made, match)
            made = made[: match.end()] + re.sub(r"[^\n]", " ", made[match.end() : end]) + made[end:]
    return made


def _heredoc_end(text: str, match: re.Match[str]) -> int:
    end = re.compile(rf"^[ \t]*{match['end']}[ \t]*$", re.MULTILINE).search(text, match.end())
    return end.start() if end is not None else len(text)


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Python inside of other files: here-documents of an interpreter, and block scalars."""
    for match in _HEREDOC.finditer(text):
        if "python" in match["line"] and not match["line"].lstrip().startswith("#"):
            yield match.end(), text[match.end() : _heredoc_end(text, match)]
    for match in _BLOCK.finditer(text):
        deeper = re.compile(rf"(?:{match['indent']}[ \t][^\n]*\n?|[ \t]*\n)+").match(text, match.end())
        if deeper is not None and POOL.search(deeper[0]) and "import" in deeper[0]:
            yield match.end(), deeper[0]


def _figures(text: str, kinds: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for word in _WORD.findall(text):
        found |= figure(word) | kinds.get(word, set())
    return found


def _variables(text: str) -> dict[str, set[str]]:
    """The variables that are made of pool or context."""
    kinds: dict[str, set[str]] = {}
    for match in sorted((*_SET.finditer(text), *_READ.finditer(text)), key=re.Match.start):
        end = _NEXT.search(text, match.end())
        value = text[match.end() : end.start() if end is not None else len(text)]
        found = _figures(value, kinds)
        for name in _WORD.findall(match[1]):
            if found:
                kinds[name] = kinds.get(name, set()) | found
    return kinds


def _comparisons(text: str, kinds: dict[str, set[str]]) -> Iterator[re.Match[str]]:
    for pattern in _ORDERINGS:
        for match in pattern.finditer(text):
            if across(_figures(_CLAUSE.split(match[1])[-1], kinds), _figures(_CLAUSE.split(match[2])[0], kinds)):
                yield match
    for match in _JQ.finditer(text):
        fails = _STRICT.search(match["options"]) or re.search(r"\b(?:error|halt_error)\b", match["filter"])
        if fails and _filtered(match["filter"]):
            yield match


def _filtered(text: str) -> bool:
    for clause in re.split(r"\b(?:and|or)\b", text):
        sides = [_figures(side, {}) for side in re.split(r"[<>]=?", clause)]
        if any(across(left, right) for left, right in pairwise(sides)):
            return True
    return False


def _ends(text: str, match: re.Match[str], strict: bool, script: bool) -> bool:
    """The answer of the comparison ends the script."""
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    stop = text.find("\n", match.end())
    rest = text[match.end() : stop if stop != -1 else len(text)]
    tested = _TESTED.search(before)
    if tested is not None:
        done = text.find("done", match.end())
        loop = tested[1] in ("while", "until") and done != -1
        return _EXIT.search(text, match.end(), done if loop else _block_end(text, match.end())) is not None
    joined = _JOINS.search(rest)
    if joined is not None and joined[0] in ("||", "&&"):
        if re.search(r"\{[^}]*$", rest):
            close = text.find("}", match.end())
            rest = text[match.end() : close if close != -1 else len(text)]
        return _EXIT.search(rest) is not None
    if joined is not None and joined[0] == "|":
        return False
    return strict or (joined is None and _last(text, before, stop, script))


def _block_end(text: str, start: int) -> int:
    depth = 1
    for match in _OPENS_OR_CLOSES.finditer(text, start):
        depth += 1 if match[1] == "if" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _last(text: str, before: str, stop: int, script: bool) -> bool:
    """Nothing of the same script follows, so the comparison's answer is the script's."""
    following = text[stop:].lstrip("\n") if stop != -1 else ""
    if not following.strip():
        return True
    if script:
        return False
    indent = len(before) - len(before.lstrip())
    line = next(line for line in following.split("\n") if line.strip())
    return len(line) - len(line.lstrip()) < indent
