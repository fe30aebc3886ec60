"""Dockerfiles: base images, images that files are copied from, what RUN installs, what a stage starts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.parse import LaunchContext
from auditor.launch.script import command_facts, script_facts
from auditor.model.facts import Definition, Fact, Flag, ImageReference, Related, Value
from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span
from auditor.syntax.dockerfile import Instruction, instructions
from auditor.syntax.expansion import word_of_text
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_words import DOCKERFILE, ShellWord, split_words
from auditor.syntax.words import Word
from auditor.syntax.yaml_nodes import ListNode, ScalarNode, documents

_FLAG = re.compile(r"--([a-z]+)(?:=(\S*))?\Z", re.IGNORECASE)
_MOUNT = re.compile(r"--mount=(\S+)")
_MOUNT_FROM = re.compile(r"(?:\A|,)from=([^,\s]+)")
_HEREDOC_ONLY = re.compile(r"(?:--\S+[ \t]+)*<<-?[ \t]*[\"']?[A-Za-z_][\w.-]*[\"']?[ \t\r]*\Z")
_WHEEL = re.compile(r"[^\s/]+\.(?:whl|tar\.gz|zip)(?:#\S*)?\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Stage:
    name: str
    scope: str
    image: Value | None = None
    variables: dict[str, Definition] = field(default_factory=dict)
    env: dict[str, Flag] = field(default_factory=dict)
    entrypoint: list[Word] | None = None
    command: tuple[list[Word], Span] | None = None
    probes: tuple[Related, ...] = ()


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one file. Raises `ReadError` at a limit of size or depth."""
    yield from _Reading(source).run()


