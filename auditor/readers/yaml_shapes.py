"""Shapes that manifests of every kind share: images joined from several keys, environment, accelerators, probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.launch.images import family_of, is_reference, parse_reference
from auditor.model.facts import OR, Definition, Flag, Gpu, Hole, ImageReference, Related, Unresolved, Value
from auditor.model.records import dataclass
from auditor.model.spans import SourceFile, Span
from auditor.syntax.expansion import expression_literal, word_of, word_of_text
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import Dialect
from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode

_REPOSITORY_WORDS = frozenset({"repository", "repo", "name", "uri", "newname"})
_TAG_WORDS = frozenset({"tag", "version", "newtag"})
_IMAGE_WORDS = frozenset({"image", "img"})
_CONTAINER_WORDS = frozenset({"container", "docker"})
_NOT_IMAGE_WORDS = frozenset(
    {
        "pull", "policy", "secret", "secrets", "size", "port", "ports", "count", "user", "username", "password", "dir",
        "path", "file", "dockerfile", "prompt", "generation", "processor", "token", "tokens", "format", "credentials",
        "inputs", "input", "output", "builder", "runtime", "scan", "width", "height",
    }
)  # fmt: skip
_VERSIONED = re.compile(r"(?:v?\d+\.\d|latest|dev|nightly|main\b)", re.IGNORECASE)
_ENV_KEYS = (
    "env",
    "environment",
    "envs",
    "env_vars",
    "environment_variables",
    "extraEnv",
    "extraEnvs",
    "env_variables",
)
_GPU_RESOURCE = re.compile(
    r"(?:nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai|huawei\.com)/(?!.*(?:mem|core|rdma))|gpu$", re.I
)
_GPU_WORDS = re.compile(
    r"(?:nvidia:|amd:)?([A-Za-z][\w.-]*(?:,[A-Za-z][\w.-]*)*)(?::(\d+GB)(?:\.\.)?)?(?::(\d+))?(?:\.\.\d*)?(?::\d+(?:\.\.\d+)?)?"
)
PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


VariableMap = Mapping[str, Definition]


def words_of_key(key: str) -> tuple[str, ...]:
    """The words of a key in lower case: `imageTag`, `image_tag`, `IMAGE-TAG`, `sglang.image.tag`."""
    return tuple(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_").replace(".", "_").split("_"))


@dataclass(frozen=True, slots=True)
class JoinedImage:
    """An image as a mapping states it, with the scalars that it was read from."""

    fact: ImageReference
    used: tuple[ScalarNode, ...]


def is_image_key(key: str) -> bool:
    """Whether a key says that its value is an image."""
    words = words_of_key(key)
    return not _IMAGE_WORDS.isdisjoint(words) and _NOT_IMAGE_WORDS.isdisjoint(words)


def _is_container_key(key: str) -> bool:
    words = words_of_key(key)
    return not _CONTAINER_WORDS.isdisjoint(words) and _NOT_IMAGE_WORDS.isdisjoint(words)


def image_of_scalar(
    node: ScalarNode, key: str, scope: str, dialect: Dialect, variables: Mapping[str, Definition]
) -> ImageReference | None:
    """The image that one scalar names. Where the key does not speak of images, only an engine image with its whole
    shape counts: names, model ids and prose never do."""
    if node.is_null or "\n" in node.value.strip():
        return None
    return image_of_text(node.mapped, node.source, key, scope, dialect, variables)


def image_of_text(
    mapped: Mapped,
    source: SourceFile,
    key: str,
    scope: str,
    dialect: Dialect,
    variables: VariableMap,
) -> ImageReference | None:
    """The image that a text under a key names; see `image_of_scalar`."""
    lead = len(mapped.text) - len(mapped.text.lstrip())
    text = mapped.text.strip()
    if not text or len(text) > 400:
        return None
    mapped = mapped.piece(lead, lead + len(text))
    span = mapped.span(source, 0, len(text))
    keyed = is_image_key(key)
    if "$" in text or "{{" in text:
        word = word_of_text(mapped, source, dialect, variables)
        value: Value = word.value
        literal = expression_literal(word, text)
        if literal is not None:  # an expression and nothing else: what its literal names decides, and is to change
            named = image_of_text(literal, source, key, scope, dialect, variables)
            if named is not None and family_of(named.reference) is not None:
                return ImageReference(value, scope, named.span)
    else:
        value = text
    if isinstance(value, Unresolved):
        family = family_of(value)
        if not keyed and not (family and (_shape_of(value) or _is_container_key(key))):
            return None
        if not keyed and family == "unknown" and not _is_container_key(key):
            return None  # a variable named after the engine is an image only where a key says so
        if " " in _filled(value).strip() or "://" in _filled(value).removeprefix("docker://"):
            return None
        return ImageReference(value, scope, span)
    if keyed and re.fullmatch(r"[\w.+:/@#-]+", text) and not text.startswith(("./", "../")):
        if text.startswith("/") and not text.endswith((".sqsh", ".sif")):
            return None
        if family_of(text) is not None or is_reference(text):
            return ImageReference(text, scope, span)
    if not is_reference(text) and not text.endswith(".sqsh"):
        return None
    family = family_of(text)
    if family is None:
        return None
    parts = parse_reference(text)
    if "/" not in parts.repository and not (isinstance(parts.tag, str) and _VERSIONED.match(parts.tag)):
        return None
    if family != "upstream" and parts.tag is None and parts.digest is None and not _is_container_key(key):
        return None
    return ImageReference(text, scope, span)


def _filled(value: Unresolved) -> str:
    return "".join(part if isinstance(part, str) else "x" for part in value.parts)


def _shape_of(value: Unresolved) -> bool:
    """Whether the text around the variables has the shape of a reference with a repository of the engine."""
    literal = _filled(value)
    first = value.parts[0] if value.parts else ""
    return is_reference(literal) and (isinstance(first, str) or len(value.parts) > 1)


def joined_image(
    node: MapNode, key: str, scope: str, dialect: Dialect, variables: Mapping[str, Definition]
) -> Iterator[JoinedImage]:
    """Images that a mapping keeps in several keys: registry, repository and tag or digest. The span is the tag's."""
    scalars = {
        entry.key.value: entry.value
        for entry in node.entries
        if isinstance(entry.value, ScalarNode) and "\n" not in entry.value.value
    }
    by_words = {words_of_key(name): name for name in scalars}
    parent_is_image = is_image_key(key) or key == ""
    for words, name in by_words.items():
        last = words[-1]
        if last in _REPOSITORY_WORDS or last in ("image", "img"):
            prefix = words[:-1] if last in _REPOSITORY_WORDS else words
        else:
            continue
        repository = scalars[name]
        if repository.is_null or not repository.value.strip():
            continue
        if last in ("name", "uri", "newname") and not ("image" in words or "img" in words or is_image_key(key)):
            continue
        stems = {prefix, words, words[:-1]}
        tag_name = next(
            (other for parts, other in by_words.items() if parts[-1] in _TAG_WORDS and parts[:-1] in stems), None
        )
        digest_name = next(
            (other for parts, other in by_words.items() if parts[-1] in ("digest", "sha") and parts[:-1] in stems), None
        )
        if tag_name is None and digest_name is None:
            continue
        if (
            last in ("image", "img")
            and tag_name is not None
            and parse_reference(_value(repository, dialect, variables)).tag
        ):
            continue  # the reference is whole already; the tag belongs to something else
        if tag_name is not None and scalars[tag_name].start == repository.start:
            continue
        registry_name = next(
            (
                other
                for parts, other in by_words.items()
                if parts[-1] in ("registry", "hub", "host") and parts[:-1] in stems
            ),
            None,
        )
        joined = _join(
            scalars.get(registry_name or ""), repository, scalars.get(tag_name or ""), scalars.get(digest_name or ""),
            scope, dialect, variables,
        )  # fmt: skip
        if joined is not None and (parent_is_image or last != "name"):
            yield joined


