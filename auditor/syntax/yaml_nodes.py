"""YAML as a tree of nodes with exact places: every scalar knows the file offset of each of its characters.

Built from parser events with bounds on depth, nodes and merges, so that no file can cost more than its size. Aliases
point at the shared node; nothing is expanded. A document that is not YAML does not hide its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Union

from auditor.errors import ReadError
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.yaml_text import content_of

MAX_DEPTH = 200  # deeper than any manifest seen; a bomb of brackets ends here
MAX_NODES = 1_000_000  # nodes in one file
MAX_MERGES = 200  # `<<` values followed for one mapping
MASK = "\ue000"  # stands for a character of a masked template; the scalar shows the file's own character instead

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+|[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?\Z")
_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)


class ScalarNode:
    """One scalar. `value` is the text after quotes, escapes and folding; `start` and `end` are the offsets of the
    scalar as written, quotes or block header included; `style` is `""` (plain), `'`, `"`, `|` or `>`."""

    __slots__ = ("_mapped", "_masked", "end", "source", "start", "style", "tag", "value")

    def __init__(self, source: SourceFile, masked: str, value: str, style: str, start: int, end: int, tag: str) -> None:
        self.source, self._masked, self.style, self.tag = source, masked, style, tag
        self.start, self.end = start, end
        self._mapped: Mapped | None = None
        self.value = value
        if masked is not source.text and (MASK in value or style in ("|", ">")) and masked:
            self.value = self.mapped.text

    @classmethod
    def placed(cls, source: SourceFile, value: str, style: str, start: int, end: int, mapped: Mapped) -> ScalarNode:
        """A scalar of another format, whose place is known already."""
        node = cls(source, "", "", style, start, end, "")
        node.value, node._mapped = value, mapped
        return node

    @property
    def mapped(self) -> Mapped:
        """The value with the place of each character."""
        if self._mapped is None:
            mapped = content_of(self._masked, self.start, self.end, self.style, self.value)
            if self._masked is not self.source.text and self._masked:
                mapped = _unmasked(mapped, self.source.text, self.style)
            self._mapped = mapped
        return self._mapped

    @property
    def span(self) -> Span:
        """The text of the value: without quotes and without a block header."""
        mapped = self.mapped
        if not mapped.text:
            return self.source.span(self.start, self.end)
        return self.source.span(mapped.offsets[0], mapped.offsets[len(mapped.text) - 1] + 1)

    @property
    def is_null(self) -> bool:
        """Nothing is written here, or a null."""
        return self.style == "" and self.value in _NULLS

    @property
    def typed(self) -> str | int | float | bool | None:
        """The value by YAML 1.2's core types; of quoted scalars and unknown forms the text."""
        if self.style != "" or self.tag == "tag:yaml.org,2002:str":
            return self.value
        if self.value in _NULLS:
            return None
        if self.value in _BOOLS:
            return _BOOLS[self.value]
        if _INT.match(self.value):
            return int(self.value.replace("_", ""))
        if _FLOAT.match(self.value):
            return float(self.value.replace("_", ""))
        return self.value


