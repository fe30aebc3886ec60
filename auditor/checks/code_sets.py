"""Sets of states that have a name: `ENDS = frozenset({Status.DONE, Status.FAILED})`, of a module or a class.

They are read from the bytes of the files that name members, so that a test in another file can be held against them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from auditor.model.records import dataclass
from auditor.syntax.code_tree import last_name, path_of

Listing = tuple[tuple[str, ...], str]  # the members, and the dotted name in front of them
UNKNOWN: Listing = ((), "?")  # somebody's list, which is not spelled out
LONGEST = 4000  # bytes of a set that is spelled out
ROUNDS = 6  # how far sets of sets are followed


@dataclass(frozen=True, slots=True)
class SetRecord:
    """A named set: its class (empty for one of a module), the members that it spells out with the dotted name before
    them, and the names of the sets that it takes over."""

    path: str
    owner: str
    name: str
    members: tuple[str, ...]
    enum: str
    others: tuple[str, ...] = ()


def member_of(node: ast.expr) -> Listing:
    """The state that an expression names, or none."""
    if isinstance(node, ast.Attribute):
        if node.attr in ("value", "name") and isinstance(node.value, ast.Attribute):
            return member_of(node.value)
        path = path_of(node)
        if path is None:
            return (), ""
        prefix, _, member = path.rpartition(".")
        # A member is written in capitals or stands behind a type's name; `other.state` is neither.
        return ((member,), prefix) if member.isupper() or prefix.rpartition(".")[2][:1].isupper() else ((), "")
    if isinstance(node, ast.Name):
        return ((node.id,), "") if node.id.isupper() else ((), "")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,), "'"
    return (), ""


def listing(node: ast.expr, look: Callable[[str], Listing]) -> Listing:
    """The states of a set that is spelled out, put together of others, or known by a name to `look`."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("frozenset", "set", "tuple", "list") and node.args:
        return listing(node.args[0], look)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "union":
        return _together([listing(part, look) for part in (node.func.value, *node.args)])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.Add)):
        return _together([listing(node.left, look), listing(node.right, look)])
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and len(node.generators) == 1:
        source, made = node.generators[0], node.elt
        made = made.value if isinstance(made, ast.Attribute) and made.attr in ("value", "name") else made
        whole = isinstance(made, ast.Name) and path_of(source.target) == made.id and not source.ifs
        return listing(source.iter, look) if whole else UNKNOWN
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = [listing(item.value, look) if isinstance(item, ast.Starred) else member_of(item) for item in node.elts]
        return UNKNOWN if UNKNOWN in parts else _flat(parts)
    path = path_of(node)
    return UNKNOWN if path is None else look(path)


def _flat(parts: Iterable[Listing]) -> Listing:
    found: list[str] = []
    prefix = ""
    for members, enum in parts:
        found += members
        prefix = enum or prefix
    return tuple(found), prefix


def _together(parts: list[Listing]) -> Listing:
    enums = {enum for members, enum in parts if members}
    return _flat(parts) if UNKNOWN not in parts and len(enums) <= 1 else UNKNOWN


_PYTHON = re.compile(
    rb"^(?:(?:    |\t)(?=_*[A-Z]))?(?:(\w+)\.)?(_*[A-Za-z]\w*)[ \t]*(?::[^=\n]*)?=[ \t]*"
    rb"(?=[({\[]|(?:frozenset|set|tuple|list)\(|_*[A-Z][\w.]*(?:(?<=\.union)\(|[ \t]*[|+][ \t]*[A-Z_{(fs]))",
    re.MULTILINE,
)
_CSHARP = re.compile(
    rb"(?:Set|List|Array|Collection|\[\]|Enumerable)(?:<[^<>=;\n]*>)?\??\s+(\w+)\s*(?:=>?|\{\s*get;\s*\}\s*=)\s*([^;]*);"
)
_CSHARP_MEMBER = re.compile(rb"\b([A-Z]\w*)\.([A-Z]\w*)\b(?!\s*[<(])")
_CSHARP_REST = re.compile(
    rb"\b(?:new|\w*Set|\w*List|\w*Array|Create|ToImmutable\w+|ToHashSet|ToFrozenSet|ToArray)\b|<[^<>]*>|[\s,(){}\[\].]|//[^\n]*"
)
_PIECE = re.compile(rb"[()\[\]{}]|\\\n|\n|#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'")
_CLASS = re.compile(rb"^[ \t]*(?:[\w ]+ )?(?:class|record|struct) (\w+)", re.MULTILINE)


