"""Commands that run or fetch container images: docker and its kin, apptainer, enroot, Slurm, kubectl."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from auditor.launch.images import repository_of
from auditor.launch.parse import LaunchContext, after
from auditor.model.facts import BUILT, OR, Definition, Fact, Flag, Gpu, Hole, ImageReference, Unresolved
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_words import ShellWord, leaf, split_words
from auditor.syntax.words import Word

_DOCKER = {"docker", "podman", "nerdctl", "nvidia-docker", "lima", "finch"}
_SIF = {"apptainer", "singularity"}
_BARE_OPTIONS = {
    "--rm", "--privileged", "--init", "--read-only", "--no-healthcheck", "--oom-kill-disable", "--publish-all",
    "--sig-proxy", "--disable-content-trust", "--quiet", "--tty", "--interactive", "--detach", "--replace", "--rmi",
    "--tls-verify", "--no-hosts", "--help", "--nv", "--rocm", "--writable", "--writable-tmpfs", "--containall",
    "--contain", "--cleanenv", "--fakeroot", "--force", "--no-home", "--no-mount", "--compat", "--userns",
    "--all-tags", "--net", "--nvccli", "--disable-cache", "--sandbox",
}  # fmt: skip
"""Options without a value (docker, podman and apptainer manuals); any other long option takes the next word."""
_BARE_SHORT = set("ditPqF")
_IMAGE_OPTIONS = (
    "--container-image", "--image", "--imageName", "--image-name", "--image-id", "--image-uri", "--docker-image",
    "--base-image", "--container",
)  # fmt: skip
_IMAGE_PROGRAMS = {
    "srun",
    "sbatch",
    "salloc",
    "kubectl",
    "oc",
    "gcloud",
    "az",
    "runpodctl",
    "sky",
    "aws",
    "vastai",
    "oras",
    "dstack",
    "modal",
}
_REFERENCE = re.compile(
    r"(?:docker://|docker-daemon:|oci://)?[\w.$\{\}:-]+(?:[/#][\w.${}-]+)+(?::[\w.${}-]+)?(?:@sha256:[0-9a-f]+)?$"
)
_CARD = re.compile(
    r"(?:nvidia[_-])?(?:[abhlv]\d{1,3}s?|g[bh]\d00|mi\d{3}x?|rtx[\w-]*\d{4}\w*)(?:[_-](?:sxm\d?|pcie|nvl|\d+gb?))*",
    re.IGNORECASE,
)
_GRES = re.compile(r"gpu(?::((?=[\w.-]*[A-Za-z])[\w.-]+|\d{4}(?=:)))?(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an image: the references found, where the inner command begins, and the context that it runs in."""

    images: tuple[ImageReference, ...]
    start: int
    context: LaunchContext
    command: bool = True


def image_of(word: Word, source: SourceFile, scope: str, skip: int = 0) -> ImageReference | None:
    """The image that a word names; `skip` characters before it belong to an option. A variable that is the whole
    reference stands where it is defined."""
    value, span = leaf(word, source) if isinstance(word, ShellWord) and not skip else (word.value, word.span)
    if skip:
        value = after(value, skip)
        if not word.quoted or (isinstance(word, ShellWord) and _plain_start(word, skip)):
            span = source.span(span.start.offset + skip, span.end.offset)
    text = value.text if isinstance(value, Unresolved) else str(value)
    for prefix in ("docker://", "oci://", "docker-daemon:", "docker:"):
        if text.startswith(prefix):
            value = after(value, len(prefix))
            if source.text.startswith(prefix, span.start.offset):
                span = source.span(span.start.offset + len(prefix), span.end.offset)
            break
    if isinstance(value, str):
        if not value or value.startswith(("/", ".", "-")):
            return None
        value = value.replace("#", "/", 1)
    return ImageReference(value, scope, span)


