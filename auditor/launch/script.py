"""Facts of shell text: installs, source checkouts, images that are run or pulled, engine launches, variables.

`script_facts` reads a whole text (a script, a RUN line, a workflow step), `command_facts` a list of words (exec form).
What is only printed, searched for or killed by name is no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.launch.checkouts import Checkouts
from auditor.launch.images import family_of
from auditor.launch.installs import install_facts
from auditor.launch.parse import LaunchContext, engine_environment, launch_of
from auditor.launch.runtimes import assigned_image, build_arguments, image_facts, run_of, slurm_context
from auditor.model.facts import Definition, EngineLaunch, Fact, Flag
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import SHELL, Dialect, lex_words
from auditor.syntax.shell_values import Fragment, Scope, ShellWord, flatten, known_text, mapped_of
from auditor.syntax.shell_words import Assignment, Command, commands
from auditor.syntax.words import Word

MAX_EXPORTS = 400
"""How many exported names one launch is told of."""
MAX_NESTING = 12
"""How many scripts may stand in each other (`bash -c "ssh host 'bash -c ...'"`)."""

_SILENT = {
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "pgrep", "pkill", "killall", "kill",
    "ps", "test", "[", "[[", ":", "true", "false", "set", "unset", "shift", "trap", "cat", "head", "tail", "rm",
    "mkdir", "touch", "ls", "read", "return", "exit", "export", "declare", "local", "readonly", "typeset", "alias",
    "help", "man", "which", "type", "REM", "rem", "Write-Host", "Write-Output",
}  # fmt: skip
"""Programs whose arguments are text and no commands."""
_TALKS = re.compile(
    r"(?:^|[_-])(?:log|echo|print|info|warn|warning|error|err|die|fail|msg|message|say|usage|banner|note|debug|title|step|header)(?:[_-]|$)"
)
_SHELLS = {"bash", "sh", "zsh", "dash", "ksh", "ash", "busybox", "fish"}
_WRAPPERS: Mapping[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D"}),
    "env": frozenset({"-u", "-C", "-S"}),
    "exec": frozenset({"-a"}),
    "nohup": frozenset(),
    "time": frozenset({"-o", "-f"}),
    "command": frozenset(),
    "builtin": frozenset(),
    "setsid": frozenset(),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "timeout": frozenset({"-k", "-s", "--signal", "--kill-after"}),
    "tini": frozenset({"-p"}),
    "dumb-init": frozenset(),
    "catchsegv": frozenset(),
    "!": frozenset(),
    "then": frozenset(),
}
"""Programs that run the rest of the line -> their options with a value."""
_RUNS_TEXT = {
    "eval", "ssh", "su", "tmux", "screen", "watch", "flock", "runuser", "pdsh", "clush", "parallel", "xargs",
    "script", "docker", "podman", "nerdctl", "kubectl", "oc", "srun", "sbatch", "salloc", "sky", "gcloud", "ray",
    "konsole", "gnome-terminal", "xterm", "wsl", "modal", "apptainer", "singularity", "enroot", "tini", "su-exec",
    "gosu", "mpirun", "torchrun", "start", "powershell", "pwsh", "cmd", "run", "runpodctl", "vastai", "nsenter",
    "chroot",
}  # fmt: skip
"""Programs of which an argument with blanks can be a command."""
_COMMAND_START = re.compile(
    r"\s*(?:exec\s|cd\s|source\s|export\s|sudo\s|env\s|nohup\s|(?:[A-Z_][A-Z0-9_]*=\S*\s+)*(?:\S*/)?(?:python[\d.]*|sglang|uv|pip3?|docker|srun)\s)"
)
_ENTRY_TEXT = re.compile(r"sglang")
_EXPECTS_SCRIPT = re.compile(
    r"\.(?:sh|bash|sbatch|slurm|zsh|job|service|cmd)$|(?:^|/)(?:run|start|serve|launch|entrypoint)[\w-]*$"
)
_DATA_FILE = re.compile(
    r"\.(?:ya?ml|json|md|py|toml|txt|rst|html?|dockerfile|conf|cfg|ini|csv|log)$|dockerfile$", re.IGNORECASE
)


@dataclass(slots=True)
class _State:
    """What is carried along one text: where clones went, which launches were said, how deep texts nest."""

    source: SourceFile
    context: LaunchContext
    dialect: Dialect
    checkouts: Checkouts
    depth: int = 0
    launches: list[EngineLaunch] = field(default_factory=list)


def script_facts(
    text: Mapped, source: SourceFile, context: LaunchContext | None = None, dialect: Dialect = SHELL
) -> Iterator[Fact]:
    """The facts of a shell text. Raises `ReadError` at a limit of size or depth."""
    context = context or LaunchContext()
    checkouts = Checkouts(source, context.scope)
    state = _State(source, slurm_context(text, source, context), dialect, checkouts)
    yield from slurm_images(text, source, state.context)
    scope = Scope(source, context.variables)
    yield from _text_facts(text, state, scope)
    yield from _unused_commands(scope, state)
    yield from checkouts.facts()


def command_facts(words: Sequence[Word], source: SourceFile, context: LaunchContext | None = None) -> Iterator[Fact]:
    """The facts of one list of words that no shell has split (exec form). Raises `ReadError` at a limit."""
    context = context or LaunchContext()
    checkouts = Checkouts(source, context.scope)
    state = _State(source, context, SHELL, checkouts)
    scope = Scope(source, context.variables)
    yield from _word_facts(list(words), state, scope, None)
    yield from checkouts.facts()


def slurm_images(text: Mapped, source: SourceFile, context: LaunchContext) -> Iterator[Fact]:
    """Images of `#SBATCH --container-image=` lines, which look like comments and are not."""
    for match in re.finditer(r"^[ \t]*#SBATCH[ \t]+(\S.*)$", text.text, re.MULTILINE):
        words = lex_words(text.piece(match.start(1), match.end(1)))
        scope = Scope(source)
        expanded = [word for token in words for word in scope.expand(token)]
        yield from image_facts(["sbatch"], expanded, source, context)


def _text_facts(text: Mapped, state: _State, scope: Scope) -> Iterator[Fact]:
    if state.depth > MAX_NESTING:
        return
    state.depth += 1
    for command in commands(text, state.source, state.dialect, scope=scope):
        yield from _facts_of(command, state, scope)
    state.depth -= 1


def _facts_of(command: Command, state: _State, scope: Scope) -> Iterator[Fact]:
    for assignment in command.assignments:
        yield from _assignment_facts(assignment, state, bool(command.words) and not assignment.exported)
    if command.words:
        yield from _word_facts(list(command.words), state, scope, command)
    yield from _heredoc_facts(command, state, scope)


def _assignment_facts(assignment: Assignment, state: _State, prefix: bool) -> Iterator[Fact]:
    """The definition itself, and the image that an image variable names; under any other name the project's own."""
    if assignment.words is not None or prefix or assignment.append:
        return
    word = assignment.word
    yield Definition(assignment.name, word.value, "shell", state.context.scope, word.span)
    named = re.search(r"IMAGE|IMG|CONTAINER", assignment.name, re.IGNORECASE) is not None
    if named or "sglang" in word.text or "sgl-dev" in word.text:
        reference = assigned_image(word, state.source, state.context.scope)
        if reference is not None and (named or family_of(state.source.slice(reference.span)) == "upstream"):
            yield reference


