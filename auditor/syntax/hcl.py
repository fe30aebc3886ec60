"""HCL (Terraform, Nomad, docker-bake) as the same nodes as YAML, so that shapes are found in one way.

Blocks become mappings under their type, with their labels as a `name` where they have none of their own. References and
other expressions become texts with `${...}` holes. What a function computes is not known; its arguments are kept.
"""

from __future__ import annotations

import re

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import Mapped
from auditor.syntax.yaml_nodes import Entry, ListNode, MapNode, Node, ScalarNode

MAX_DEPTH = 120  # nested blocks, lists and calls
_SKIP = re.compile(r"(?:[ \t\r\n\ufeff]+|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BLANK = re.compile(r"(?:[ \t]+|/\*.*?\*/)*", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")
_REFERENCE = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+|\[[^\]\n]*\])*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_HEREDOC = re.compile(r"<<(-?)([A-Za-z_]\w*)[ \t]*\r?\n")
_OPERATOR = re.compile(r"&&|\|\||[=!<>]=|[-+*/%<>]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def parse(source: SourceFile) -> MapNode:
    """The body of a file. Raises `ReadError` with the place where it stops being HCL."""
    reading = _Reading(source)
    root = MapNode(source, 0, "")
    reading.body(root, "", 0)
    root.end = len(source.text)
    return root


class _Reading:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = source.text
        self.at = 0

    def error(self, reason: str) -> ReadError:
        return ReadError(f"not valid HCL: {reason}", self.at)

    def skip(self) -> None:
        found = _SKIP.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def scalar(self, value: str, start: int, end: int, style: str = '"', mapped: Mapped | None = None) -> ScalarNode:
        return ScalarNode.placed(self.source, value, style, start, end, mapped or _spread(value, start, end))

    # -- bodies -------------------------------------------------------------------------------------------------

    def body(self, into: MapNode, closing: str, depth: int) -> None:
        """Attributes and blocks up to a closing brace."""
        if depth > MAX_DEPTH:
            raise ReadError(f"nested deeper than {MAX_DEPTH} levels", self.at, limit=True)
        while True:
            self.skip()
            while self.text.startswith(",", self.at):
                self.at += 1
                self.skip()
            if self.at >= len(self.text):
                if closing:
                    raise self.error("a block is not closed")
                return
            if closing and self.text.startswith(closing, self.at):
                self.at += 1
                return
            key = self.key()
            self.blank()
            char = self.text[self.at : self.at + 1]
            if char in ("=", ":"):
                self.at += 1
                self.skip()
                into.own.append(Entry(key, self.expression(depth + 1)))
                continue
            self.block(into, key, depth)

    def key(self) -> ScalarNode:
        start = self.at
        if self.text.startswith('"', start):
            return self.string(0)
        if self.text.startswith("(", start):
            self.at = self.text.find(")", start) + 1 or len(self.text)
            return self.scalar(self.text[start : self.at], start, self.at)
        found = _REFERENCE.match(self.text, start) or _NUMBER.match(self.text, start)
        if found is None:
            raise self.error("a name is expected")
        self.at = found.end()
        return self.scalar(found.group(), start, self.at)

    def block(self, into: MapNode, key: ScalarNode, depth: int) -> None:
        labels: list[ScalarNode] = []
        while True:
            self.blank()
            char = self.text[self.at : self.at + 1]
            if char == '"':
                labels.append(self.string(0))
            elif char == "{":
                break
            elif found := _IDENTIFIER.match(self.text, self.at):
                self.at = found.end()
                labels.append(self.scalar(found.group(), found.start(), found.end()))
            else:
                raise self.error("`=` or a block is expected")
        inner = MapNode(self.source, self.at, "")
        self.at += 1
        self.body(inner, "}", depth + 1)
        inner.end = self.at
        if labels and inner.get("name") is None:
            name = self.scalar("name", labels[-1].start, labels[-1].start)
            inner.own.insert(0, Entry(name, labels[-1]))
        into.own.append(Entry(key, inner))

    # -- expressions --------------------------------------------------------------------------------------------

    def expression(self, depth: int) -> Node:
        """One expression; of several operands a list."""
        if depth > MAX_DEPTH:
            raise ReadError(f"nested deeper than {MAX_DEPTH} levels", self.at, limit=True)
        start = self.at
        parts = [self.operand(depth)]
        while True:
            self.blank()
            if self.text.startswith("?", self.at) or (
                len(parts) > 1 and self.text.startswith(":", self.at) and not self.text.startswith("::", self.at)
            ):
                self.at += 1
            elif found := _OPERATOR.match(self.text, self.at):
                self.at = found.end()
            else:
                break
            self.skip()
            parts.append(self.operand(depth))
        if len(parts) == 1:
            return parts[0]
        node = ListNode(self.source, start, "")
        node.items, node.end = parts, self.at
        return node

    def operand(self, depth: int) -> Node:
        text, start = self.text, self.at
        char = text[start : start + 1]
        while char == "!":
            self.at += 1
            start, char = self.at, text[self.at : self.at + 1]
        if char == '"':
            return self.string(depth)
        if text.startswith("<<", start):
            return self.heredoc()
        if char == "[":
            return self.listing("]", depth)
        if char == "{":
            node = MapNode(self.source, start, "")
            self.at += 1
            self.body(node, "}", depth + 1)
            node.end = self.at
            return node
        if char == "(":
            self.at += 1
            self.skip()
            inner = self.expression(depth + 1)
            self.skip()
            if text.startswith(")", self.at):
                self.at += 1
            return inner
        found = _NUMBER.match(text, start)
        if found:
            self.at = found.end()
            return self.scalar(found.group(), start, self.at, "")
        found = _REFERENCE.match(text, start)
        if found is None:
            raise self.error("a value is expected")
        self.at = found.end()
        word = found.group()
        if text.startswith("(", self.at):
            arguments = self.listing(")", depth)
            if len(arguments.items) == 1 and word in ("jsonencode", "yamlencode", "tostring", "trimspace", "tolist"):
                return arguments.items[0]
            return arguments
        self.rest_of_reference()
        word = text[start : self.at]
        if word in ("true", "false", "null"):
            return self.scalar(word, start, self.at, "")
        return self.scalar("${" + word + "}", start, self.at)

    def rest_of_reference(self) -> None:
        """Splats and indexes behind a reference."""
        while found := re.compile(r"\.\*|\[[^\]\n]*\]|\.[A-Za-z_][\w-]*").match(self.text, self.at):
            self.at = found.end()

    def listing(self, closing: str, depth: int) -> ListNode:
        node = ListNode(self.source, self.at, "")
        self.at += 1
        while True:
            self.skip()
            if self.text.startswith(closing, self.at):
                self.at += 1
                node.end = self.at
                return node
            if self.at >= len(self.text):
                raise self.error("a list is not closed")
            if self.text.startswith((",", "..."), self.at):
                self.at += 1 if self.text[self.at] == "," else 3
                continue
            if re.compile(r"for\s+[\w,\s]+\sin\s").match(self.text, self.at):
                self.skip_comprehension(closing)
                continue
            node.items.append(self.expression(depth + 1))

    def skip_comprehension(self, closing: str) -> None:
        """`for x in y : z`: what it makes is not known here."""
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.string(0)
                continue
            if char in "([{":
                depth += 1
            elif char in ")]}":
                if depth == 0 and char == closing:
                    return
                depth -= 1
            self.at += 1

    def string(self, depth: int) -> ScalarNode:
        """A quoted text; `${...}` inside is kept as written."""
        text, start = self.text, self.at
        chars: list[str] = []
        offsets: list[int] = []
        at = start + 1
        nested = 0
        while True:
            if at >= len(text) or (text[at] in "\r\n" and not nested):
                self.at = at
                raise self.error("a string is not closed")
            char = text[at]
            if text.startswith(("${", "%{"), at) and not text.startswith(("$${", "%%{"), at - 1):
                nested += 1
                chars.extend(text[at : at + 2])
                offsets.extend((at, at + 1))
                at += 2
                continue
            if nested:
                nested += {"{": 1, "}": -1}.get(char, 0)
            elif char == '"':
                break
            elif char == "\\" and at + 1 < len(text):
                chars.append(_ESCAPES.get(text[at + 1], text[at + 1]))
                offsets.append(at)
                at += 2
                continue
            chars.append(char)
            offsets.append(at)
            at += 1
        self.at = at + 1
        offsets.append(offsets[-1] + 1 if offsets else at)
        value = "".join(chars)
        return self.scalar(value, start, self.at, '"', Mapped(value, offsets))

    def heredoc(self) -> ScalarNode:
        text, start = self.text, self.at
        found = _HEREDOC.match(text, start)
        if found is None:
            raise self.error("a value is expected")
        end = re.compile(rf"^[ \t]*{re.escape(found.group(2))}[ \t]*\r?$", re.MULTILINE).search(text, found.end())
        if end is None:
            raise self.error(f"the text up to `{found.group(2)}` is not closed")
        body = text[found.end() : end.start()]
        chars: list[str] = []
        offsets: list[int] = []
        at = found.end()
        lines = body.splitlines(keepends=True)
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        for line in lines:
            cut = min(indent, len(line) - len(line.lstrip(" \t"))) if found.group(1) else 0
            kept = line[cut:].replace("\r\n", "\n")
            chars.extend(kept)
            offsets.extend(range(at + cut, at + cut + len(kept)))
            at += len(line)
        offsets.append(offsets[-1] + 1 if offsets else found.end())
        self.at = end.end()
        value = "".join(chars)
        return self.scalar(value, start, self.at, "|", Mapped(value, offsets))


def _spread(value: str, start: int, end: int) -> Mapped:
    """The offsets of a text that stands as it is, or of `${name}` made from `name`."""
    if end - start == len(value):
        return Mapped(value, range(start, end + 1))
    if value.startswith("${") and end - start == len(value) - 3:
        return Mapped(value, (start, start, *range(start, end), max(start, end - 1), end))
    return Mapped(value, (*[start] * len(value), end))
