"""Source checkouts in shell text: `git clone` of an engine repository, and the tag, branch or commit that follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.launch.parse import after
from auditor.model.facts import PackageReference, Related, Unresolved, Value
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.shell_values import ShellWord, known_text
from auditor.syntax.words import Word

_REPOSITORY = re.compile(r"(?:^|[/:])([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")
_VALUED = {
    "-b",
    "--branch",
    "--depth",
    "-o",
    "--origin",
    "-c",
    "--config",
    "--reference",
    "-j",
    "--jobs",
    "--filter",
    "-u",
}


@dataclass(slots=True)
class _Clone:
    name: str
    folder: str
    url: Word
    ref: Word | None


class Checkouts:
    """The clones of one shell text, in order, and the folder that commands run in."""

    def __init__(self, source: SourceFile, scope: str) -> None:
        self.source = source
        self.scope = scope
        self.clones: list[_Clone] = []
        self.folder = ""

    def enter(self, folder: str) -> None:
        """`cd folder`."""
        folder = folder.rstrip("/")
        self.folder = "" if folder in ("..", "-", "~", "") else folder.rpartition("/")[2]

    def git(self, words: Sequence[Word]) -> None:
        """Take in one `git` command."""
        rest = list(words[1:])
        folder = self.folder
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option in ("-C", "-c", "--git-dir", "--work-tree") and rest:
                value = rest.pop(0).text
                if option == "-C":
                    folder = value.rstrip("/").rpartition("/")[2]
        if not rest:
            return
        verb = rest.pop(0).text
        if verb == "clone":
            self.clone(rest)
        elif verb in ("checkout", "switch", "reset"):
            refs = [word for word in rest if not word.text.startswith("-")]
            creates = any(word.text in ("-b", "-B", "-c", "-C") for word in rest)
            if verb == "reset" and not any(word.text == "--hard" for word in rest):
                return
            if any(word.text == "--" for word in rest):
                return
            target = refs[-1] if creates and len(refs) > 1 else (refs[0] if refs and not creates else None)
            if target is not None:
                self.checkout(target, folder)

    def clone(self, rest: list[Word]) -> None:
        ref: Word | None = None
        bare: list[Word] = []
        while rest:
            word = rest.pop(0)
            text = word.text
            if text.startswith("--branch="):
                ref = _tail(word, len("--branch="), self.source)
            elif text in _VALUED:
                value = rest.pop(0) if rest else None
                if text in ("-b", "--branch"):
                    ref = value
            elif not text.startswith("-"):
                bare.append(word)
        if not bare:
            return
        match = _REPOSITORY.search(_known(bare[0]))
        if match is None:
            return
        folder = bare[1].text.rstrip("/").rpartition("/")[2] if len(bare) > 1 else match.group(2)
        if folder == "." or not folder:
            folder = self.folder
        self.clones.append(_Clone(match.group(2), folder, bare[0], ref))

    def checkout(self, ref: Word, folder: str) -> None:
        for clone in reversed(self.clones):
            if clone.folder == folder or (folder == "" and clone is self.clones[-1] and clone.ref is None):
                clone.ref = ref
                return

    def facts(self) -> Iterator[PackageReference]:
        """One reference for each clone; the name of the repository is the name of the package."""
        for clone in self.clones:
            value: Value | None = clone.ref.value if clone.ref is not None else None
            span = clone.url.span
            related: tuple[Related, ...] = ()
            if clone.ref is not None:
                ref = clone.ref.span
                span = ref
                if (
                    ref.path == span.path
                    and ref.start.line != clone.url.span.start.line
                    and ref.start > clone.url.span.start
                ):
                    span = Span(ref.path, clone.url.span.start, ref.end)
                related = (Related(clone.url.span, "the repository is cloned here"),)
            name = re.sub(r"[-_.]+", "-", clone.name).lower()
            yield PackageReference(
                name, "vcs", self.scope, span, vcs_ref=value, vcs_url=_known(clone.url), related=related
            )


def _known(word: Word) -> str:
    """The text of a word when nothing from outside sets its variables; as written where that is not known."""
    known = known_text(word.fragments) if isinstance(word, ShellWord) else None
    return word.text if known is None else known


def _tail(word: Word, length: int, source: SourceFile) -> Word:
    """The word behind its first `length` characters."""
    value = after(word.value, length)
    text = value.text if isinstance(value, Unresolved) else str(value)
    span = word.span
    if not word.quoted:
        span = source.span(span.start.offset + length, span.end.offset)
    return Word(value, span, text, word.quoted)