class ListNode:
    """A sequence."""

    __slots__ = ("end", "items", "source", "start", "tag")

    def __init__(self, source: SourceFile, start: int, tag: str) -> None:
        self.source, self.start, self.end, self.tag = source, start, start, tag
        self.items: list[Node] = []

    @property
    def span(self) -> Span:
        """From the first to the last character of the sequence."""
        return self.source.span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping with its value."""

    key: ScalarNode
    value: Node


class MapNode:
    """A mapping. `own` are the entries as written, duplicates included, merge keys left out; `merges` the values of its
    merge keys in order."""

    __slots__ = ("_entries", "_keys", "end", "merges", "own", "source", "start", "tag")

    def __init__(self, source: SourceFile, start: int, tag: str) -> None:
        self.source, self.start, self.end, self.tag = source, start, start, tag
        self.own: list[Entry] = []
        self.merges: list[Node] = []
        self._entries: list[Entry] | None = None
        self._keys: tuple[int, dict[str, Node]] = (0, {})

    @property
    def span(self) -> Span:
        """From the first to the last character of the mapping."""
        return self.source.span(self.start, self.end)

    @property
    def entries(self) -> list[Entry]:
        """The entries that hold: own ones, then what merges add; of two equal own keys both are kept, in order."""
        if not self.merges:
            return self.own
        if self._entries is None:
            entries = list(self.own)
            known = {entry.key.value for entry in entries}
            pending: list[Node] = list(reversed(self.merges))
            seen: set[int] = {id(self)}
            while pending and len(seen) < MAX_MERGES:
                node = pending.pop()
                if id(node) in seen:
                    continue
                seen.add(id(node))
                if isinstance(node, ListNode):
                    pending.extend(reversed(node.items))
                elif isinstance(node, MapNode):
                    entries.extend(entry for entry in node.own if entry.key.value not in known)
                    known.update(entry.key.value for entry in node.own)
                    pending.extend(reversed(node.merges))
            self._entries = entries
        return self._entries

    def get(self, *path: str) -> Node | None:
        """The value under a path of keys; of duplicate keys the last own one."""
        node: Node | None = self
        for name in path:
            if not isinstance(node, MapNode):
                return None
            node = node._one(name)
        return node

    def _one(self, name: str) -> Node | None:
        if self._keys[0] != len(self.own):
            self._keys = (len(self.own), {entry.key.value: entry.value for entry in self.own})
        found = self._keys[1].get(name)
        if found is None and self.merges:
            for entry in self.entries[len(self.own) :]:
                if entry.key.value == name:
                    return entry.value
        return found

    def entry(self, name: str) -> Entry | None:
        """The entry of a key with its value, merges included."""
        for entry in reversed(self.own):
            if entry.key.value == name:
                return entry
        return next((entry for entry in self.entries if entry.key.value == name), None) if self.merges else None

    def text(self, *path: str) -> str | None:
        """The text of the scalar under a path of keys; `None` where there is none or a null."""
        node = self.get(*path)
        return node.value if isinstance(node, ScalarNode) and not node.is_null else None

    def map(self, *path: str) -> MapNode | None:
        """The mapping under a path of keys."""
        node = self.get(*path)
        return node if isinstance(node, MapNode) else None

    def list(self, *path: str) -> list[Node]:
        """The items of the sequence under a path of keys; empty where there is none."""
        node = self.get(*path)
        return node.items if isinstance(node, ListNode) else []


Node = Union[ScalarNode, ListNode, MapNode]  # noqa: UP007 - a name for annotations and isinstance alike


@dataclass(frozen=True, slots=True)
class Documents:
    """What one file holds: the roots of its documents in order, and what was wrong with the others."""

    roots: tuple[Node, ...]
    errors: tuple[ReadError, ...]


_memo: list[tuple[SourceFile, str, Documents]] = []


def documents(source: SourceFile, masked: str | None = None) -> Documents:
    """The documents of a file. `masked` is the file's text with templates masked (same length). Raises nothing: a
    document that cannot be read is an error in the answer."""
    text = source.text if masked is None else masked
    for known, known_text, answer in _memo:
        if known is source and known_text == text:
            return answer
    answer = _documents(source, text)
    _memo.append((source, text, answer))
    del _memo[:-4]
    return answer


def _documents(source: SourceFile, text: str) -> Documents:
    try:
        return Documents(tuple(_compose(source, text, 0, len(text))), ())
    except ReadError as error:
        if error.limit:
            return Documents((), (error,))
        first = error
    cuts = [match.start() for match in _MARKER.finditer(text)]
    if not cuts or cuts[-1] == 0:
        return Documents((), (first,))
    roots: list[Node] = []
    errors: list[ReadError] = []
    bounds = sorted({0, *cuts, len(text)})
    for start, end in pairwise(bounds):
        try:
            roots.extend(_compose(source, text, start, end))
        except ReadError as error:
            errors.append(error)
    return Documents(tuple(roots), tuple(errors) or (first,))


def _compose(source: SourceFile, text: str, start: int, end: int) -> list[Node]:
    """The roots of the documents in one piece of the text."""
    import yaml

    piece = text if start == 0 and end == len(text) else text[start:end]
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(source, text, start)
    try:
        for event in yaml.parse(piece, Loader=loader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "not YAML"
        offset = None if mark is None else start + mark.index
        raise ReadError(f"not valid YAML: {reason}", offset, limit="nesting depth" in reason) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        reason = getattr(error, "reason", None) or "a character that YAML does not allow"
        raise ReadError(f"not valid YAML: {reason}", None if position is None else start + position) from None
    return builder.roots


class _Builder:
    """Takes parser events one by one. A stack, no recursion: depth costs nothing before the bound."""

    def __init__(self, source: SourceFile, text: str, shift: int) -> None:
        import yaml

        self.source, self.text, self.shift = source, text, shift
        self.roots: list[Node] = []
        self.stack: list[ListNode | MapNode] = []
        self.keys: list[ScalarNode | None] = []
        self.anchors: dict[str, Node] = {}
        self.count = 0
        self._scalar: Any = yaml.ScalarEvent
        self._alias: Any = yaml.AliasEvent
        self._begin: Any = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
        self._end: Any = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
        self._map: Any = yaml.MappingStartEvent
        self._document: Any = yaml.DocumentStartEvent

    def take(self, event: Any) -> None:
        """One event of the parser, in order."""
        if isinstance(event, self._scalar):
            start, end = event.start_mark.index + self.shift, event.end_mark.index + self.shift
            node = ScalarNode(self.source, self.text, event.value, event.style or "", start, end, event.tag or "")
            if event.anchor or event.tag:
                node.start = _past_properties(self.text, start, end)
            self._add(node, event.anchor, start)
        elif isinstance(event, self._begin):
            start = event.start_mark.index + self.shift
            kind = MapNode if isinstance(event, self._map) else ListNode
            collection = kind(self.source, start, event.tag or "")
            self._add(collection, event.anchor, start)
            self.stack.append(collection)
            self.keys.append(None)
            if len(self.stack) > MAX_DEPTH:
                raise ReadError(f"nested deeper than {MAX_DEPTH} levels", start, limit=True)
        elif isinstance(event, self._end):
            collection = self.stack.pop()
            self.keys.pop()
            collection.end = _trim(self.text, collection.start, event.end_mark.index + self.shift)
        elif isinstance(event, self._alias):
            start = event.start_mark.index + self.shift
            target = self.anchors.get(event.anchor)
            if target is None:
                raise ReadError(f"not valid YAML: the alias `*{event.anchor}` has no anchor", start)
            if any(target is open_node for open_node in self.stack):
                target = ScalarNode(self.source, self.text, "", "", start, start, "")  # a ring: cut here
            self._add(target, None, start)
        elif isinstance(event, self._document):
            self.anchors = {}

    def _add(self, node: Node, anchor: str | None, start: int) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise ReadError(f"more than {MAX_NODES} YAML nodes", start, limit=True)
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.roots.append(node)
            return
        parent = self.stack[-1]
        if isinstance(parent, ListNode):
            parent.items.append(node)
            return
        key = self.keys[-1]
        if key is None:
            if not isinstance(node, ScalarNode):  # a collection as a key: kept out of the way under its text
                node = ScalarNode(self.source, self.text, "", "", start, start, "tag:yaml.org,2002:map")
            self.keys[-1] = node
            return
        self.keys[-1] = None
        if key.value == "<<" and key.style == "":
            parent.merges.append(node)
        else:
            parent.own.append(Entry(key, node))


def _unmasked(mapped: Mapped, original: str, style: str) -> Mapped:
    """A value of a masked text with the file's own characters. Lines of a block on which nothing but template actions
    stood are taken out, as they vanish when the template is filled in."""
    if MASK not in mapped.text and style not in ("|", ">"):
        return mapped
    chars: list[str] = []
    offsets: list[int] = []
    dropped = False
    for char, offset in zip(mapped.text, mapped.offsets, strict=False):
        if style and char == "\n" and offset < len(original) and style in "|>":
            real = original[offset] in "\r\n"
            if not real or dropped:
                if style == ">" and (not chars or chars[-1] not in " \n"):
                    chars.append(" ")
                    offsets.append(offset)
                dropped = not real
                continue
        dropped = False
        chars.append(original[offset] if char == MASK else char)
        offsets.append(offset)
    return Mapped("".join(chars), (*offsets, mapped.offsets[len(mapped.text)]))


def _past_properties(text: str, start: int, end: int) -> int:
    """The offset of the content behind `&anchor` and `!tag`."""
    index = start
    while index < end:
        if text[index] in "&!":
            while index < end and not text[index].isspace():
                index += 1
        elif text[index].isspace():
            index += 1
        elif text[index] == "#":
            line_end = text.find("\n", index, end)
            index = end if line_end == -1 else line_end
        else:
            break
    return index


def _trim(text: str, start: int, end: int) -> int:
    """The end of a collection without the blank lines and comments that the parser counts to it."""
    while end > start:
        line = text.rfind("\n", start, end) + 1 or start
        rest = text[line:end]
        body = rest.strip()
        if body and not (body.startswith("#") and line > start):
            return line + len(rest.rstrip())
        if line <= start:
            break
        end = line - 1
    return max(end, start)


def walk(root: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Every node once, parents first, with its path of keys and indexes; shared nodes at their first place."""
    seen: set[int] = set()
    pending: list[tuple[tuple[str, ...], Node]] = [((), root)]
    while pending:
        path, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        if isinstance(node, MapNode):
            children = [((*path, entry.key.value), entry.value) for entry in node.own]
            children.extend(((*path, "<<"), merged) for merged in node.merges)
            pending.extend(reversed(children))
        elif isinstance(node, ListNode):
            pending.extend(reversed([((*path, str(index)), item) for index, item in enumerate(node.items)]))