def _plain_start(word: ShellWord, skip: int) -> bool:
    first = word.fragments[0] if word.fragments else None
    return first is not None and not first.quoted and len(first.text) >= skip


def assigned_image(word: ShellWord, source: SourceFile, scope: str) -> ImageReference | None:
    """The image that a variable is set to, where the text has the shape of a reference with a path and a tag."""
    value, span = leaf(word, source)
    text = source.slice(span)
    if not re.search(r"[/]", text) or not _REFERENCE.match(text) or text.startswith(("/", ".")):
        return None
    if not re.search(r":[^/]+$|@sha256:", text) and "sglang" not in text.rpartition("/")[2]:
        return None
    return ImageReference(value, scope, span)


def run_of(program: str, words: Sequence[Word], source: SourceFile, context: LaunchContext) -> Run | None:
    """What a container command runs or fetches; `None` for any other command."""
    texts = [word.text for word in words]
    if program in _DOCKER and len(words) > 1:
        index = 1
        while index < len(texts) and texts[index].startswith("-"):
            index += 1 if "=" in texts[index] or texts[index] in _BARE_OPTIONS else 2
        if index < len(texts) and texts[index] in ("container", "image", "service"):
            index += 1
        verb = texts[index] if index < len(texts) else ""
        if verb in ("run", "create"):
            return _docker_run(words, index + 1, source, context)
        if verb == "pull":
            return _named(words, index + 1, source, context)
        if verb in (
            "build",
            "buildx",
            "tag",
            "push",
            "inspect",
            "rmi",
            "save",
            "images",
            "ps",
            "logs",
            "stop",
            "kill",
            "rm",
            "compose",
        ):
            return Run((), len(words), context, command=False)
        return None
    if program in _SIF and len(words) > 1 and texts[1] in ("exec", "run", "shell", "pull", "build", "instance"):
        return _apptainer(words, source, context)
    if program == "enroot" and len(words) > 2 and texts[1] == "import":
        return _named(words, 2, source, context)
    if program in ("srun", "sbatch", "salloc"):
        return _slurm(words, source, context)
    if program in ("skopeo", "crane"):
        found = [image_of(word, source, context.scope) for word in words[1:] if word.text.startswith("docker://")]
        return Run(tuple(image for image in found[:1] if image is not None), len(words), context, command=False)
    return None


def image_facts(
    programs: Sequence[str], words: Sequence[Word], source: SourceFile, context: LaunchContext
) -> Iterator[Fact]:
    """Images behind `--image` and its like, and build arguments of `docker build`."""
    program = programs[0]
    if program not in _IMAGE_PROGRAMS:
        return
    index = 0
    while index < len(words):
        text = words[index].text
        index += 1
        name, equals, _ = text.partition("=")
        if name not in _IMAGE_OPTIONS:
            continue
        if equals:
            image = image_of(words[index - 1], source, context.scope, len(name) + 1)
        elif index < len(words):
            image = image_of(words[index], source, context.scope)
            index += 1
        else:
            image = None
        if image is not None:
            yield image


def _docker_run(words: Sequence[Word], index: int, source: SourceFile, context: LaunchContext) -> Run:
    env = dict(context.env)
    gpu = context.gpu
    while index < len(words):
        word = words[index]
        text = word.text
        if not text.startswith("-"):
            break
        index += 1
        name, equals, value = text.partition("=")
        argument: Word | None = None
        if text.startswith("--"):
            if not equals and name not in _BARE_OPTIONS and index < len(words):
                argument = words[index]
                value = argument.text
                index += 1
        elif len(text) >= 2 and not set(text[1:]) <= _BARE_SHORT:
            letters = text[1:]
            valued = next(position for position, letter in enumerate(letters) if letter not in _BARE_SHORT)
            name = "-" + letters[valued]
            value = letters[valued + 1 :]
            if not value and index < len(words):
                argument = words[index]
                value = argument.text
                index += 1
        if name in ("-e", "--env"):
            key, sign, setting = value.partition("=")
            if sign:
                owner = argument or word
                whole = after(owner.value, len(owner.text) - len(setting)) if owner.text.endswith(setting) else setting
                env[key] = Flag(key, whole, owner.span, key)
        elif name == "--gpus":
            gpu = _docker_gpus(
                value, word.span if argument is None else Span(word.span.path, word.span.start, argument.span.end)
            )
    while index < len(words) - 1 and _is_options(words[index]) and not _is_options(words[index + 1]):
        index += 1  # `docker run $OPTIONS $IMAGE`
    image = image_of(words[index], source, context.scope) if index < len(words) else None
    inner = replace(context, env=env, gpu=gpu, image=image.reference if image is not None else context.image)
    return Run((image,) if image is not None else (), min(index + 1, len(words)), inner)