def _heredoc_facts(command: Command, state: _State, scope: Scope) -> Iterator[Fact]:
    for redirect in command.heredocs:
        body = redirect.body
        if body is None or not _ENTRY_TEXT.search(body.text.lower()):
            continue
        program = command.words[0].text.rpartition("/")[2] if command.words else ""
        names = [word.text for word in (*command.outputs, *command.words[1:])]
        if program in ("cat", "tee", "") and any(_DATA_FILE.search(name) for name in names):
            continue
        if program in ("kubectl", "oc", "python", "python3", "helm", "docker-compose", "nomad", "terraform"):
            continue
        if "apiVersion:" in body.text and "kind:" in body.text:
            continue
        inner = Scope(state.source, state.context.variables) if redirect.literal else scope
        yield from _text_facts(body, state, inner)


def _word_facts(words: list[Word], state: _State, scope: Scope, command: Command | None) -> Iterator[Fact]:
    """Facts of one command. Its wrappers are taken off first; what they set goes into the environment."""
    given: dict[str, Flag] = {}
    if command is not None:
        for assignment in command.assignments:
            given[assignment.name] = Flag(assignment.name, assignment.word.value, assignment.span, assignment.name)
    words = _unwrapped(words, given)
    if not words:
        return
    program = words[0].text.rpartition("/")[2]
    if program in _SILENT or (_TALKS.search(program) and program != "run"):
        return
    if program == "cd" and len(words) > 1:
        state.checkouts.enter(words[1].text)
        return
    if program == "git":
        state.checkouts.git(words)
        return
    context = state.context
    if program in _SHELLS or program in _RUNS_TEXT or any("sglang" in word.text for word in words):
        env = dict(context.env)
        if command is not None:
            _add_exports(env, scope)
        context = replace(context, env={**env, **given})
    yield from install_facts(words, state.source, context.scope)
    run = run_of(program, words, state.source, context)
    if run is not None:
        yield from run.images
        context = run.context
        yield from build_arguments(words, state.source, context.scope)
    else:
        yield from image_facts([program], words[1:], state.source, context)
    launch = launch_of(words if run is None else words[run.start :], state.source, context)
    if launch is not None and not _only_named(words):
        launch = _within(launch, words, command)
        state.launches.append(launch)
        yield launch
        return
    yield from _nested_facts(words, program, replace(state, context=context), scope)


