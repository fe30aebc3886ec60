"""Engine options that stand as keys of a mapping: Slurm recipes, Helm values, worker environments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.flags import spelled
from auditor.launch.images import family_of, parse_reference
from auditor.launch.parse import LaunchContext, environment_launch, mapping_launch
from auditor.model.facts import EngineLaunch, Flag, Role, Value
from auditor.model.records import replace
from auditor.model.spans import SourceFile, Span
from auditor.readers.yaml_shapes import add_setting
from auditor.syntax.expansion import word_of
from auditor.syntax.shell_lexer import Dialect
from auditor.syntax.yaml_nodes import Entry, MapNode, Node, ScalarNode

OPTION_KEYS = frozenset(
    {
        "serverArgs", "server_args", "engineArgs", "engine_args", "engine_kwargs", "engineKwargs", "sglangArgs",
        "sglang_args", "sglang_kwargs", "launch_args", "launchArgs", "extraArgs", "extra_args", "args",
    }
)  # fmt: skip
OWN = frozenset(
    {
        "mem-fraction-static", "disaggregation-mode", "max-total-tokens", "chunked-prefill-size", "max-prefill-tokens",
        "disable-radix-cache", "schedule-conservativeness", "cuda-graph-max-bs", "enable-dp-attention", "page-size",
    }
)  # fmt: skip
"""Options that no other engine has under this name."""

Option = tuple[str, Value, Span]


def kebab(key: str) -> str:
    """An option's name from a key: `tpSize`, `tp_size`, `--tp-size`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", key.removeprefix("--")).lower().replace("_", "-")


def cover(source: SourceFile, first: ScalarNode, last: Node) -> Span:
    """From the start of a key to the end of its value."""
    end = last.span.end.offset if isinstance(last, ScalarNode) else last.end
    return source.span(first.start, max(end, first.end))


def options_of(node: MapNode, known: frozenset[str] = frozenset()) -> list[Option]:
    """The scalars of a mapping as options, less those whose name is in `known`."""
    found: list[Option] = []
    for entry in node.entries:
        value = entry.value
        if not isinstance(value, ScalarNode) or kebab(entry.key.value) in known:
            continue
        typed = value.typed
        if typed is not None:
            meaning = word_of(value).value if "$" in value.value or "{{" in value.value else typed
            found.append((kebab(entry.key.value), meaning, cover(node.source, entry.key, value)))
    return found


def recipe_launches(
    node: MapNode, base: MapNode | None, context: LaunchContext, dialect: Dialect, model: Value | None = None
) -> Iterator[EngineLaunch]:
    """`sglang_config: {prefill: {...}, decode: {...}}` of srt-slurm; `base` is the backend that a variant changes,
    `model` what the recipe mounts: srt-slurm drops the options' own `model-path` (`backends/sglang.py`)."""
    config = node.map("sglang_config")
    for entry in config.entries if config is not None else ():
        if not isinstance(entry.value, MapNode):
            continue
        name = entry.key.value
        options = options_of(entry.value)
        below = base.map("sglang_config", name) if base is not None else None
        if below is not None:
            options = [*options_of(below, frozenset(option[0] for option in options)), *options]
        env = dict(context.env)
        for owner in (base, node):
            environment = owner.map(f"{name}_environment") if owner is not None else None
            for setting in environment.entries if environment is not None else ():
                if isinstance(setting.value, ScalarNode):
                    add_setting(env, setting.key.value, setting.value, dialect, {})
        role: Role | None = "prefill" if name == "prefill" else "decode" if name == "decode" else None
        inner = replace(context, env=env, scope=f"{context.scope}/{name}")
        launch = mapping_launch(options, node.source, cover(node.source, entry.key, entry.value), inner, role=role)
        yield launch if model is None else replace(launch, model=model)


def option_launch(entry: Entry, context: LaunchContext) -> EngineLaunch | None:
    """A mapping under a key of server options, where it or its surroundings are the engine's."""
    if entry.key.value not in OPTION_KEYS or not isinstance(entry.value, MapNode):
        return None
    options = options_of(entry.value)
    names = [spelled(name).name for name, _, _ in options if spelled(name).option is not None]
    own = len(set(names) & OWN)
    engine = context.image is not None and family_of(context.image) is not None
    named = "sglang" in entry.key.value.lower() or "sglang" in context.scope.lower()
    if not (own >= 2 or (names and engine) or (own and named)):
        return None
    return mapping_launch(options, entry.value.source, cover(entry.value.source, entry.key, entry.value), context)


def worker_launch(env: dict[str, Flag], source: SourceFile, context: LaunchContext) -> EngineLaunch | None:
    """The environment of a worker image that starts the engine by its settings."""
    if context.image is None or parse_reference(context.image).repository.rsplit("/", 1)[-1] != "worker-sglang":
        return None
    spans = sorted(flag.span for flag in env.values())
    if not spans:
        return None
    whole = Span(source.path, spans[0].start, spans[-1].end)
    return environment_launch(env, source, whole, context)


def with_siblings(launch: EngineLaunch, node: MapNode) -> EngineLaunch:
    """A launch of Helm values with the options that stand beside it as keys: `tpSize: 16`, `model: ...`."""
    flags = dict(launch.flags)
    model = launch.model
    for name, value, span in options_of(node):
        meaning = spelled(name)
        if name == "model" and model is None:
            model = value
        elif (
            meaning.option is not None and meaning.name not in flags and name not in ("model", "image", "host", "port")
        ):
            flags[meaning.name] = Flag(meaning.name, value, span, name)
    return replace(launch, flags=flags, model=model)