def _is_options(word: Word) -> bool:
    """Whether a word is a variable that may hold options: nothing is known of it and its name says no image."""
    value = word.value
    if not isinstance(value, Unresolved) or len(value.parts) != 1 or word.quoted:
        return False
    hole = value.parts[0]
    return (
        isinstance(hole, Hole)
        and hole.default is None
        and not re.search(r"IMAGE|IMG|CONTAINER|TAG", hole.name, re.IGNORECASE)
    )


def _docker_gpus(value: str, span: Span) -> Gpu:
    devices = re.search(r"device=([\w,.:-]+)", value)
    if devices:
        return Gpu(None, len(devices.group(1).split(",")), span)
    count = re.fullmatch(r"(?:count=)?(\d+)", value.strip("'\""))
    return Gpu(None, int(count.group(1)) if count else None, span)


def _named(words: Sequence[Word], index: int, source: SourceFile, context: LaunchContext) -> Run:
    """Images given as plain arguments."""
    images: list[ImageReference] = []
    while index < len(words):
        text = words[index].text
        if text.startswith("-"):
            index += 1 if "=" in text or text in _BARE_OPTIONS or text in ("-a", "-q") else 2
            continue
        image = image_of(words[index], source, context.scope)
        if image is not None:
            images.append(image)
        index += 1
    return Run(tuple(images), len(words), context, command=False)


def _apptainer(words: Sequence[Word], source: SourceFile, context: LaunchContext) -> Run:
    for index in range(2, len(words)):
        if words[index].text.startswith(("docker://", "oras://", "library://")):
            image = image_of(words[index], source, context.scope)
            inner = replace(context, image=image.reference if image else context.image)
            return Run((image,) if image else (), index + 1, inner)
    return Run((), 2, context)


def _slurm(words: Sequence[Word], source: SourceFile, context: LaunchContext) -> Run:
    images = tuple(
        fact for fact in image_facts(["srun"], words[1:], source, context) if isinstance(fact, ImageReference)
    )
    context = slurm_options(words[1:], context)
    if images:
        context = replace(context, image=images[0].reference)
    return Run(images, 1, context)


