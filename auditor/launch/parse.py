"""Words of a command line -> one start of the engine, with its options typed and under their canonical names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from auditor.launch.flags import Kind, is_known, spelled, typed
from auditor.model.facts import (
    Definition,
    EngineLaunch,
    Flag,
    FlagProblem,
    Gpu,
    Hole,
    Related,
    Role,
    Unresolved,
    Value,
)
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.syntax.shell_words import ShellWord
from auditor.syntax.words import Word


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What stands around a command and belongs to its launch: `scope` in words, `env` set by the same file, `gpu` and
    `nodes` asked for, the `image` that it runs in, the `deployment` that joins roles, `probes`, `variables` that
    `$NAME` may mean (build arguments, container environment), and the `precision` said of the model's weights."""

    scope: str = ""
    env: Mapping[str, Flag] = field(default_factory=dict)
    gpu: Gpu | None = None
    nodes: int | None = None
    image: Value | None = None
    deployment: str = ""
    probes: tuple[Related, ...] = ()
    variables: Mapping[str, Definition] = field(default_factory=dict)
    precision: Flag | None = None


SECRETS = frozenset({"api-key", "admin-api-key", "ssl-keyfile-password"})
"""Options whose value is kept out of every report."""

SERVERS: Mapping[str, str] = {
    "sglang.launch_server": "sglang.launch_server",
    "sglang.srt.entrypoints.http_server": "sglang.launch_server",
    "sglang_router.launch_server": "sglang_router.launch_server",
    "sglang.bench_offline_throughput": "sglang.bench_offline_throughput",
    "sglang.bench_one_batch": "sglang.bench_one_batch",
    "sglang.bench_one_batch_server": "sglang.bench_one_batch_server",
    "sglang.bench_latency": "sglang.bench_latency",
    "sglang.benchmark.offline_throughput": "sglang.bench_offline_throughput",
    "sglang.benchmark.one_batch": "sglang.bench_one_batch",
    "sglang.benchmark.one_batch_server": "sglang.bench_one_batch_server",
    "sglang.compile_deep_gemm": "sglang.compile_deep_gemm",
    "dynamo.sglang": "dynamo.sglang",
    "dynamo.sglang.worker": "dynamo.sglang",
    "dynamo.sglang.decode_worker": "dynamo.sglang",
    "dynamo.sglang.main": "dynamo.sglang",
}
"""Modules that parse the engine's options and size a pool -> the entrypoint's name. Routers, load balancers and
`sglang.bench_serving` are clients and not listed (sglang wheels 0.3.6 to 0.5.23; Dynamo documentation)."""

_SCRIPT = re.compile(r"(?:^|/)sglang/(?:python/sglang/)?(launch_server|bench_one_batch|bench_offline_throughput)\.py$")
_NUMBER = re.compile(r"-\.?\d")
_REPEATED = {"ints", "strs", "floats"}
_ENGINE_ENV = re.compile(
    r"(?:SGLANG|SGL|DYN|MOONCAKE|MC|NCCL|DUMPER|AITER)_\w+|(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES"
)


def engine_environment(name: str) -> bool:
    """Whether an environment variable can move what the engine does; others are not kept (they may be secrets)."""
    return _ENGINE_ENV.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a launch starts in a list of words: `first` is the first word of it, `arguments` the first option;
    `positional` says that a bare word is the model."""

    entrypoint: str
    first: int
    arguments: int
    positional: bool = False


def entry_of(words: Sequence[Word], image: Value | None = None) -> Entry | None:
    """The engine's entry in a list of words, `None` when the words start no engine. A list that holds nothing but
    options is a launch when the image is the engine's."""
    for index, word in enumerate(words):
        text = word.text
        if text == "-m" and index + 1 < len(words):
            entrypoint = SERVERS.get(words[index + 1].text)
            if entrypoint is not None:
                return Entry(entrypoint, _first(words, index), index + 2)
        elif text.startswith("-m") and text[2:] in SERVERS:
            return Entry(SERVERS[text[2:]], _first(words, index), index + 1)
        elif index + 1 < len(words) and (text == "sglang" or text.endswith("/sglang")):
            if words[index + 1].text == "serve":
                return Entry("sglang serve", index, index + 2, positional=True)
        elif match := _SCRIPT.search(text):
            return Entry(f"sglang.{match.group(1)}", _first(words, index), index + 1)
        elif text in SERVERS and (index == 0 or words[index - 1].text == "--module"):
            return Entry(SERVERS[text], index, index + 1)
    if words and runs_engine(image) and sum(is_known(word.text.partition("=")[0]) for word in words) >= 1:
        if words[0].text == "serve":
            return Entry("sglang serve", 0, 1, positional=True)
        if words[0].text.startswith("--"):
            return Entry("image", 0, 0)
    return None