def _value(node: ScalarNode, dialect: Dialect, variables: Mapping[str, Definition]) -> Value:
    return word_of(node, dialect, variables).value if "$" in node.value or "{{" in node.value else node.value.strip()


def _join(
    registry: ScalarNode | None,
    repository: ScalarNode,
    tag: ScalarNode | None,
    digest: ScalarNode | None,
    scope: str,
    dialect: Dialect,
    variables: Mapping[str, Definition],
) -> JoinedImage | None:
    parts: list[Value] = []
    used = [repository]
    if registry is not None and registry.value.strip() and not registry.is_null:
        host = registry.value.strip().rstrip("/")
        if not repository.value.strip().startswith(host + "/"):
            parts.extend((_value(registry, dialect, variables), "/"))
        used.append(registry)
    parts.append(_value(repository, dialect, variables))
    place = repository
    if tag is not None and tag.value.strip() and not tag.is_null:
        parts.extend((":", _value(tag, dialect, variables)))
        place = tag
    if tag is not None:
        used.append(tag)
    if digest is not None and digest.value.strip() and not digest.is_null:
        text = digest.value.strip()
        parts.append("@" if ":" in text or "$" in text or "{" in text else "@sha256:")
        parts.append(_value(digest, dialect, variables))
        used.append(digest)
        place = place if place is not repository else digest
    return JoinedImage(ImageReference(joined_value(parts), scope, place.span), tuple(used))