@dataclass(slots=True)
class _Asked:
    """What a job asks for, the last word of each kind; `kind` is the accelerator by `--gres`, `features` by node
    features, `queue` by the name of the partition."""

    nodes: int | None = None
    count: int | None = None
    kind: str | None = None
    features: str = ""
    queue: str = ""
    places: dict[str, Span] = field(default_factory=dict)

    def hear(self, words: Sequence[Word]) -> None:
        """Take in the options of one command or header line."""
        for index, word in enumerate(words):
            name, equals, value = word.text.partition("=")
            if not equals:
                value = words[index + 1].text if index + 1 < len(words) else ""
            short = re.fullmatch(r"(-[NpCG])(\S+)", word.text)
            if short is not None:
                name, value = short.group(1), short.group(2)
            if name in ("--nodes", "-N") and value.isdigit():
                self.nodes = int(value)
            elif name in ("--gres", "--gpus-per-node", "--gpus", "-G", "--gpus-per-task"):
                match = _GRES.match(value if name == "--gres" else f"gpu:{value}")
                if match is not None and (match.group(1) or match.group(2)):
                    self.kind = match.group(1) or self.kind
                    self.count = int(match.group(2)) if match.group(2) else None
                    self.places["kind" if match.group(1) else "count"] = word.span
            elif name in ("--constraint", "-C"):
                self.features = _accelerators(value) or self.features
                self.places.setdefault("features", word.span)
            elif name in ("--partition", "-p"):
                self.queue = _queue(value) or self.queue
                self.places.setdefault("queue", word.span)
            if word.text in ("python", "python3", "bash", "sh"):
                break

    def gpu(self, before: Gpu | None) -> Gpu | None:
        """The accelerators, over what was known before: a feature or a partition tells only what nothing else tells."""
        known = before.type if before is not None else None
        count = self.count if "kind" in self.places or "count" in self.places else before.count if before else None
        for kind, place in ((self.kind, "kind"), (known, ""), (self.features, "features"), (self.queue, "queue")):
            if kind:
                spot = self.places.get(place) or self.places.get("count") or (before.span if before else None)
                return Gpu(kind, count, spot)
        return Gpu(None, count, self.places["count"]) if "count" in self.places else before


def slurm_options(words: Sequence[Word], context: LaunchContext) -> LaunchContext:
    """Nodes and GPUs that the options of `srun` ask for."""
    asked = _Asked()
    asked.hear(words)
    return _asking(asked, context)


def _asking(asked: _Asked, context: LaunchContext) -> LaunchContext:
    nodes = asked.nodes if asked.nodes is not None else context.nodes
    return replace(context, gpu=asked.gpu(context.gpu), nodes=nodes)


def _accelerators(features: str) -> str:
    """The node features of a job that have the shape of an accelerator's name, as alternatives."""
    return OR.join(dict.fromkeys(word for word in re.findall(r"[\w.-]+", features) if _CARD.fullmatch(word)))


def _queue(partitions: str) -> str:
    """The accelerators that partitions are named after (`gpu_h100`, `hpg-b200`), where each of them names one."""
    found = [
        [word for word in re.split(r"[^A-Za-z0-9]+", name) if len(word) > 2 and _CARD.fullmatch(word)]
        for name in partitions.split(",")
    ]
    return OR.join(dict.fromkeys(words[0] for words in found)) if all(len(words) == 1 for words in found) else ""


def slurm_context(text: Mapped, source: SourceFile, context: LaunchContext) -> LaunchContext:
    """The context with what the `#SBATCH` lines of a script ask for."""
    if "#SBATCH" not in text.text:
        return context
    asked = _Asked()
    for match in re.finditer(r"^[ \t]*#SBATCH[ \t]+(\S.*)$", text.text, re.MULTILINE):
        words = split_words(text.piece(match.start(1), match.end(1)), source)
        asked.hear(words)
        for fact in image_facts(["sbatch"], words, source, context):
            if isinstance(fact, ImageReference):
                context = replace(context, image=fact.reference)
    return _asking(asked, context)


def build_arguments(words: Sequence[Word], source: SourceFile, scope: str) -> Iterator[Definition]:
    """`--build-arg NAME=value` of a build, and the name that it gives to what it makes."""
    making = any(word.text == "build" for word in words[1:4])
    for before, word in pairwise(words):
        if making and before.text in ("-t", "--tag") and not word.text.startswith("-"):
            yield Definition(repository_of(word.value), word.value, BUILT, scope, word.span)
        if before.text != "--build-arg":
            continue
        name, equals, value = word.text.partition("=")
        if equals and value:
            span = (
                source.span(word.span.start.offset + len(name) + 1, word.span.end.offset)
                if not word.quoted
                else word.span
            )
            yield Definition(name, after(word.value, len(name) + 1), "build-argument", scope, span)