def named_sets(path: str, data: bytes, language: str) -> Iterator[SetRecord]:
    """The named sets of states that a file defines, for its modules and classes."""
    if language == "csharp":
        yield from _csharp_sets(path, data)
        return
    for match in _PYTHON.finditer(data):
        text = _value(data, match.end())
        if not re.search(rb"\b[A-Z]\w*\.[A-Za-z_]|\b_*[A-Z][A-Z0-9_]+\b", text):
            continue
        try:
            node = ast.parse(b"(" + text + b"\n)", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # not a set of states, whatever it is
        others: list[str] = []

        def look(name: str, others: list[str] = others) -> Listing:
            others.append(name)
            return (), ""

        members, enum = listing(node, look)
        if (members or others) and enum not in ("?", "'") and (enum or not members):
            inside = match.group().startswith((b" ", b"\t"))
            owner = _owner(data, match.start()) if inside else (match.group(1) or b"").decode()
            yield SetRecord(path, owner, match.group(2).decode(), members, enum, tuple(others))


def _csharp_sets(path: str, data: bytes) -> Iterator[SetRecord]:
    for match in _CSHARP.finditer(data):
        members = _CSHARP_MEMBER.findall(match.group(2))
        enums = {enum for enum, _ in members}
        if len(enums) != 1 or _CSHARP_REST.sub(b"", _CSHARP_MEMBER.sub(b"", match.group(2))):
            continue
        names = tuple(member.decode() for _, member in members)
        yield SetRecord(path, _owner(data, match.start()), match.group(1).decode(), names, enums.pop().decode())


def _value(data: bytes, start: int) -> bytes:
    """The text of a value up to the end of its statement."""
    depth = 0
    for piece in _PIECE.finditer(data, start, start + LONGEST):
        text = piece.group()
        if text in b"([{":
            depth += 1
        elif text in b")]}":
            depth -= 1
        elif text == b"\n" and depth <= 0:
            return data[start : piece.start()]
    return data[start:] if len(data) - start < LONGEST else b""


def _owner(data: bytes, at: int) -> str:
    names = _CLASS.findall(data, 0, at)
    return names[-1].decode() if names else ""


def resolved(records: Iterable[SetRecord], aliases: Mapping[str, str]) -> dict[str, tuple[SetRecord, ...]]:
    """The sets by name, with the members of those that they take over."""
    known = list(records)
    for _ in range(ROUNDS):
        by_name = _by_name(known)
        grown = []
        for entry in known:
            parts = [part for name in entry.others if (part := _one(name, entry, by_name)) is not None]
            whole = len(parts) == len(entry.others) and not any(part.others for part in parts)
            pieces = [(part.members, part.enum) for part in (entry, *parts) if part.members]
            members, enum = _together(pieces) if entry.others and whole else UNKNOWN
            grown.append(SetRecord(entry.path, entry.owner, entry.name, members, enum) if members else entry)
        if grown == known:
            break
        known = grown
    complete = [
        SetRecord(entry.path, entry.owner, entry.name, entry.members, aliases.get(entry.enum, entry.enum))
        for entry in known
        if entry.members and not entry.others
    ]
    return _by_name(complete)


def _by_name(records: Iterable[SetRecord]) -> dict[str, tuple[SetRecord, ...]]:
    found: dict[str, tuple[SetRecord, ...]] = {}
    for entry in records:
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def _one(name: str, user: SetRecord, by_name: Mapping[str, tuple[SetRecord, ...]]) -> SetRecord | None:
    owner, _, last = name.rpartition(".")
    found = [entry for entry in by_name.get(last, ()) if not owner or entry.owner in (owner, "")]
    here = [entry for entry in found if entry.path == user.path and entry != user]
    return the_one(here or found)


def the_one(found: list[SetRecord]) -> SetRecord | None:
    """The only one of them; several that hold the same are one."""
    alike = {(frozenset(entry.members), entry.enum, entry.others) for entry in found}
    return found[0] if len(alike) == 1 else None