def _only_named(words: Sequence[Word]) -> bool:
    """Whether the engine is only asked for its help or version."""
    return any(word.text in ("--help", "-h", "--version") for word in words[1:])


def _within(launch: EngineLaunch, words: Sequence[Word], command: Command | None) -> EngineLaunch:
    """Keep the span of a launch inside the command that it stands in: words of variables come from elsewhere."""
    if command is None:
        return launch
    own = command.span
    if launch.span.start < own.start or launch.span.start >= own.end:
        return launch
    ends = [word.span.end for word in words if own.start <= word.span.start and word.span.end <= own.end]
    end = max([*ends, launch.span.start], default=launch.span.end)
    return replace(launch, span=Span(own.path, launch.span.start, max(end, launch.span.start)))


def _add_exports(env: dict[str, Flag], scope: Scope) -> None:
    """Put what the text exports so far, and the engine reads, into an environment."""
    for name in list(scope.exported)[:MAX_EXPORTS]:
        if not engine_environment(name):
            continue
        binding = scope.current(name)
        if binding is not None and binding.words is None:
            word = scope.word(scope.fragments(binding), False, "", binding.span)
            env[name] = Flag(name, word.value, binding.span, name)


def _unwrapped(words: list[Word], env: dict[str, Flag]) -> list[Word]:
    """The words behind `sudo`, `env A=b`, `exec`, `timeout 10` and their like."""
    while words:
        name = words[0].text.rpartition("/")[2]
        if name not in _WRAPPERS:
            return words
        valued = _WRAPPERS[name]
        rest = words[1:]
        while rest:
            text = rest[0].text
            if text.startswith("-") and text != "-":
                rest = rest[2:] if text in valued and "=" not in text else rest[1:]
            elif name in ("env", "sudo") and (match := re.match(r"([A-Za-z_]\w*)=", text)):
                value = text[match.end() :]
                env[match.group(1)] = Flag(match.group(1), value, rest[0].span, match.group(1))
                rest = rest[1:]
            else:
                break
        if name == "timeout" and rest and re.match(r"[\d.]+[smhd]?$|\$", rest[0].text):
            rest = rest[1:]
        words = rest
    return words