def joined_value(parts: list[Value]) -> Value:
    """Texts and values with holes after each other, as one value."""
    flat: list[str | Hole] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Unresolved) else (str(part),):
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            else:
                flat.append(piece)
    if all(isinstance(piece, str) for piece in flat):
        return "".join(piece for piece in flat if isinstance(piece, str))
    text = "".join(part.text if isinstance(part, Unresolved) else str(part) for part in parts)
    return Unresolved(text, tuple(flat))


def environment_of(node: MapNode, dialect: Dialect, variables: Mapping[str, Definition]) -> dict[str, Flag]:
    """The environment that a container or task sets, in the list forms and the mapping form."""
    env: dict[str, Flag] = {}
    for key in _ENV_KEYS:
        value = node.get(key)
        if isinstance(value, MapNode):
            for entry in value.entries:
                if isinstance(entry.value, ScalarNode):
                    add_setting(env, entry.key.value, entry.value, dialect, variables)
        elif isinstance(value, ListNode):
            for item in value.items:
                if isinstance(item, MapNode):
                    name, setting = item.text("name") or item.text("key"), item.get("value")
                    if name and isinstance(setting, ScalarNode):
                        add_setting(env, name, setting, dialect, variables)
                elif isinstance(item, ScalarNode) and "=" in item.value:
                    name, _, text = item.value.partition("=")
                    span = item.mapped.span(item.source, len(name) + 1, len(item.value)) if text else item.span
                    env[name.strip()] = Flag(name.strip(), text, span, name.strip())
    return env


def add_setting(
    env: dict[str, Flag], name: str, node: ScalarNode, dialect: Dialect, variables: Mapping[str, Definition]
) -> None:
    """One variable of an environment."""
    if not node.is_null:
        env[name] = Flag(name, _value(node, dialect, variables), place_of(node, dialect, variables), name)


def place_of(node: ScalarNode, dialect: Dialect, variables: Mapping[str, Definition]) -> Span:
    """Where the text to change stands: the literal of a workflow expression, otherwise the scalar."""
    if not node.value.startswith("${{"):
        return node.span
    literal = expression_literal(word_of(node, dialect, variables), node.value)
    return node.span if literal is None else literal.span(node.source, 0, len(literal))


def definitions_of(env: Mapping[str, Flag], scope: str) -> dict[str, Definition]:
    """The environment as definitions that `$NAME` and `$(NAME)` of the same container reach."""
    return {name: Definition(name, flag.value, "container-env", scope, flag.span) for name, flag in env.items()}


def accelerators_of(node: MapNode) -> Gpu | None:
    """The accelerators that a mapping asks for: Kubernetes limits, compose devices, SkyPilot, dstack, Truss, Slurm
    recipes, Nomad and ECS; `None` where it asks for none."""
    resources = node.map("resources")
    if resources is not None:
        for part in ("limits", "requests"):
            found = _counted(resources.map(part))
            if found is not None:
                return found
        for key in ("accelerators", "accelerator", "gpu", "gpus"):
            found = _named(resources.get(key))
            if found is not None:
                return found
        machine = resources.get("instance_type")
        if isinstance(machine, ScalarNode) and not machine.is_null:
            return Gpu(machine.value, None, machine.span)
        kind, count = resources.get("gpu_type"), resources.get("gpus_per_node")
        if isinstance(kind, ScalarNode) or isinstance(count, ScalarNode):
            place = kind if isinstance(kind, ScalarNode) else count
            number = count.typed if isinstance(count, ScalarNode) else None
            return Gpu(
                kind.value if isinstance(kind, ScalarNode) else None,
                number if isinstance(number, int) else None,
                place.span if isinstance(place, ScalarNode) else None,
            )
        device = resources.map("device")
        if device is not None and re.search("gpu|accelerator", device.text("name") or ""):
            return _device(device)
        found = _counted(resources)
        if found is not None:
            return found
    for item in node.list("deploy", "resources", "reservations", "devices"):
        if isinstance(item, MapNode):
            return _device(item)
    machine = node.get("resource", "instanceType")  # a KAITO workspace
    if isinstance(machine, ScalarNode) and not machine.is_null:
        return Gpu(machine.value, None, machine.span)
    gpus = node.get("gpus")
    return _named(gpus) if gpus is not None else None


def _counted(node: MapNode | None) -> Gpu | None:
    if node is None:
        return None
    for entry in node.entries:
        if isinstance(entry.value, ScalarNode) and _GPU_RESOURCE.match(entry.key.value):
            number = re.fullmatch(r"\d+", entry.value.value.strip())
            kind = entry.key.value.rpartition("/")[2]
            named = None if re.match(r"[vp]?gpus?(?:\.shared)?\Z|npu\Z|xe|i915", kind) else kind
            return Gpu(named, int(number.group()) if number else None, entry.value.span)
    return None