def runs_engine(image: Value | None) -> bool:
    """Whether an image reference is the engine's own image (no router, gateway or other product)."""
    text = image.text if isinstance(image, Unresolved) else str(image or "")
    name = text.rpartition("@")[0] or text
    return re.search(r"(?:^|/)sglang(?:-rocm|-runtime)?(?::|@|$)", name) is not None


def engine_version(image: Value | None) -> str | None:
    """The engine release that an image reference states, `None` when it states none."""
    if not isinstance(image, str):
        return None
    from auditor.launch.images import image_verdict

    return image_verdict(image).version


def _first(words: Sequence[Word], index: int) -> int:
    """The interpreter before `-m`, or `index` itself."""
    first = index
    while first > 0 and re.fullmatch(r"-[A-Za-z]+|-X\S*", words[first - 1].text):
        first -= 1
    before = words[first - 1].text if first else ""
    return (
        first - 1
        if re.search(r"(?:^|/|\$\{?)(?:python|py)[\w.]*\}?$", before, re.IGNORECASE) or before.startswith("$")
        else index
    )


def launch_of(words: Sequence[Word], source: SourceFile, context: LaunchContext | None = None) -> EngineLaunch | None:
    """The launch that a list of words is, or `None`. `words` may begin before the entry (`srun`, `docker run ...`)."""
    context = context or LaunchContext()
    entry = entry_of(words, context.image)
    if entry is None:
        return None
    arguments = words[entry.arguments :]
    version = engine_version(context.image)
    flags, problems, bare = read_flags(arguments, source, positional=entry.positional, version=version)
    own = [word.span for word in words[entry.first :] if word.span.path == source.path]
    start = words[entry.first].span.start
    end = max((span.end for span in own if span.start >= start), default=words[entry.first].span.end)
    return assemble(entry.entrypoint, flags, problems, bare, Span(source.path, start, end), context)


def assemble(
    entrypoint: str,
    flags: Mapping[str, Flag],
    problems: Sequence[FlagProblem],
    model: Value | None,
    span: Span,
    context: LaunchContext,
    role: Role | None = None,
) -> EngineLaunch:
    """A launch from options that are read already."""
    if "model-path" in flags:
        model = flags["model-path"].value
    nodes = context.nodes
    count = flags.get("nnodes")
    if count is not None and isinstance(count.value, int) and not isinstance(count.value, bool):
        nodes = count.value
    return EngineLaunch(
        entrypoint=entrypoint,
        model=model,
        role=role or role_of(flags),
        flags=flags,
        scope=context.scope,
        span=span,
        env={name: flag for name, flag in context.env.items() if engine_environment(name)},
        gpu=context.gpu,
        nodes=nodes,
        problems=tuple(problems),
        deployment=context.deployment,
        image=context.image,
        probes=context.probes,
        precision=context.precision,
    )


def role_of(flags: Mapping[str, Flag]) -> Role:
    """The role that the options give: no mode, or the mode `null`, is one server for both phases."""
    mode = flags.get("disaggregation-mode")
    if mode is None:
        return "unified"
    value = mode.value
    if value == "prefill":
        return "prefill"
    if value == "decode":
        return "decode"
    return "unified" if value in ("null", "", "none", False) else "unknown"


def read_flags(
    words: Sequence[Word], source: SourceFile, *, positional: bool = False, version: str | None = None
) -> tuple[dict[str, Flag], list[FlagProblem], Value | None]:
    """Options of a launch in order; the last one of a name wins. Also what the engine's parser would refuse, and the
    first bare word where one may stand (the model of `sglang serve`)."""
    flags: dict[str, Flag] = {}
    problems: list[FlagProblem] = []
    bare: Value | None = None
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        text = word.text
        if not text.startswith("--") or text == "--":
            if positional and bare is None and not text.startswith("-"):
                bare = word.value
                flags["model-path"] = Flag("model-path", word.value, word.span, "")
            continue
        spelling, equals, _ = text.partition("=")
        if isinstance(word.value, Unresolved) and not (word.value.parts and isinstance(word.value.parts[0], str)):
            continue
        meaning = spelled(spelling, version)
        kind = meaning.option.kind if meaning.option else None
        values: list[Word] = []
        if equals:
            value: Value = typed_value(after(word.value, len(spelling) + 1), kind)
        else:
            while index < len(words) and _is_value(words[index]) and kind != "flag":
                values.append(words[index])
                index += 1
                if kind not in _REPEATED:
                    break
            value = True if not values else typed_value(_joined(values), kind)
        end = values[-1].span if values else word.span
        span = _cover(word.span, end)
        if meaning.name in SECRETS:
            value = "(secret)"
        flags.pop(meaning.name, None)
        flags[meaning.name] = Flag(meaning.name, value, span, spelling)
        if meaning.problem:
            problems.append(FlagProblem(spelling, meaning.problem, span))
    return flags, problems, bare