def _nested_facts(words: Sequence[Word], program: str, state: _State, scope: Scope) -> Iterator[Fact]:
    """Texts inside a command that are commands themselves: `bash -c '...'`, `ssh host "..."`, `eval "$CMD"`."""
    if program == "eval" and len(words) > 1:
        yield from _text_facts(_nested_text(words[1:], state.source), state, scope)
        return
    previous = ""
    for index, word in enumerate(words):
        shell = words[index - 1].text if index else ""
        after_c = bool(re.fullmatch(r"-[A-Za-z]*c", previous)) and any(
            earlier.text.rpartition("/")[2] in _SHELLS for earlier in words[:index]
        )
        wrapped = word.text.startswith(("--wrap=", "--command=", "--args="))
        previous = word.text
        text = _nested_text([word], state.source)
        if not re.search(r"\s", text.text.strip()) and not after_c:
            continue
        if not after_c and not _worth_reading(text.text):
            continue
        if wrapped:
            text = text.piece(word.text.index("=") + 1, len(text.text))
        if after_c or wrapped or (index and program in _RUNS_TEXT) or (index and _COMMAND_START.match(text.text)):
            if shell in ("-f", "--filter", "--format", "-m") and not after_c:
                continue
            scope.budget -= len(text.text) // 32  # the same long text may be run many times
            if scope.budget <= 0:
                return
            yield from _text_facts(text, state, scope)


def _worth_reading(text: str) -> bool:
    return "sglang" in text.lower() or "install" in text


def _nested_text(words: Sequence[Word], source: SourceFile) -> Mapped:
    """The text that an inner shell would get; a variable that holds a command is replaced by it."""
    fragments: list[Fragment] = []
    for index, word in enumerate(words):
        if index and fragments:
            last = fragments[-1].offsets[-1] if len(fragments[-1].offsets) else 0
            fragments.append(Fragment(" ", (last,)))
        if isinstance(word, ShellWord):
            for fragment in word.fragments:
                known = known_text([fragment]) if fragment.inner is not None else None
                if known is not None and re.search(r"\s", known.strip()):
                    fragments.extend(flatten([fragment]))
                else:
                    fragments.append(fragment)
        else:
            mapped = word.mapped or _mapped(word, source)
            fragments.append(Fragment(mapped.text, mapped.offsets[: len(mapped.text)]))
    return mapped_of(fragments)


def _mapped(word: Word, source: SourceFile) -> Mapped:
    """The text of a word whose reader gave no places: found inside its span, or laid over it."""
    start, end = word.span.start.offset, word.span.end.offset
    text = word.text
    at = source.text.find(text, start, end) if text else -1
    if at >= 0:
        return Mapped(text, range(at, at + len(text) + 1))
    last = max(start, end - 1)
    return Mapped(text, tuple(min(start + index, last) for index in range(len(text) + 1)))


def _unused_commands(scope: Scope, state: _State) -> Iterator[Fact]:
    """Launches in variables that no command of the text uses (`CMD="python -m sglang.launch_server ..."`)."""
    said = [launch.span for launch in state.launches]
    for name in list(scope.bindings):
        for binding in scope.bindings[name]:
            if binding.words is not None:
                words: list[Word] = [word for word, _ in binding.words]
                launch = launch_of(words, state.source, state.context)
                found = [launch] if launch is not None else []
            else:
                fragments = tuple(fragment for part, _ in binding.parts for fragment in part)
                text = _nested_text([scope.word(fragments, True, "")], state.source)
                if not _ENTRY_TEXT.search(text.text) or not re.search(r"\s", text.text.strip()):
                    continue
                inner = replace(state, launches=[], checkouts=Checkouts(state.source, state.context.scope))
                found = [
                    fact
                    for fact in _text_facts(text, inner, Scope(state.source, state.context.variables))
                    if isinstance(fact, EngineLaunch)
                ]
            for launch in found:
                if not any(span.start < launch.span.end and launch.span.start < span.end for span in said):
                    said.append(launch.span)
                    yield launch
