"""What a YAML document starts: containers, tasks and steps found by their shape, wherever a schema puts them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.errors import ReadError
from auditor.launch.images import family_of
from auditor.launch.parse import LaunchContext, launch_of
from auditor.launch.script import command_facts, script_facts
from auditor.model.facts import Definition, EngineLaunch, Fact, Value
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile
from auditor.readers.model_words import model_words
from auditor.readers.node_labels import selected_gpu
from auditor.readers.option_maps import option_launch, recipe_launches, with_siblings, worker_launch
from auditor.readers.yaml_kinds import Kind
from auditor.readers.yaml_shapes import (
    accelerators_of,
    combined,
    definitions_of,
    environment_of,
    image_of_scalar,
    image_of_text,
    is_image_key,
    joined_image,
    probes_of,
)
from auditor.syntax.expansion import word_of
from auditor.syntax.mapped import join
from auditor.syntax.shell_lexer import KUBERNETES, SHELL, Dialect
from auditor.syntax.shell_words import split_words
from auditor.syntax.words import Word
from auditor.syntax.yaml_nodes import Entry, ListNode, MapNode, Node, ScalarNode, documents

LARGE = 100_000  # characters; in larger files parts that cannot name the engine, not even by a variable, are left out
MAX_FACTS = 50_000  # of one file; no manifest seen has a tenth of it

_COMMAND_KEYS = ("entrypoint", "entryPoint", "command", "cmd", "args", "arguments", "extraArgs", "engineArgs")
_SHELL_KEYS = frozenset(
    {
        "run", "setup", "commands", "script", "before_script", "after_script", "start_command", "build_commands",
        "shell",
        "ansible.builtin.shell", "ansible.builtin.command", "cmd", "init", "command", "start", "startup_script",
        "post_start", "pre_start", "entrypoint", "args", "server_command", "launch_command", "serve_command",
    }
)  # fmt: skip
_LINE_KEYS = frozenset(
    {"commands", "script", "before_script", "after_script", "build_commands", "run", "setup", "init", "run_commands",
     "setup_commands", "head_setup_commands", "worker_setup_commands", "initialization_commands", "start_commands"}
)  # fmt: skip
_PROSE_KEYS = frozenset(
    {
        "description", "descriptions", "notes", "note", "comment", "comments", "summary", "title", "message", "msg",
        "changelog", "release_notes", "help", "fail_msg", "success_msg", "doc", "docs", "readme", "text", "prompt",
        "content", "question", "answer", "name", "id", "label", "labels", "annotations", "display_name", "displayname",
        "tags", "keywords", "categories", "authors", "maintainers", "url", "urls", "link", "links", "pr-link",
        "references", "container_name", "if", "when", "title_template", "body", "example", "examples", "config-keys",
        "served-model-name", "cache_from", "cache_to", "cache-from", "cache-to", "hostname", "depends_on",
    }
)  # fmt: skip
_ENTRY = re.compile(r"sglang(?:\.|\s+)(?:launch_server|serve|bench_\w+|srt)|dynamo\.sglang|sglang/launch_server")
_SHELLISH = re.compile(
    r"sglang|sgl-project|lmsysorg|docker\s+(?:run|pull|build)|srun|pip3?\s+install|git\s+clone", re.IGNORECASE
)
_NEAR = re.compile(r"sglang|sgl-dev|\$|\{\{|\*", re.IGNORECASE)
_VERSION_IN_NAME = re.compile(r"[:=@]|\d+\.\d+")
_COMMAND_KEY = re.compile(
    r"command|cmd|script|run|install|setup|exec|shell|hook|start|user_?data|init|entry", re.IGNORECASE
)
_RUNS = re.compile(r"\b(?:pip3?|uv)\s+(?:pip\s+)?install\b|\bdocker\s+(?:run|pull)\b|\bgit\s+clone\b")
_ROLE_WORD = re.compile(
    r"(?:[-_.]|\b)(?:prefill|decode|prefiller|decoder|worker|leader|p|d)(?:s|er)?(?=[-_.]|\Z)", re.I
)


@dataclass(frozen=True, slots=True)
class Around:
    """What stands above a node: the launch context, what the kind of document means, where it is named, and the model
    that a recipe mounts for its launches."""

    context: LaunchContext
    kind: Kind
    dialect: Dialect = SHELL
    names: tuple[str, ...] = ()
    variant: bool = False
    model: Value | None = None

    @property
    def scope(self) -> str:
        return "/".join(self.names)


@dataclass(slots=True)
class Reading:
    """One pass over the documents of one file. `used` are scalars that a shape has taken already."""

    source: SourceFile
    used: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    count: int = 0
    base: MapNode | None = None
    large: bool = False

    def document(self, root: Node, kind: Kind, context: LaunchContext | None = None) -> Iterator[Fact]:
        """The facts of one document."""
        self.large = len(self.source.text) > LARGE
        dialect = KUBERNETES if kind in ("kubernetes", "template", "values") else SHELL
        context = context or LaunchContext()
        names: tuple[str, ...] = ()
        if isinstance(root, MapNode):
            name = root.text("metadata", "name") or root.text("metadata", "generateName") or ""
            if kind == "kubernetes" or name:
                names = tuple(part for part in (root.text("kind") or "", name) if part)
                context = replace(context, deployment=deployment_of(name) or context.deployment)
            self.base = root.map("base")
        yield from self.node(root, "", Around(context, kind, dialect, names), 0)

    def node(self, node: Node, key: str, around: Around, depth: int) -> Iterator[Fact]:
        """The facts below one node; shared nodes once."""
        if isinstance(node, ScalarNode):
            if id(node) not in self.used:
                yield from self.scalar(node, key, around)
            return
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        if self.large and not _NEAR.search(self.source.text, node.start, max(node.end, node.start)):
            return
        if isinstance(node, ListNode):
            if key in _LINE_KEYS:
                yield from self.lines(node, key, around)
            yield from self.pairs(node, key, around)
            for item in node.items:
                if not (isinstance(item, ScalarNode) and key.lower() in _PROSE_KEYS):
                    yield from self.node(item, key, around, depth + 1)
            return
        around = self.surroundings(node, key, around)
        yield from self.mapping(node, key, around)
        for entry in node.own:
            name = entry.key.value
            if name.lower() in _PROSE_KEYS and not isinstance(entry.value, (MapNode, ListNode)):
                continue
            if name.lower() in ("labels", "annotations", "tags"):
                continue
            if name == "images" and (around.kind == "workflow" or node.get("steps") is not None):
                continue  # what a build makes, not what it starts from
            yield from self.node(entry.value, name, around, depth + 1)
        for merged in node.merges:
            yield from self.node(merged, key, around, depth + 1)

    def pairs(self, node: ListNode, key: str, around: Around) -> Iterator[Fact]:
        """A list of `{name: ..., value: ...}`: what a mapping of names to values would say (environment, Helm
        parameters of Argo CD and helmfile)."""
        whole = MapNode(self.source, node.start, "")
        whole.end = node.end
        for item in node.items:
            if not isinstance(item, MapNode):
                return
            name, value = item.get("name") or item.get("key"), item.get("value")
            if isinstance(name, ScalarNode) and isinstance(value, ScalarNode):
                whole.own.append(Entry(name, value))
        if len(whole.own) < 1 or "sglang" not in self.source.text[node.start : node.end].lower():
            return
        for joined in joined_image(whole, key, around.scope, around.dialect, around.context.variables):
            if family_of(joined.fact.reference) is not None:
                self.used.update(id(scalar) for scalar in joined.used)
                yield joined.fact
        for entry in whole.own:
            if isinstance(entry.value, ScalarNode) and id(entry.value) not in self.used:
                yield from self.scalar(entry.value, entry.key.value, around)

    def lines(self, node: ListNode, key: str, around: Around) -> Iterator[Fact]:
        """A list of shell lines that run one after the other in one shell."""
        items = [item for item in node.items if isinstance(item, ScalarNode) and id(item) not in self.used]
        text = join([item.mapped for item in items], "\n")
        if items and _SHELLISH.search(text.text):
            self.used.update(id(item) for item in items)
            context = replace(around.context, scope=around.scope)
            yield from self.counted(script_facts(text, self.source, context, around.dialect))

    def surroundings(self, node: MapNode, key: str, around: Around) -> Around:
        """The context with what this mapping says of everything below it."""
        context = around.context
        gpu = accelerators_of(node)
        if gpu is not None:
            context = replace(context, gpu=combined(context.gpu, gpu))
        chosen = selected_gpu(node)
        if chosen is not None:
            context = replace(context, gpu=combined(context.gpu, chosen))
        for path in (
            ("base_image", "image"),
            ("model", "container"),
            ("resources", "image_id"),
            ("container", "image"),
        ):
            stated = node.get(*path)
            if isinstance(stated, ScalarNode) and not stated.is_null:
                context = replace(context, image=word_of(stated, around.dialect, context.variables).value)
        variant = re.match(r"(?:zip_)?override\w*\Z", key) is not None and self.base is not None
        if variant:
            context = self.varied(context, key)
            around = replace(around, variant=True)
        for said in (self.base, node) if variant and self.base is not None else (node,):
            words = model_words(said, around.dialect)
            if words.path is not None:
                around = replace(around, model=words.path)
            if words.precision is not None:
                context = replace(context, precision=words.precision)
        nodes = nodes_of(node)
        if nodes is not None:
            context = replace(context, nodes=nodes)
        name = node.text("name")
        if name and (is_image_key(key) or _VERSION_IN_NAME.search(name)):
            name = None  # a scope is a part of what a finding is: it holds no version
        names = around.names
        if name and key.lower() not in ("env", "ports", "volumes", "volumemounts", "metadata"):
            names = (*names, name) if not names or names[-1] != name else names
        elif key and around.kind in ("values", "compose", "other", "gitlab", "workflow"):
            names = (*names, key)
        if len(names) > 8:
            names = (*names[:4], *names[-4:])
        return replace(around, context=context, names=names)

    def varied(self, context: LaunchContext, key: str) -> LaunchContext:
        """The context of one variant of a recipe: what its base says stands where it says nothing itself."""
        context = replace(context, deployment=f"{self.source.path}#{key}")
        if self.base is None:
            return context
        image = self.base.text("model", "container")
        gpu = accelerators_of(self.base)
        return replace(context, image=context.image or image, gpu=context.gpu or gpu)

    # -- mappings -----------------------------------------------------------------------------------------------

    def mapping(self, node: MapNode, key: str, around: Around) -> Iterator[Fact]:
        """Images and the launch of one mapping, when it has the shape of a container, a task or a service."""
        env = environment_of(node, around.dialect, around.context.variables)
        variables: dict[str, Definition] = {**around.context.variables, **definitions_of(env, around.scope)}
        image = None
        for joined in joined_image(node, key, around.scope, around.dialect, around.context.variables):
            self.used.update(id(scalar) for scalar in joined.used)
            yield joined.fact
            image = image or joined.fact
        named = node.get("name")
        if (
            isinstance(named, ScalarNode)
            and id(named) not in self.used
            and (is_image_key(key) or (key == "services" and around.kind == "gitlab"))
        ):
            whole = image_of_scalar(named, "image", around.scope, around.dialect, around.context.variables)
            if whole is not None:
                self.used.add(id(named))
                yield whole
                image = image or whole
        direct = node.get("image")
        if image is None and isinstance(direct, ScalarNode):
            image = image_of_scalar(direct, "image", around.scope, around.dialect, around.context.variables)
        context = around.context
        if env:
            context = replace(context, env={**context.env, **env}, variables=variables)
        if image is not None:
            context = replace(context, image=image.reference)
        probes = probes_of(node)
        if probes:
            context = replace(context, probes=probes)
        context = replace(context, scope=around.scope)
        found = False
        for fact in self.command(node, key, around, context):
            if isinstance(fact, EngineLaunch):
                found = True
                if around.kind == "values":
                    fact = with_siblings(fact, node)
            yield fact
        yield from self.engine_mappings(node, around, context)
        if env and not found:
            worker = worker_launch(env, self.source, context)
            if worker is not None:
                yield worker

    def command(self, node: MapNode, key: str, around: Around, context: LaunchContext) -> Iterator[Fact]:
        """What the command keys of a mapping start, all of them together."""
        if key == "build":
            return  # build arguments are no command line
        given = [(name, node.get(name)) for name in _COMMAND_KEYS]
        pieces = [(name, value) for name, value in given if value is not None and not isinstance(value, MapNode)]
        pieces = [(name, value) for name, value in pieces if not (isinstance(value, ScalarNode) and value.is_null)]
        if not pieces or not self.worth_it(node, pieces, context):
            return
        scalars = [value for _, value in pieces if isinstance(value, ScalarNode)]
        lists = [value for _, value in pieces if isinstance(value, ListNode)]
        if any(not isinstance(item, ScalarNode) for value in lists for item in value.items):
            return
        if len(pieces) == 1 and scalars and around.kind != "compose":
            if id(scalars[0]) not in self.used:
                self.used.add(id(scalars[0]))
                yield from self.counted(script_facts(scalars[0].mapped, self.source, context, around.dialect))
            return
        words: list[Word] = []
        for _, value in pieces:
            if isinstance(value, ScalarNode):
                self.used.add(id(value))
                words.extend(split_words(value.mapped, self.source, around.dialect, context.variables))
            elif isinstance(value, ListNode):
                for item in value.items:
                    if isinstance(item, ScalarNode):
                        self.used.add(id(item))
                        words.append(word_of(item, around.dialect, context.variables))
        facts = [*self.recommended(node, words, context, around)] or command_facts(words, self.source, context)
        yield from self.counted(iter(facts))

    def recommended(self, node: MapNode, words: list[Word], context: LaunchContext, around: Around) -> Iterator[Fact]:
        """llmaz keeps a command and several lists of arguments for it apart."""
        for config in node.list("recommendedConfigs"):
            if not isinstance(config, MapNode):
                continue
            items = [item for item in config.list("args") if isinstance(item, ScalarNode)]
            more = [word_of(item, around.dialect, context.variables) for item in items]
            self.used.update(id(item) for item in items)
            inner = replace(context, gpu=accelerators_of(config) or context.gpu)
            launch = launch_of([*words, *more], self.source, inner)
            if launch is not None:
                yield launch

    def worth_it(self, node: MapNode, pieces: Sequence[tuple[str, Node]], context: LaunchContext) -> bool:
        """Whether the command can state a fact: it names the engine, or runs in its image."""
        if context.image is not None and family_of(context.image) is not None:
            return True
        text = self.source.text
        return any(_SHELLISH.search(text, value.start, max(value.end, value.start)) for _, value in pieces)

    def engine_mappings(self, node: MapNode, around: Around, context: LaunchContext) -> Iterator[Fact]:
        """Options as keys of a mapping."""
        config = node.map("sglang_config")
        if config is not None and id(config) not in self.used:
            self.used.add(id(config))
            base = self.base.map("backend") if around.variant and self.base is not None else None
            yield from recipe_launches(node, base, context, around.dialect, around.model)
        for entry in node.own:
            launch = option_launch(entry, context)
            if launch is not None:
                yield launch

    # -- scalars ------------------------------------------------------------------------------------------------

    def scalar(self, node: ScalarNode, key: str, around: Around) -> Iterator[Fact]:
        """The facts of one scalar: a script, an image, or nothing."""
        self.used.add(id(node))
        if key.lower() in _PROSE_KEYS:
            return
        text = node.value
        context = replace(around.context, scope=around.scope)
        setting = re.match(r"([A-Za-z_][\w.-]*)=(?=\S+\Z)", text)
        runs = key in _SHELL_KEYS or (_COMMAND_KEY.search(key) is not None and _RUNS.search(text) is not None)
        if (runs and not setting and _SHELLISH.search(text)) or (_ENTRY.search(text) and " " in text.strip()):
            yield from self.counted(script_facts(node.mapped, self.source, context, around.dialect))
            return
        if node.style in ("|", ">") and "\n" in text.strip() and _SHELLISH.search(text):
            yield from self.block(node, key, around, context)
            return
        if key == "uses" and not text.startswith("docker://"):
            return
        if setting:
            piece = node.mapped.piece(setting.end(), len(text))
            key, mapped = setting.group(1), piece
        else:
            mapped = node.mapped
        if "\n" in text.strip() or node.is_null:
            return
        image = image_of_text(mapped, self.source, key, around.scope, around.dialect, around.context.variables)
        if image is not None and (not setting or family_of(image.reference) is not None):
            yield image

    def block(self, node: ScalarNode, key: str, around: Around, context: LaunchContext) -> Iterator[Fact]:
        """A block of text: a script by its name or first line, or YAML within YAML."""
        text = node.value
        if text.startswith("#!"):
            if re.match(r"#!\s*\S*(?:/env\s+)?\S*\b(?:ba|z|da|k|a)?sh\b", text.split("\n", 1)[0]):
                yield from self.counted(script_facts(node.mapped, self.source, context, around.dialect))
            return
        if key.lower().endswith((".sh", ".bash", "script", "commands", "args", "run")):
            yield from self.counted(script_facts(node.mapped, self.source, context, around.dialect))
            return
        if (
            key.lower().endswith((".yaml", ".yml", ".json", "configv2", "config", "values", "manifest", "patch"))
            and node.style == "|"
        ):
            yield from self.nested(node, around)

    def nested(self, node: ScalarNode, around: Around) -> Iterator[Fact]:
        """YAML inside a literal block: everything else of the file blanked, so that offsets stay true."""
        mapped = node.mapped
        if not mapped.text:
            return
        text = self.source.text
        first, last = mapped.offsets[0], mapped.offsets[len(mapped.text) - 1] + 1
        line = text.rfind("\n", 0, first) + 1
        indent = text[line:first] if not text[line:first].strip() else ""
        blank = re.sub(r"[^\r\n]", " ", text[:line]) + indent + text[first:last] + re.sub(r"[^\r\n]", " ", text[last:])
        answer = documents(self.source, blank)
        if answer.errors:
            return
        from auditor.readers.requirement_lists import requirements_in
        from auditor.readers.yaml_lists import spanned

        for root in answer.roots:
            if isinstance(root, (MapNode, ListNode)):
                yield from requirements_in(spanned(root), self.source)
                yield from self.node(root, "", replace(around, kind="other"), 0)

    def counted(self, facts: Iterator[Fact]) -> Iterator[Fact]:
        for fact in facts:
            self.count += 1
            if self.count > MAX_FACTS:
                raise ReadError(f"more than {MAX_FACTS} facts in one file", None, limit=True)
            yield fact


def nodes_of(node: MapNode) -> int | None:
    """The number of machines that one engine spans, where a schema says so."""
    for path in (
        ("leaderWorkerTemplate", "size"), ("multinode", "nodeCount"), ("num_nodes",), ("podGroupSize",), ("nodes",),
        ("nnodes",),
    ):  # fmt: skip
        value = node.get(*path)
        if isinstance(value, ScalarNode) and isinstance(value.typed, int) and not isinstance(value.typed, bool):
            return value.typed
    if node.map("leader") is not None:
        worker = node.get("worker", "size")
        if isinstance(worker, ScalarNode) and isinstance(worker.typed, int):
            return worker.typed + 1
    return None


def deployment_of(name: str) -> str:
    """The name that prefill and decode of one deployment share: the resource's name without its role."""
    return _ROLE_WORD.sub("", name).strip("-_.") or name
