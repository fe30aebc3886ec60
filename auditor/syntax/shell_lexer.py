"""Tokens of shell text: words as pieces (literal text, variables, substitutions), operators, and here-documents.

Every piece keeps the file offsets of its characters. The lexer is lenient where a shell would stop (an unclosed quote
runs to the end of the text) and linear: it never goes back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from auditor.errors import ReadError
from auditor.model.records import dataclass, field
from auditor.syntax.expressions import EXPRESSION, LONGEST, UNPAIRED, choice_of
from auditor.syntax.mapped import Mapped

MAX_DEPTH = 40
"""How deep substitutions, quotes and groups may stand in each other."""
MAX_TOKENS = 400_000
"""How many tokens one text may have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the places where shell text stands. `paren_variables`: `$(NAME)` is a variable (Kubernetes,
    Make) and no command; `make`: `$$` is a dollar sign and `$(...)` belongs to Make; `comment_lines`: comment lines
    between continued lines are dropped before the shell sees them (Dockerfile)."""

    paren_variables: bool = False
    make: bool = False
    comment_lines: bool = False


SHELL = Dialect()
DOCKERFILE = Dialect(comment_lines=True)
KUBERNETES = Dialect(paren_variables=True)
MAKEFILE = Dialect(paren_variables=True, make=True)


class Literal(NamedTuple):
    """Text that means itself; `offsets[i]` is the file offset of `text[i]`."""

    text: str
    offsets: Sequence[int]
    quoted: bool = False


class Variable(NamedTuple):
    """`$NAME`, `${NAME<operator>argument}`, `$(NAME)` or `{{ NAME }}`. `array` says how it spreads: `@` or `*` for
    `${NAME[@]}`, empty otherwise; `written` is the text as it stands, `start` and `end` its file offsets."""

    name: str
    written: str
    start: int
    end: int
    quoted: bool = False
    operator: str = ""
    argument: tuple[Piece, ...] = ()
    array: str = ""


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(command)`, a backquoted command or `<(command)`: its tokens, and the text as it stands."""

    tokens: tuple[Token, ...]
    written: str
    start: int
    end: int
    quoted: bool = False


Piece = Literal | Variable | Substitution


@dataclass(frozen=True, slots=True)
class WordToken:
    """One word before expansion; `start` and `end` are indexes of the lexed text. `array` holds the elements of
    `NAME=(...)`."""

    pieces: tuple[Piece, ...]
    start: int
    end: int
    raw: str
    quoted: bool = False
    array: tuple[WordToken, ...] | None = None

    @property
    def plain(self) -> str | None:
        """The text of a word that is one unquoted literal, else `None`: what can be a reserved word."""
        if not self.quoted and len(self.pieces) == 1 and isinstance(self.pieces[0], Literal):
            return self.pieces[0].text
        return None


@dataclass(frozen=True, slots=True)
class Operator:
    """`;`, `&&`, `|`, a newline and so on. `continued_comment` marks a newline that ends a comment which stands where
    a continued line was meant to go on."""

    text: str
    start: int
    end: int
    continued_comment: bool = False


@dataclass(slots=True)
class Redirect:
    """`> file`, `2>&1`, `<<EOF`. A here-document has its body; `literal` says that nothing is expanded in it."""

    operator: str
    target: WordToken | None
    start: int
    end: int
    body: Mapped | None = None
    literal: bool = False
    strip: bool = False


Token = WordToken | Operator | Redirect

_BLANK = re.compile(r"[ \t]*")
_CONTINUED = re.compile(r"\\[ \t]*(?:\r\n|\r|\n)")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>(){}#]+")
_QUOTED_PLAIN = re.compile(r"[^\"\\$`{]+")
_ARGUMENT_PLAIN = re.compile(r"[^}'\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|;|&|\||\(|\)")
_REDIRECT = re.compile(r"(?:[0-9]+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|(&>>|&>)")
_EXPANSION = re.compile(r"(\[[@*]\]|\[[^\]\n]*\])?(:-|-|:=|=|:\?|\?|:\+|\+)?")
_TEMPLATE = re.compile(r"\{\{-?[ \t]*([^{}\r\n]*?)[ \t]*-?\}\}")
_ANSI = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
}