class _Reading:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.globals: dict[str, Definition] = {}
        self.stages: list[_Stage] = []

    @property
    def stage(self) -> _Stage | None:
        return self.stages[-1] if self.stages else None

    def run(self) -> Iterator[Fact]:
        for instruction in instructions(self.source):
            name = instruction.name
            if name == "FROM":
                yield from self.close()
                yield from self.start(instruction)
            elif name == "ARG":
                yield from self.argument(instruction)
            elif name == "ENV":
                self.environment(instruction)
            elif name in ("COPY", "ADD"):
                yield from self.copy(instruction)
            elif name == "RUN":
                yield from self.execute(instruction)
            elif name in ("CMD", "ENTRYPOINT"):
                yield from self.start_command(instruction)
            elif name == "HEALTHCHECK":
                self.healthcheck(instruction)
        yield from self.close()

    # -- stages -------------------------------------------------------------------------------------------------

    def start(self, instruction: Instruction) -> Iterator[Fact]:
        words = [word for word in self.words(instruction.text, self.globals) if not word.text.startswith("--")]
        if not words:
            return
        named = len(words) >= 3 and words[1].text.lower() == "as"
        name = words[2].text.lower() if named else ""
        parent = self.find_stage(words[0].text)
        scope = f"stage {name or len(self.stages)}"
        stage = _Stage(name, scope)
        if parent is not None:
            stage.image = parent.image
            stage.env = dict(parent.env)
            stage.variables = {key: value for key, value in parent.variables.items() if key in parent.env}
            stage.entrypoint = parent.entrypoint
            stage.probes = parent.probes
        else:
            stage.image = words[0].value
            yield from self.image(words[0], scope)
        self.stages.append(stage)

    def find_stage(self, text: str) -> _Stage | None:
        lower = text.lower()
        if text.isdigit() and int(text) < len(self.stages):
            return self.stages[int(text)]
        return next((stage for stage in reversed(self.stages) if stage.name and stage.name == lower), None)

    def image(self, word: Word, scope: str) -> Iterator[Fact]:
        text = word.text
        if text.lower() == "scratch" or not text or text.isdigit() or self.find_stage(text) is not None:
            return
        yield ImageReference(word.value, scope, word.span)

    # -- variables ----------------------------------------------------------------------------------------------

    def visible(self) -> dict[str, Definition]:
        return self.stage.variables if self.stage is not None else self.globals

    def words(self, text: Mapped, variables: dict[str, Definition] | None = None) -> tuple[ShellWord, ...]:
        return split_words(text, self.source, DOCKERFILE, self.visible() if variables is None else variables)

    def argument(self, instruction: Instruction) -> Iterator[Fact]:
        for word in self.words(instruction.text):
            name, equals, _ = word.text.partition("=")
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                continue
            definition: Definition | None = None
            if equals:
                definition = self.definition(name, word, len(name) + 1)
            elif self.stage is not None:
                definition = self.globals.get(name)
            if definition is None:
                self.visible().pop(name, None)
                continue
            self.visible()[name] = definition
            if equals:
                yield definition

    def definition(self, name: str, word: ShellWord, skip: int) -> Definition:
        """The definition that `NAME=value` gives; its span is the value as written."""
        from auditor.launch.parse import after

        value = after(word.value, skip)
        if isinstance(value, str):
            value = value.strip("\"'")
        start = word.span.start.offset + skip
        end = word.span.end.offset
        text = self.source.text
        if start < end and text[start] in "\"'":
            end -= text[end - 1] == text[start] and end - start > 1
            start += 1
        scope = self.stage.scope if self.stage is not None else ""
        return Definition(name, value, "dockerfile", scope, self.source.span(min(start, end), end))

    def environment(self, instruction: Instruction) -> None:
        stage = self.stage
        if stage is None:
            return
        words = self.words(instruction.text)
        if words and "=" not in words[0].text and len(words) >= 2:  # the old form: ENV NAME value
            pairs = [(words[0].text, words[1], 0)]
        else:
            pairs = [(word.text.partition("=")[0], word, len(word.text.partition("=")[0]) + 1) for word in words]
        for name, word, skip in pairs:
            if not re.fullmatch(r"[A-Za-z_]\w*", name) or (skip and "=" not in word.text):
                continue
            definition = self.definition(name, word, skip)
            stage.variables[name] = definition
            stage.env[name] = Flag(name, definition.value, definition.span, name)

    # -- instructions -------------------------------------------------------------------------------------------

    def context(self) -> LaunchContext:
        stage = self.stage
        if stage is None:
            return LaunchContext(variables=self.globals)
        return LaunchContext(
            scope=stage.scope, env=stage.env, image=stage.image, variables=stage.variables, probes=stage.probes
        )

    def copy(self, instruction: Instruction) -> Iterator[Fact]:
        words = self.words(instruction.text)
        scope = self.stage.scope if self.stage is not None else ""
        for word in words:
            if word.text.lower().startswith("--from="):
                yield from self.image(self.cut(word, 7), scope)
        plain = [word for word in words if not word.text.startswith("--")]
        if instruction.name == "ADD":
            yield from self.added(plain[:-1], scope)
        for heredoc in instruction.heredocs:
            target = plain[-1].text if plain else ""
            if target.endswith((".sh", ".bash")) or re.match(r"#!.*\b(?:ba|z|da|k)?sh\b", heredoc.body.text):
                yield from script_facts(heredoc.body, self.source, self.context())

    def added(self, words: list[ShellWord], scope: str) -> Iterator[Fact]:
        from auditor.syntax.requirement_lines import requirement_of_word

        for word in words:
            if "://" in word.text and (_WHEEL.search(word.text) or ".git" in word.text):
                reference = requirement_of_word(word, self.source, scope)
                if reference is not None:
                    yield reference

    def cut(self, word: ShellWord, skip: int) -> Word:
        """The word without an option's name before the value."""
        from auditor.launch.parse import after

        start = word.span.start.offset + skip
        return Word(
            after(word.value, skip), self.source.span(start, word.span.end.offset), word.raw[skip:], word.quoted
        )

    def execute(self, instruction: Instruction) -> Iterator[Fact]:
        scope = self.stage.scope if self.stage is not None else ""
        text = instruction.text
        at = 0
        for match in re.finditer(r"\s*(--[a-z]+(?:=(?:\"[^\"]*\"|\S*))?)(?=\s)", text.text):
            if match.start() != at:
                break
            at = match.end()
            mount = _MOUNT.match(match.group(1))
            came = _MOUNT_FROM.search(mount.group(1)) if mount else None
            if mount and came:
                begin = match.start(1) + mount.start(1) + came.start(1)
                piece = text.piece(begin, begin + len(came.group(1)))
                yield from self.image(word_of_text(piece, self.source, DOCKERFILE, self.visible()), scope)
        body = text.piece(at, len(text.text))
        words = exec_form(body, self.source, self.visible())
        if words is not None:
            yield from command_facts(words, self.source, self.context())
        elif instruction.heredocs and _HEREDOC_ONLY.match(body.text.strip()):
            for heredoc in instruction.heredocs:
                first = heredoc.body.text.lstrip().split("\n", 1)[0]
                if not first.startswith("#!") or re.search(r"\b(?:ba|z|da|k)?sh\b", first):
                    yield from script_facts(heredoc.body, self.source, self.context())
        elif instruction.heredocs:
            whole = self.source.text[text.offsets[at] : instruction.end]
            begin = text.offsets[at]
            mapped = Mapped(whole, range(begin, begin + len(whole) + 1))
            yield from script_facts(mapped, self.source, self.context(), DOCKERFILE)
        else:
            yield from script_facts(body, self.source, self.context(), DOCKERFILE)

    def start_command(self, instruction: Instruction) -> Iterator[Fact]:
        stage = self.stage
        if stage is None:
            return
        words = exec_form(instruction.text, self.source, stage.variables)
        if words is None:
            if instruction.name == "ENTRYPOINT":
                stage.entrypoint, stage.command = None, None
            else:
                stage.command = None
            yield from script_facts(instruction.text, self.source, self.context(), DOCKERFILE)
        elif instruction.name == "ENTRYPOINT":
            stage.entrypoint, stage.command = words, None
        else:
            stage.command = (words, self.source.span(instruction.start, instruction.end))

    def close(self) -> Iterator[Fact]:
        """What a stage starts when it runs: entrypoint and command together."""
        stage = self.stage
        if stage is None:
            return
        words = [*(stage.entrypoint or ()), *(stage.command[0] if stage.command else ())]
        inherited = stage.command is None and any(
            earlier.entrypoint is stage.entrypoint for earlier in self.stages[:-1]
        )
        if words and not inherited:
            yield from command_facts(words, self.source, self.context())

    def healthcheck(self, instruction: Instruction) -> None:
        stage = self.stage
        found = re.search(r"(?:\A|\s)CMD\s+(.*)", instruction.text.text, re.DOTALL | re.IGNORECASE)
        if stage is not None and found:
            span = self.source.span(instruction.start, instruction.end)
            stage.probes = (Related(span, f"healthcheck: {' '.join(found.group(1).split())}"),)


def exec_form(text: Mapped, source: SourceFile, variables: dict[str, Definition]) -> list[Word] | None:
    """The words of a JSON list, `None` when the text is a shell command."""
    stripped = text.text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    cleaned = stripped.replace("\\\n", "  ")
    lead = len(text.text) - len(text.text.lstrip())
    inner = SourceFile("", cleaned)
    answer = documents(inner)
    if answer.errors or len(answer.roots) != 1 or not isinstance(answer.roots[0], ListNode):
        return None
    words: list[Word] = []
    for item in answer.roots[0].items:
        if not isinstance(item, ScalarNode):
            return None
        mapped = item.mapped
        offsets = [text.offsets[lead + offset] for offset in mapped.offsets[: len(mapped.text)]]
        offsets.append(offsets[-1] + 1 if offsets else text.offsets[lead + item.start])
        words.append(word_of_text(Mapped(mapped.text, offsets), source, DOCKERFILE, variables))
    return words