def _is_value(word: Word) -> bool:
    """Whether a word can be an option's value: anything but an option; a negative number is a value."""
    text = word.text
    return not text.startswith("-") or _NUMBER.match(text) is not None or text == "-"


def _cover(first: Span, last: Span) -> Span:
    if first.path != last.path or last.end < first.start:
        return first
    return Span(first.path, first.start, max(first.end, last.end))


def _joined(words: Sequence[Word]) -> Value:
    return words[0].value if len(words) == 1 else " ".join(word.text for word in words)


def after(value: Value, length: int) -> Value:
    """The part of a value behind its first `length` characters, which are literal."""
    if isinstance(value, str):
        return value[length:]
    if not isinstance(value, Unresolved):
        return value
    parts: list[str | Hole] = []
    left = length
    for part in value.parts:
        if isinstance(part, str) and left:
            taken = part[left:]
            left = max(0, left - len(part))
            if taken:
                parts.append(taken)
        else:
            parts.append(part)
    return Unresolved(value.text[length:], tuple(parts))


def typed_value(value: Value, kind: Kind | None) -> Value:
    """A value under an option's type; an unresolved one keeps its holes."""
    return typed(value, kind) if isinstance(value, str) else value


def with_environment(launch: EngineLaunch, env: Mapping[str, Flag]) -> EngineLaunch:
    """The launch with more environment; what it has already wins."""
    kept = {name: flag for name, flag in env.items() if engine_environment(name)}
    return replace(launch, env={**kept, **launch.env})


def mapping_launch(
    entries: Iterable[tuple[str, Value, Span]],
    source: SourceFile,
    span: Span,
    context: LaunchContext | None = None,
    *,
    entrypoint: str = "sglang.launch_server",
    role: Role | None = None,
) -> EngineLaunch:
    """A launch whose options are keys of a mapping (`sglang_config:` of srt-slurm, `serverArgs:` of a chart, a
    `--config` file, keywords of `sgl.Engine`). `entries` are key as written, value, and the span of key and value;
    `False` means that the option is not given."""
    context = context or LaunchContext()
    flags: dict[str, Flag] = {}
    problems: list[FlagProblem] = []
    for key, value, place in entries:
        meaning = spelled(key.replace("_", "-"))
        kind = meaning.option.kind if meaning.option else None
        if value is False and kind in ("flag", "optional-flag", None):
            continue
        flags.pop(meaning.name, None)
        flags[meaning.name] = Flag(meaning.name, typed_value(value, kind), place, key)
        if meaning.problem:
            problems.append(FlagProblem(key, meaning.problem, place))
    return assemble(entrypoint, flags, problems, None, span, context, role)


ENVIRONMENT_FLAGS: Mapping[str, str] = {
    "MODEL_NAME": "model-path",
    "MODEL_PATH": "model-path",
    "CONTEXT_LENGTH": "context-length",
    "MAX_TOTAL_TOKENS": "max-total-tokens",
    "MEM_FRACTION_STATIC": "mem-fraction-static",
    "MAX_PREFILL_TOKENS": "max-prefill-tokens",
    "CHUNKED_PREFILL_SIZE": "chunked-prefill-size",
    "MAX_RUNNING_REQUESTS": "max-running-requests",
    "TENSOR_PARALLEL_SIZE": "tp-size",
    "DATA_PARALLEL_SIZE": "dp-size",
    "KV_CACHE_DTYPE": "kv-cache-dtype",
    "QUANTIZATION": "quantization",
    "DTYPE": "dtype",
    "LOAD_FORMAT": "load-format",
    "REVISION": "revision",
}
"""Environment of the RunPod worker for SGLang (worker-sglang README, table of settings) -> option."""


def environment_launch(
    env: Mapping[str, Flag], source: SourceFile, span: Span, context: LaunchContext | None = None
) -> EngineLaunch | None:
    """A launch that is configured by environment alone; `None` when nothing but a model, or nothing, is set."""
    flags: dict[str, Flag] = {}
    for name, flag in env.items():
        target = ENVIRONMENT_FLAGS.get(name)
        if target is not None:
            option = spelled(target).option
            value = typed_value(flag.value, option.kind if option else None)
            flags[target] = Flag(target, value, flag.span, name)
    if not flags.keys() - {"model-path", "revision", "dtype", "load-format"}:
        return None
    context = context or LaunchContext()
    return assemble("environment", flags, (), None, span, replace(context, env={**context.env, **env}))


def is_shell_word(word: Word) -> bool:
    """Whether a word came out of shell text and knows its fragments."""
    return isinstance(word, ShellWord)