@dataclass(slots=True)
class _Lexer:
    mapped: Mapped
    dialect: Dialect
    at: int = 0
    depth: int = 0
    count: int = 0
    backquote: bool = False
    pending: list[Redirect] = field(default_factory=list)

    def offset(self, index: int) -> int:
        return self.mapped.offsets[index]

    def past(self, index: int) -> int:
        """The file offset just past the character before `index`."""
        return self.mapped.offsets[index - 1] + 1 if index else self.mapped.offsets[0]

    def literal(self, start: int, end: int, quoted: bool) -> Literal:
        return Literal(self.mapped.text[start:end], self.mapped.offsets[start:end], quoted)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ReadError(f"shell text is nested deeper than {MAX_DEPTH} levels", self.offset(self.at), limit=True)

    # -- tokens -------------------------------------------------------------------------------------------------

    def tokens(self, closing: str = "") -> list[Token]:
        """Tokens up to the unmatched `closing` character (which is consumed) or the end of the text."""
        outer, self.backquote = self.backquote, closing == "`"
        try:
            return self.tokens_until(closing)
        finally:
            self.backquote = outer

    def tokens_until(self, closing: str) -> list[Token]:
        self.deeper()
        text, length = self.mapped.text, len(self.mapped.text)
        found: list[Token] = []
        groups = 0
        continued = False
        while self.at < length:
            self.at = _BLANK.match(text, self.at).end()  # type: ignore[union-attr]
            if self.at >= length:
                break
            char = text[self.at]
            if char == "\\" and (match := _CONTINUED.match(text, self.at)):
                self.at = match.end()
                continued = True
                continue
            if char == "#":
                end = self.line_end(self.at)
                if self.dialect.comment_lines and self.line_is_blank_before(self.at):
                    self.at = self.next_line(end)
                    continue
                self.at = end
                if continued and self.at < length:
                    start = self.at
                    self.at = self.next_line(self.at)
                    found.append(Operator("\n", start, self.at, continued_comment=True))
                    self.read_heredocs()
                    continued = False
                continue
            if char in "\r\n":
                start = self.at
                self.at = self.next_line(self.at)
                if self.dialect.comment_lines and continued and not text[start : self.at].strip():
                    continue  # an empty line inside a continued RUN: builders join across it
                found.append(Operator("\n", start, self.at))
                self.read_heredocs()
                continued = False
                continue
            if closing == "`" and char == "`":
                self.at += 1
                self.depth -= 1
                return found
            if closing == ")" and char == ")" and not groups:
                self.at += 1
                self.depth -= 1
                return found
            continued = False
            redirect = _REDIRECT.match(text, self.at)
            if redirect and not (char in "<>" and text[self.at + 1 : self.at + 2] == "("):
                found.append(self.redirect(redirect))
            elif match := _OPERATOR.match(text, self.at):
                groups += {"(": 1, ")": -1}.get(match.group(), 0)
                found.append(Operator(match.group(), self.at, match.end()))
                self.at = match.end()
            else:
                before = self.at
                found.append(self.word())
                if self.at == before:  # a character that can start nothing: keep it as a word of its own
                    self.at += 1
            self.count += 1
            if self.count > MAX_TOKENS:
                raise ReadError(f"more than {MAX_TOKENS} shell words", self.offset(self.at), limit=True)
        self.depth -= 1
        return found

    def line_end(self, at: int) -> int:
        text = self.mapped.text
        ends = [end for end in (text.find("\n", at), text.find("\r", at) if "\r" in text else -1) if end != -1]
        return min(ends, default=len(text))

    def next_line(self, at: int) -> int:
        text = self.mapped.text
        if text.startswith("\r\n", at):
            return at + 2
        return min(at + 1, len(text))

    def line_is_blank_before(self, at: int) -> bool:
        text = self.mapped.text
        start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
        return start > 0 and not text[start:at].strip()

    def redirect(self, match: re.Match[str]) -> Redirect:
        start = self.at
        operator = match.group(1) or match.group(2)
        self.at = _BLANK.match(self.mapped.text, match.end()).end()  # type: ignore[union-attr]
        target = None
        if self.at < len(self.mapped.text) and self.mapped.text[self.at] not in "\r\n;|)":
            target = self.word(redirected=True)
        redirect = Redirect(operator, target, start, self.at)
        if operator in ("<<", "<<-"):
            redirect.literal = bool(target and (target.quoted or "\\" in target.raw))
            redirect.strip = operator == "<<-"
            self.pending.append(redirect)
        return redirect

    def read_heredocs(self) -> None:
        text = self.mapped.text
        pending, self.pending = self.pending, []
        for redirect in pending:
            delimiter = _plain_text(redirect.target) if redirect.target else ""
            start = self.at
            while True:
                if self.at >= len(text):
                    end = self.at
                    break
                end = self.line_end(self.at)
                line = text[self.at : end]
                if (line.lstrip("\t") if redirect.strip else line).rstrip("\r") == delimiter or (
                    line.strip() == delimiter and delimiter
                ):
                    end, self.at = self.at, self.next_line(end)
                    break
                self.at = self.next_line(end)
            redirect.body = self.mapped.piece(start, end) if end > start else Mapped("", (self.offset(start),))

    # -- words --------------------------------------------------------------------------------------------------

    def word(self, redirected: bool = False) -> WordToken:
        text, length = self.mapped.text, len(self.mapped.text)
        start = self.at
        pieces: list[Piece] = []
        quoted = False
        array: tuple[WordToken, ...] | None = None
        while self.at < length:
            char = text[self.at]
            if match := _PLAIN.match(text, self.at):
                pieces.append(self.literal(self.at, match.end(), False))
                self.at = match.end()
            elif char == "'":
                quoted = True
                pieces.append(self.single_quoted())
            elif char == '"':
                quoted = True
                pieces.extend(self.double_quoted())
            elif char == "\\":
                match = _CONTINUED.match(text, self.at)
                if match is None:
                    quoted = True
                    pieces.append(self.literal(self.at + 1, min(self.at + 2, length), True))
                    self.at = min(self.at + 2, length)
                elif match.end() - self.at > 2 and text[self.at + 1] in " \t":
                    break
                else:
                    self.at = match.end()
                    if self.dialect.comment_lines and self.at < length and text[self.at] in "#":
                        break
            elif char == "$":
                if text.startswith(("$'", '$"'), self.at):
                    quoted = True
                    self.at += 1
                    pieces.extend([self.ansi_quoted()] if text[self.at] == "'" else self.double_quoted())
                else:
                    pieces.append(self.dollar(False))
            elif char == "`":
                if self.backquote:
                    break
                pieces.append(self.backquoted(False))
            elif char == "#" and self.at > start:
                pieces.append(self.literal(self.at, self.at + 1, False))
                self.at += 1
            elif char == "{" and (template := _TEMPLATE.match(text, self.at)):
                pieces.append(self.template(template, False))
            elif char in "{}":
                pieces.append(self.literal(self.at, self.at + 1, False))
                self.at += 1
            elif char in "<>" and self.at == start and text.startswith("(", self.at + 1):
                self.at += 2
                tokens = self.tokens(")")
                pieces.append(
                    Substitution(tuple(tokens), text[start : self.at], self.offset(start), self.past(self.at), False)
                )
            elif char == "(" and not redirected and pieces and _assigns_array(pieces) and not quoted:
                array = self.array()
                break
            elif char == "(" and self.at > start and text[self.at - 1] in "?*+@!" and not quoted:
                self.at += 1  # an extended glob: its text is no command
                self.tokens(")")
                pieces.append(self.literal(self.at - 1, self.at, False))
            else:
                break
        return WordToken(tuple(pieces), start, self.at, text[start : self.at], quoted, array)

    def array(self) -> tuple[WordToken, ...]:
        self.at += 1
        tokens = self.tokens(")")
        return tuple(token for token in tokens if isinstance(token, WordToken))

    def single_quoted(self) -> Literal:
        text = self.mapped.text
        end = text.find("'", self.at + 1)
        close = len(text) if end == -1 else end
        piece = self.literal(self.at + 1, close, True)
        self.at = min(close + 1, len(text))
        return piece

    def ansi_quoted(self) -> Literal:
        text, length = self.mapped.text, len(self.mapped.text)
        chars: list[str] = []
        offsets: list[int] = []
        self.at += 1
        while self.at < length and text[self.at] != "'":
            offsets.append(self.offset(self.at))
            if text[self.at] == "\\" and self.at + 1 < length:
                chars.append(_ANSI.get(text[self.at + 1], text[self.at + 1]))
                self.at += 2
            else:
                chars.append(text[self.at])
                self.at += 1
        self.at = min(self.at + 1, length)
        return Literal("".join(chars), tuple(offsets), True)

    def double_quoted(self) -> list[Piece]:
        text, length = self.mapped.text, len(self.mapped.text)
        self.deeper()
        pieces: list[Piece] = []
        self.at += 1
        while self.at < length and text[self.at] != '"':
            char = text[self.at]
            if match := _QUOTED_PLAIN.match(text, self.at):
                pieces.append(self.literal(self.at, match.end(), True))
                self.at = match.end()
            elif char == "\\":
                if match := _CONTINUED.match(text, self.at):
                    self.at = match.end()
                elif text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\"):
                    pieces.append(self.literal(self.at + 1, self.at + 2, True))
                    self.at += 2
                else:
                    pieces.append(self.literal(self.at, self.at + 1, True))
                    self.at += 1
            elif char == "$":
                pieces.append(self.dollar(True))
            elif char == "`":
                if self.backquote:
                    break
                pieces.append(self.backquoted(True))
            elif template := _TEMPLATE.match(text, self.at):
                pieces.append(self.template(template, True))
            else:
                pieces.append(self.literal(self.at, self.at + 1, True))
                self.at += 1
        if not pieces:
            pieces.append(Literal("", (), True))
        if not (self.backquote and text.startswith("`", self.at)):
            self.at = min(self.at + 1, length)
        self.depth -= 1
        return pieces

    def template(self, match: re.Match[str], quoted: bool, start: int | None = None) -> Variable:
        start = self.at if start is None else start
        self.at = match.end()
        inner = match.group(1)
        name, _, pipe = inner.partition("|")
        argument: tuple[Piece, ...] = ()
        operator = ""
        default = re.match(r"\s*default\s*[( ]\s*(['\"])(.*?)\1", pipe)
        if default:
            base = match.start(1) + len(name) + 1
            argument = (self.literal(base + default.start(2), base + default.end(2), True),)
            operator = ":-"
        written = self.mapped.text[start : self.at]
        return Variable(name.strip(), written, self.offset(start), self.past(self.at), quoted, operator, argument)

    def expression(self, match: re.Match[str], quoted: bool, start: int) -> Variable:
        """`${{ a || b || 'literal' }}` of a workflow, as `${a:-${b:-literal}}` would be read."""
        self.at = match.end()
        base, choice = match.start(1), choice_of(match.group(1))
        argument: tuple[Piece, ...] = ()
        if choice.literal is not None:
            first, last = choice.literal
            argument = (self.literal(base + first, base + last, True),)
            for first, last in reversed(choice.others[:8]):
                name = self.mapped.text[base + first : base + last]
                begin, end = self.offset(base + first), self.past(base + last)
                argument = (Variable(name, name, begin, end, True, ":-", argument),)
        written = self.mapped.text[start : self.at]
        operator = ":-" if argument else ""
        return Variable(choice.name, written, self.offset(start), self.past(self.at), quoted, operator, argument)

    def backquoted(self, quoted: bool) -> Substitution:
        start = self.at
        self.at += 1
        tokens = self.tokens("`")
        return Substitution(
            tuple(tokens), self.mapped.text[start : self.at], self.offset(start), self.past(self.at), quoted
        )

    def dollar(self, quoted: bool) -> Piece:
        text = self.mapped.text
        start = self.at
        if self.dialect.make and text.startswith("$$", start):
            self.at += 1
            if not text.startswith(("$(", "${"), self.at) and not _NAME.match(text, self.at + 1):
                self.at += 1
                return self.literal(self.at - 1, self.at, quoted)
            return self.shell_dollar(start, quoted, expands=True)
        return self.shell_dollar(start, quoted, expands=not self.dialect.make)

    def shell_dollar(self, start: int, quoted: bool, *, expands: bool) -> Piece:
        text, length = self.mapped.text, len(self.mapped.text)
        at = self.at
        if text.startswith("${{", at):
            if expression := EXPRESSION.match(text, at + 1, at + LONGEST):
                return self.expression(expression, quoted, start)
            if template := UNPAIRED.match(text, at + 1, at + LONGEST):
                return self.template(template, quoted, start)
        if text.startswith("${", at):
            return self.braced(start, quoted)
        if text.startswith("$((", at):
            return self.arithmetic(start, quoted)
        if text.startswith("$(", at):
            name = _DOTTED_NAME.match(text, at + 2)
            named = name is not None and text.startswith(")", name.end())
            if (
                named
                and name is not None
                and (self.dialect.paren_variables or name.group().isupper())
                and not (expands and self.dialect.make)
            ):
                self.at = name.end() + 1
                return self.variable(name.group(), start, quoted)
            self.at = at + 2
            tokens = self.tokens(")")
            return Substitution(tuple(tokens), text[start : self.at], self.offset(start), self.past(self.at), quoted)
        if name := _NAME.match(text, at + 1) or _SPECIAL.match(text, at + 1):
            self.at = at + 2 if not expands else name.end()
            return self.variable(text[at + 1 : self.at], start, quoted)
        self.at = min(at + 1, length)
        return self.literal(at, self.at, quoted)

    def variable(self, name: str, start: int, quoted: bool) -> Variable:
        array = name if name in ("@", "*") else ""
        written = self.mapped.text[start : self.at]
        return Variable(name, written, self.offset(start), self.past(self.at), quoted, array=array)

    def braced(self, start: int, quoted: bool) -> Variable:
        text, length = self.mapped.text, len(self.mapped.text)
        at = self.at + 2
        name = _DOTTED_NAME.match(text, at) if self.dialect.make else _NAME.match(text, at)
        special = None if name else re.compile(r"[0-9]+|[@*#?$!-](?=[}:])").match(text, at)
        matched = name or special
        if matched is None:  # ${!X}, ${#X}: not the variable's own value
            self.skip_braces(at)
            return self.variable(text[at : self.at - 1], start, quoted)
        expansion = _EXPANSION.match(text, matched.end())
        subscript, operator = (expansion.group(1), expansion.group(2)) if expansion else (None, None)
        self.at = expansion.end() if expansion else matched.end()
        array = subscript[1] if subscript in ("[@]", "[*]") else ""
        label = matched.group() + (subscript if subscript and not array else "")
        if operator is None and not text.startswith("}", self.at):  # ${X%.*}, ${X/a/b}, ${X:0:7}
            self.skip_braces(self.at)
            return self.variable(text[at : self.at - 1], start, quoted)
        self.deeper()
        argument: list[Piece] = []
        while self.at < length and text[self.at] != "}":
            char = text[self.at]
            if match := _ARGUMENT_PLAIN.match(text, self.at):
                argument.append(self.literal(self.at, match.end(), quoted))
                self.at = match.end()
            elif char == '"':
                argument.extend(self.double_quoted())
            elif char == "'" and not quoted:
                argument.append(self.single_quoted())
            elif char == "\\" and self.at + 1 < length:
                if match := _CONTINUED.match(text, self.at):
                    self.at = match.end()
                else:
                    argument.append(self.literal(self.at + 1, self.at + 2, True))
                    self.at += 2
            elif char == "$":
                argument.append(self.dollar(quoted))
            elif char == "`":
                if self.backquote:
                    break
                argument.append(self.backquoted(quoted))
            else:
                argument.append(self.literal(self.at, self.at + 1, quoted))
                self.at += 1
        self.at = min(self.at + 1, length)
        self.depth -= 1
        written = text[start : self.at]
        return Variable(
            label, written, self.offset(start), self.past(self.at), quoted, operator or "", tuple(argument), array
        )

    def skip_braces(self, at: int) -> None:
        text, length = self.mapped.text, len(self.mapped.text)
        depth = 1
        while at < length and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        self.at = at

    def arithmetic(self, start: int, quoted: bool) -> Variable:
        text, length = self.mapped.text, len(self.mapped.text)
        at, depth = self.at + 3, 2
        first = at
        while at < length and depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        self.at = at
        inner = text[first : max(first, at - 2)]
        return Variable(inner.strip(), text[start:at], self.offset(start), self.past(at), quoted, "arithmetic", (), "")