def _named(node: Node | None) -> Gpu | None:
    """`H100:8`, `A100:80GB:2`, `{H100: 8}`, `8`, `all`, `{name: H100, count: 8}`, or a choice of them."""
    if isinstance(node, ListNode):
        return _one_of([_named(item) for item in node.items])
    if isinstance(node, MapNode):
        name, count = node.get("name"), node.get("count")
        if isinstance(name, (ScalarNode, ListNode)) or isinstance(count, ScalarNode):
            number = count.typed if isinstance(count, ScalarNode) else None
            named = _named(name)
            memory = node.text("memory") or ""
            kind = named.type if named is not None else None
            if kind and OR not in kind and re.fullmatch(r"\d+GB", memory):
                kind = f"{kind}-{memory}"
            return Gpu(
                kind,
                number if isinstance(number, int) else None,
                named.span if named is not None and named.span is not None else node.span,
            )
        found = []
        for entry in node.entries:
            if isinstance(entry.value, ScalarNode) and re.match(r"[A-Za-z]", entry.key.value):
                number = entry.value.typed
                found.append(Gpu(entry.key.value, number if isinstance(number, int) else None, entry.key.span))
        return _one_of(found)
    if not isinstance(node, ScalarNode) or node.is_null or "{{" in node.value:
        return None
    text = node.value.strip()
    if text.isdigit():
        return Gpu(None, int(text), node.span)
    found_text = _GPU_WORDS.fullmatch(text)
    if text in ("all", "any") or found_text is None:
        sized = re.fullmatch(r"[\d.]+GB(?:\.\.(?:[\d.]+GB)?)?(?::(\d+))?", text)
        return Gpu(None, int(sized.group(1)) if sized and sized.group(1) else None, node.span)
    names, memory, number = found_text.group(1, 2, 3)
    kind = names.replace(",", OR) if "," in names else f"{names}-{memory}" if memory else names
    return Gpu(kind, int(number) if number else 1, node.span)


def _one_of(choices: Sequence[Gpu | None]) -> Gpu | None:
    """What a list of alternatives leaves open: any of the types; their count where it is the same."""
    found = [choice for choice in choices if choice is not None]
    if not found:
        return None
    kinds = list(dict.fromkeys(choice.type for choice in found if choice.type))
    counts = {choice.count for choice in found}
    count = found[0].count if len(counts) == 1 else None
    return Gpu(OR.join(kinds) if len(found) == len(choices) and kinds else None, count, found[0].span)


def combined(known: Gpu | None, gpu: Gpu) -> Gpu:
    """What two places say of the accelerators of one pod, the later one first; a slice (`mig-3g.40gb`) is one of the
    card that the other names."""
    kind = gpu.type or (known.type if known else None)
    if known is not None and known.type and gpu.type:
        part, card = (gpu.type, known.type) if gpu.type.startswith("mig-") else (known.type, gpu.type)
        if part.startswith("mig-") and not card.startswith("mig-"):
            kind = card if re.search(r"\dg\.\d+gb", card) else f"{card}-{part}"
    return Gpu(kind, gpu.count if gpu.count is not None else known.count if known else None, gpu.span)


def _device(node: MapNode) -> Gpu:
    count, ids = node.get("count"), node.list("device_ids")
    number = count.typed if isinstance(count, ScalarNode) else None
    if ids:
        return Gpu(None, len(ids), node.span)
    return Gpu(None, number if isinstance(number, int) else None, node.span)


def probes_of(node: MapNode) -> tuple[Related, ...]:
    """How a container is asked whether it is ready: `readiness: GET /health` and its like, at the place of the path."""
    found: list[Related] = []
    for name in PROBES:
        probe = node.map(name)
        if probe is not None:
            found.append(_probe(name.removesuffix("Probe"), probe))
    test = node.get("healthcheck", "test") or node.get("healthcheck", "command")
    if isinstance(test, ScalarNode):
        found.append(Related(test.span, f"healthcheck: {' '.join(test.value.split())}"))
    elif isinstance(test, ListNode):
        text = " ".join(item.value for item in test.items if isinstance(item, ScalarNode))
        found.append(Related(test.span, f"healthcheck: {' '.join(text.split())}"))
    return tuple(found)


def _probe(name: str, probe: MapNode) -> Related:
    path = probe.get("httpGet", "path")
    if isinstance(path, ScalarNode):
        return Related(path.span, f"{name}: GET {path.value}")
    command = probe.get("exec", "command")
    if isinstance(command, ListNode):
        text = " ".join(item.value for item in command.items if isinstance(item, ScalarNode))
        return Related(command.span, f"{name}: exec {' '.join(text.split())}")
    for kind in ("tcpSocket", "grpc", "httpGet"):
        part = probe.get(kind)
        if part is not None:
            return Related(part.span, f"{name}: {kind}")
    return Related(probe.span, f"{name}: present")
