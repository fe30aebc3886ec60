"""Commands of shell text in the order in which they stand, with their words expanded by what the same text defines.

`commands(text, source)` reads a script, a RUN line, a `command:` string; `split_words(text, source)` reads one argument
list. All spans are exact. Nothing is run; a variable that the text does not define stays a hole of its `Unresolved`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.model.facts import Definition
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import (
    DOCKERFILE,
    KUBERNETES,
    MAKEFILE,
    SHELL,
    Dialect,
    Literal,
    Operator,
    Piece,
    Redirect,
    Substitution,
    Token,
    WordToken,
    lex,
    lex_words,
)
from auditor.syntax.shell_values import (
    MAX_FIELDS,
    Branch,
    Fragment,
    Scope,
    ShellWord,
    known_text,
    leaf,
    piece_ends,
    token_ends,
    value_of,
)

__all__ = [
    "DOCKERFILE",
    "KUBERNETES",
    "MAKEFILE",
    "SHELL",
    "Assignment",
    "Command",
    "Dialect",
    "Scope",
    "ShellWord",
    "commands",
    "known",
    "leaf",
    "split_words",
]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?=)")
_DECLARES = {"export", "declare", "local", "readonly", "typeset"}
_OPENS = {"if", "while", "until", "for", "select", "case", "{", "function"}
_LISTS = {";", "&", "\n", "&&", "||", "|", "|&", ";;", ";&", ";;&"}


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=value`, on its own, before a command, or after `export`; `words` are the elements of an array."""

    name: str
    word: ShellWord
    span: Span
    exported: bool = False
    append: bool = False
    words: tuple[ShellWord, ...] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. `span` covers its words as they stand; `function` is the name of the function around it;
    `heredocs` are here-documents that it reads. `after_comment` says that a comment line cut it off from a command that
    meant to go on. `scope` is the scope of variables at that point."""

    words: tuple[ShellWord, ...]
    assignments: tuple[Assignment, ...]
    span: Span
    scope: Scope
    branch: Branch = ()
    function: str = ""
    heredocs: tuple[Redirect, ...] = ()
    outputs: tuple[ShellWord, ...] = ()
    after_comment: bool = False


def known(word: ShellWord) -> str | None:
    """The text of a word when nothing outside of the file sets its variables; `None` when that is not known."""
    return known_text(word.fragments)


def split_words(
    text: Mapped, source: SourceFile, dialect: Dialect = SHELL, variables: Mapping[str, Definition] | None = None
) -> tuple[ShellWord, ...]:
    """The words of one argument list; operators and redirections are left out. Raises `ReadError` at a limit."""
    scope = Scope(source, variables)
    return tuple(word for token in lex_words(text, dialect) for word in scope.expand(token))


def commands(
    text: Mapped,
    source: SourceFile,
    dialect: Dialect = SHELL,
    variables: Mapping[str, Definition] | None = None,
    scope: Scope | None = None,
) -> Iterator[Command]:
    """The commands of a shell text, those in substitutions, branches, loops and functions included, in order.
    Raises `ReadError` only at a limit of size or depth."""
    scope = scope if scope is not None else Scope(source, variables)
    yield from _Reading(source, scope).run(lex(text, dialect))


@dataclass(slots=True)
class _Block:
    kind: str
    identity: int
    arm: int = 0
    taken: bool = False
    """An earlier arm is certainly taken."""
    in_condition: bool = False
    branch: Branch = ()
    """The branch outside of the block."""
    subject: ShellWord | None = None
    last: Command | None = None


class _Reading:
    """One pass over tokens. Keeps the open blocks and, through the scope, the variables."""

    def __init__(self, source: SourceFile, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.blocks: list[_Block] = []
        self.function = ""

    def run(self, tokens: Sequence[Token]) -> Iterator[Command]:
        at = 0
        count = len(tokens)
        list_branch: Branch | None = None
        last: Command | None = None
        after_comment = False
        while at < count:
            token = tokens[at]
            if isinstance(token, Operator):
                at += 1
                if token.text in ("&&", "||"):
                    if list_branch is None:
                        list_branch = self.scope.branch
                    verdict = self.verdict(last) if last is not None and _is_test(last) else None
                    if verdict is not None and token.text == "||":
                        verdict = not verdict
                    if token.text == "||" or (last is not None and _is_test(last)):
                        self.scope.branch = (*list_branch, (self.scope.new_block(), 0, verdict))
                elif token.text in ("|", "|&"):
                    pass
                else:
                    if list_branch is not None:
                        self.scope.branch, list_branch = list_branch, None
                    if token.text in (";;", ";&", ";;&"):
                        at = self.next_arm(tokens, at)
                    after_comment = token.continued_comment
                continue
            plain = token.plain if isinstance(token, WordToken) else None
            if plain in _RESERVED:
                if list_branch is not None and plain not in ("{", "!", "time", "if", "for", "while", "until", "case"):
                    self.scope.branch, list_branch = list_branch, None
                at = self.reserved(plain, tokens, at)
                last = None
                continue
            end, command, nested = self.simple(tokens, at, after_comment)
            after_comment = False
            yield from nested
            if command is not None:
                last = command
                if self.blocks and self.blocks[-1].in_condition:
                    self.blocks[-1].last = command
                yield command
            at = max(end, at + 1)
        if list_branch is not None:
            self.scope.branch = list_branch

    # -- structure ----------------------------------------------------------------------------------------------

    def reserved(self, word: str, tokens: Sequence[Token], at: int) -> int:
        identity = self.scope.new_block()
        scope = self.scope
        if word in ("if", "while", "until"):
            self.blocks.append(_Block(word, identity, in_condition=word == "if", branch=scope.branch))
        elif word == "then" and self.blocks and self.blocks[-1].kind == "if":
            self.enter(self.blocks[-1], self.verdict(self.blocks[-1].last))
        elif word in ("elif", "else") and self.blocks and self.blocks[-1].kind == "if":
            block = self.blocks[-1]
            block.arm += 1
            scope.branch = block.branch
            block.last = None
            block.in_condition = word == "elif"
            if word == "else":
                self.enter(block, False if block.taken else (None if block.subject is None else True))
        elif word in ("fi", "done", "esac", "}"):
            kinds = {"fi": ("if",), "done": ("while", "until", "for"), "esac": ("case",), "}": ("group", "function")}[
                word
            ]
            if self.blocks and self.blocks[-1].kind in kinds:
                block = self.blocks.pop()
                scope.branch = block.branch
                if block.kind == "function":
                    self.function = ""
        elif word == "{":
            self.blocks.append(_Block("group", identity, branch=scope.branch))
        elif word == "function":
            return self.open_function(tokens, at + 1, identity)
        elif word == "for":
            return self.loop(tokens, at, identity)
        elif word == "case":
            return self.case(tokens, at, identity)
        return at + 1

    def enter(self, block: _Block, verdict: bool | None) -> None:
        """Start an arm whose condition came out as `verdict`."""
        block.in_condition = False
        if block.taken:
            verdict = False
        if verdict:
            block.taken = True
        if verdict is not False and not verdict:
            block.subject = None
        self.scope.branch = (*block.branch, (block.identity, block.arm, verdict))

    def open_function(self, tokens: Sequence[Token], at: int, identity: int) -> int:
        name = tokens[at] if at < len(tokens) else None
        self.function = name.plain or "" if isinstance(name, WordToken) else ""
        at += 1
        while at < len(tokens):
            token = tokens[at]
            if isinstance(token, Operator) and token.text in ("(", ")", "\n"):
                at += 1
                continue
            if isinstance(token, WordToken) and token.plain == "{":
                at += 1
            break
        self.blocks.append(_Block("function", identity, branch=self.scope.branch))
        return at

    def loop(self, tokens: Sequence[Token], at: int, identity: int) -> int:
        self.blocks.append(_Block("for", identity, branch=self.scope.branch))
        at += 1
        name = tokens[at] if at < len(tokens) else None
        if not isinstance(name, WordToken) or name.plain is None:
            while at < len(tokens) and not (isinstance(tokens[at], WordToken) and tokens[at].plain == "do"):  # type: ignore[union-attr]
                at += 1
            return at
        at += 1
        if at < len(tokens) and isinstance(tokens[at], WordToken) and tokens[at].plain == "in":  # type: ignore[union-attr]
            at += 1
            values: list[ShellWord] = []
            while at < len(tokens) and isinstance(tokens[at], WordToken):
                values.extend(self.scope.expand(tokens[at]))  # type: ignore[arg-type]
                at += 1
            if values:
                self.scope.assign(name.plain, values[0].fragments, values[0].span)
        return at

    def case(self, tokens: Sequence[Token], at: int, identity: int) -> int:
        block = _Block("case", identity, branch=self.scope.branch)
        self.blocks.append(block)
        at += 1
        if at < len(tokens) and isinstance(tokens[at], WordToken):
            words = self.scope.expand(tokens[at])  # type: ignore[arg-type]
            block.subject = words[0] if len(words) == 1 else None
            at += 1
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if isinstance(token, WordToken) and token.plain == "in":
                return self.pattern(tokens, at, block)
            if isinstance(token, WordToken):
                break
        return at

    def next_arm(self, tokens: Sequence[Token], at: int) -> int:
        if self.blocks and self.blocks[-1].kind == "case":
            block = self.blocks[-1]
            block.arm += 1
            self.scope.branch = block.branch
            return self.pattern(tokens, at, block)
        return at

    def pattern(self, tokens: Sequence[Token], at: int, block: _Block) -> int:
        """Read `a|b)`; leaves `esac` to be read as a word."""
        patterns: list[str] = []
        begin = at
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if isinstance(token, WordToken):
                if token.plain == "esac" and not patterns:
                    return at - 1
                patterns.append(value_text(self.scope.evaluate(token.pieces)))
            elif isinstance(token, Operator) and token.text == ")":
                break
            elif not (isinstance(token, Operator) and token.text in ("|", "\n", "(")):
                return begin
        subject = known(block.subject) if block.subject is not None else None
        verdict: bool | None = None
        if subject is not None:
            verdict = any(fnmatch.fnmatchcase(subject, pattern) for pattern in patterns)
        if block.taken:
            verdict = False
        block.taken = block.taken or bool(verdict)
        self.scope.branch = (*block.branch, (block.identity, block.arm, verdict))
        return at

    # -- simple commands ----------------------------------------------------------------------------------------

    def simple(
        self, tokens: Sequence[Token], at: int, after_comment: bool
    ) -> tuple[int, Command | None, Iterator[Command]]:
        start = at
        raw: list[WordToken] = []
        redirects: list[Redirect] = []
        double = isinstance(tokens[at], WordToken) and tokens[at].plain == "[["  # type: ignore[union-attr]
        while at < len(tokens):
            token = tokens[at]
            if isinstance(token, Redirect):
                redirects.append(token)
            elif isinstance(token, WordToken):
                raw.append(token)
                if double and token.plain == "]]":
                    at += 1
                    break
            elif double:
                pass
            elif token.text == "(" and len(raw) == 1 and self.is_function(tokens, at):
                self.open_function(tokens, start, self.scope.new_block())
                return self.function_body(tokens, at), None, iter(())
            elif token.text == "(" and not raw:
                at += 1
                continue
            else:
                break
            at += 1
        self.scope.found = []
        assignments, words = self.words(raw)
        heredocs = tuple(redirect for redirect in redirects if redirect.body is not None)
        outputs: list[ShellWord] = []
        for redirect in redirects:
            if redirect.target is not None and redirect.operator in (">", ">>", ">|", "&>", "<<<"):
                outputs.extend(self.scope.expand(redirect.target))
        nested = self.nested(self.scope.found)
        self.scope.found = []
        if not raw and not heredocs:
            return at, None, nested
        starts = [token.start for token in raw] or [redirect.start for redirect in redirects]
        if not starts:
            return at, None, nested
        own = [ends for token in raw if (ends := token_ends(token)) is not None]
        if own:
            span = self.source.span(min(start for start, _ in own), max(end for _, end in own))
        else:
            places = [word.span for word in words] + [assignment.span for assignment in assignments]
            span = places[0] if places else self.source.span(0, 0)
        command = Command(
            tuple(words),
            tuple(assignments),
            span,
            self.scope,
            self.scope.branch,
            self.function,
            heredocs,
            tuple(outputs),
            after_comment,
        )
        return at, command, nested

    def nested(self, found: Sequence[Substitution]) -> Iterator[Command]:
        for substitution in found:
            outer, blocks, function = self.scope.branch, self.blocks, self.function
            self.blocks = []
            yield from self.run(substitution.tokens)
            self.scope.branch, self.blocks, self.function = outer, blocks, function

    def is_function(self, tokens: Sequence[Token], at: int) -> bool:
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        return isinstance(following, Operator) and following.text == ")"

    def function_body(self, tokens: Sequence[Token], at: int) -> int:
        at += 2
        while at < len(tokens):
            token = tokens[at]
            if isinstance(token, Operator) and token.text == "\n":
                at += 1
                continue
            if isinstance(token, WordToken) and token.plain == "{":
                return at + 1
            break
        self.blocks.pop()  # a body without braces: rare, read as plain commands
        self.function = ""
        return at

    def words(self, raw: Sequence[WordToken]) -> tuple[list[Assignment], list[ShellWord]]:
        assignments: list[Assignment] = []
        at = 0
        while at < len(raw) and (assignment := self.assignment(raw[at])) is not None:
            assignments.append(assignment)
            at += 1
        words: list[ShellWord] = []
        declares = ""
        for token in raw[at:]:
            if declares and (assignment := self.assignment(token)) is not None:
                exported = declares == "export" or any(word.text.startswith("-") and "x" in word.text for word in words)
                assignment = Assignment(
                    assignment.name, assignment.word, assignment.span, exported, assignment.append, assignment.words
                )
                assignments.append(assignment)
                self.define(assignment)
                continue
            words.extend(self.scope.expand(token))
            if declares == "export" and token.plain and re.fullmatch(r"[A-Za-z_]\w*", token.plain):
                self.scope.exported[token.plain] = None
            if len(words) == 1 and not declares and words[0].value in _DECLARES:
                declares = str(words[0].value)
        if not words:
            for assignment in assignments:
                self.define(assignment)
        return assignments, words

    def define(self, assignment: Assignment) -> None:
        if assignment.exported:
            self.scope.exported[assignment.name] = None
        if assignment.words is not None:
            self.scope.assign_array(assignment.name, list(assignment.words), assignment.span, append=assignment.append)
        else:
            self.scope.assign(assignment.name, assignment.word.fragments, assignment.span, append=assignment.append)

    def assignment(self, token: WordToken) -> Assignment | None:
        first = token.pieces[0] if token.pieces else None
        if not isinstance(first, Literal) or first.quoted:
            return None
        match = _ASSIGNMENT.match(first.text)
        if match is None or match.group(2):
            return None
        rest: list[Piece] = list(token.pieces[1:])
        if match.end() < len(first.text):
            rest.insert(0, Literal(first.text[match.end() :], first.offsets[match.end() :]))
        append = match.group(3) == "+="
        name = match.group(1)
        ends = token_ends(token) or (first.offsets[0], first.offsets[-1] + 1)
        whole = self.source.span(*ends)
        if token.array is not None:
            words: list[ShellWord] = []
            for element in token.array:
                words.extend(self.scope.expand(element)[: MAX_FIELDS - len(words)])
            empty = self.scope.word((), False, token.raw, whole)
            return Assignment(name, empty, whole, append=append, words=tuple(words))
        grown = self.scope.added_to(rest[0], name) if len(rest) > 1 else None
        fragments = self.scope.evaluate(rest) if grown is None else (grown, *self.scope.evaluate(rest[1:]))
        value_ends = piece_ends(rest)
        span = self.source.span(*value_ends) if value_ends else self.source.span(ends[1], ends[1])
        word = self.scope.word(fragments, token.quoted, token.raw[match.end() :], span)
        return Assignment(name, word, whole, append=append)

    # -- conditions ---------------------------------------------------------------------------------------------

    def verdict(self, command: Command | None) -> bool | None:
        """What a test gives when nothing outside of the file sets a variable; `None`: not known, or no test."""
        if command is None or not command.words:
            return None
        words = list(command.words)
        negated = False
        while words and words[0].value == "!":
            negated = not negated
            words = words[1:]
        if not words or words[0].value not in ("[", "[[", "test"):
            return {"true": True, "false": False}.get(words[0].text) if words else None
        body = words[1:-1] if words[-1].value in ("]", "]]") else words[1:]
        if body and body[0].value == "!":
            negated = not negated
            body = body[1:]
        answer = _test(body)
        return answer if answer is None or not negated else not answer


_RESERVED = {
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "{", "}", "function",
    "!", "time",
}  # fmt: skip


def _test(body: Sequence[ShellWord]) -> bool | None:
    texts = [known(word) for word in body]
    if len(body) == 2 and texts[0] in ("-n", "-z"):
        return None if texts[1] is None else (texts[1] != "") == (texts[0] == "-n")
    if len(body) == 1 and texts[0] in ("-n", "-z"):
        return texts[0] == "-z"  # an unquoted variable that is empty
    if len(body) == 3 and texts[1] in ("=", "==", "!=") and texts[0] is not None and texts[2] is not None:
        same = fnmatch.fnmatchcase(texts[0], texts[2])
        return same if texts[1] != "!=" else not same
    numbers = {"-eq", "-ne", "-gt", "-ge", "-lt", "-le"}
    if len(body) == 3 and texts[1] in numbers and texts[0] is not None and texts[2] is not None:
        try:
            left, right = int(texts[0]), int(texts[2])
        except ValueError:
            return None
        return {
            "-eq": left == right,
            "-ne": left != right,
            "-gt": left > right,
            "-ge": left >= right,
            "-lt": left < right,
            "-le": left <= right,
        }[texts[1]]
    return None


def _is_test(command: Command) -> bool:
    return bool(command.words) and command.words[0].value in ("[", "[[", "test")


def value_text(fragments: Sequence[Fragment]) -> str:
    """The text of evaluated fragments; holes as written."""
    value = value_of(fragments)
    return value if isinstance(value, str) else "".join(fragment.text for fragment in fragments)