def _assigns_array(pieces: list[Piece]) -> bool:
    return (
        len(pieces) == 1
        and isinstance(pieces[0], Literal)
        and re.fullmatch(r"[A-Za-z_]\w*\+?=", pieces[0].text) is not None
    )


def _plain_text(token: WordToken) -> str:
    """The text of a here-document delimiter: quotes and escapes removed, nothing expanded."""
    return "".join(piece.text if isinstance(piece, Literal) else piece.written for piece in token.pieces)


def lex(text: Mapped, dialect: Dialect = SHELL) -> list[Token]:
    """The tokens of a shell text. Raises `ReadError` only at a limit."""
    lexer = _Lexer(text, dialect)
    found: list[Token] = []
    while lexer.at < len(text.text):
        found.extend(lexer.tokens())
    if lexer.pending:
        lexer.read_heredocs()
    return found


def lex_words(text: Mapped, dialect: Dialect = SHELL) -> list[WordToken]:
    """The words of one text in which operators mean nothing (an argument list in a configuration file)."""
    return [token for token in lex(text, dialect) if isinstance(token, WordToken)]


def expansions(text: Mapped, dialect: Dialect = SHELL) -> tuple[Piece, ...]:
    """A whole text as one double-quoted word would be read: variables found, blanks and quotes kept."""
    lexer = _Lexer(text, dialect)
    pieces: list[Piece] = []
    while lexer.at < len(text.text):
        char = text.text[lexer.at]
        if char == "$":
            pieces.append(lexer.dollar(True))
        elif char == "{" and (template := _TEMPLATE.match(text.text, lexer.at)):
            pieces.append(lexer.template(template, True))
        else:
            match = re.compile(r"[^${]+").match(text.text, lexer.at)
            end = match.end() if match else lexer.at + 1
            pieces.append(lexer.literal(lexer.at, end, True))
            lexer.at = end
    return tuple(pieces)
