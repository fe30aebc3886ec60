"""Fills variables: build arguments into Dockerfiles, env files into compose, definitions of a role or folder; then the
defaults that stand at the use or in the same file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from auditor.model.facts import (
    Definition,
    EngineLaunch,
    FactSet,
    Flag,
    Hole,
    ImageReference,
    PackageReference,
    Related,
    Unresolved,
    Value,
)
from auditor.model.records import dataclass, field, replace
from auditor.model.spans import SourceFile, Span
from auditor.readers.env_file import definitions_in

MAX_DEPTH = 8  # variables that stand for variables; a ring ends here
BUILD_DOMAINS = frozenset({"build-arg", "build-argument"})
_COMPOSE = re.compile(r"compose[\w.-]*\.(?:ya?ml|json)\Z", re.IGNORECASE)

Lookup = Callable[[str], "Definition | None"]


def fill_variables(facts: FactSet, sources: Mapping[str, SourceFile]) -> FactSet:
    """The facts with every variable filled whose value the tree knows."""
    index = Index(facts, sources)
    return replace(
        facts,
        packages=tuple(_package(fact, index) for fact in facts.packages),
        images=tuple(_image(fact, index) for fact in facts.images),
        launches=tuple(_launch(fact, index) for fact in facts.launches),
    )


@dataclass(slots=True)
class Index:
    """The definitions of the tree, by where they reach."""

    facts: FactSet
    sources: Mapping[str, SourceFile]
    by_target: dict[tuple[str, str], list[Definition]] = field(default_factory=dict)
    by_name: dict[tuple[str, str], list[Definition]] = field(default_factory=dict)
    env_files: dict[str, dict[str, Definition]] = field(default_factory=dict)
    dockerfiles: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for definition in self.facts.definitions:
            if definition.domain in BUILD_DOMAINS:
                self.by_target.setdefault((definition.scope, definition.name), []).append(definition)
            elif definition.domain == "dockerfile":
                self.dockerfiles.setdefault(definition.name, set()).add(definition.span.path)
            self.by_name.setdefault((definition.domain, definition.name), []).append(definition)

    def env_of(self, folder: str) -> dict[str, Definition]:
        """What the `.env` of a folder sets; of a sample file when there is no `.env`."""
        if folder not in self.env_files:
            found: dict[str, Definition] = {}
            for name in (".env", ".env.example", ".env.sample", ".env.template", ".env.dist", "env.example"):
                path = posixpath.join(folder, name)
                try:
                    source = self.sources[path]
                except (KeyError, OSError):
                    continue
                found = {definition.name: definition for definition in definitions_in(source)}
                if name != ".env":  # a sample says what is expected where nothing else does
                    found = {key: replace(value, domain="env-sample") for key, value in found.items()}
                break
            self.env_files[folder] = found
        return self.env_files[folder]

    def build_arguments(self, path: str, name: str) -> list[Definition]:
        """Build arguments that reach a Dockerfile: those aimed at it, else those of a name that it alone declares."""
        aimed = self.by_target.get((path, name), [])
        if aimed:
            return aimed
        if self.dockerfiles.get(name) != {path}:
            return []
        loose = self.by_name.get(("build-argument", name), [])
        return [definition for definition in loose if not _is_dockerfile(definition.scope)]

    def lookup(self, path: str) -> Lookup:
        """How a name is looked up for facts of one file."""
        folder = posixpath.dirname(path)
        name = posixpath.basename(path)

        def look(variable: str) -> Definition | None:
            if _COMPOSE.search(name):
                return self.env_of(folder).get(variable) or self._far(folder, variable)
            if name.lower().endswith((".yml", ".yaml", ".j2")) and re.fullmatch(r"\w+", variable):
                found = self._ansible(folder, variable)
                if found is not None:
                    return found
            if name.endswith((".tf", ".hcl", ".nomad", ".tofu")):
                return self._nearest("terraform", variable, folder)
            return None

        return look

    def _far(self, folder: str, variable: str) -> Definition | None:
        """What an env file that does not lie beside a compose file sets, for a use without a default: the `.env` of a
        folder above it, where the project may be started from; else, of a name that speaks of the engine, the value
        that all env files of the tree agree on."""
        known = self.by_name.get(("env-file", variable), [])
        above = [
            definition
            for definition in known
            if posixpath.basename(definition.span.path) == ".env"
            and (not definition.scope or f"{folder}/".startswith(f"{definition.scope}/"))
        ]
        if not above and ("sglang" not in variable.lower() or len({str(one.value) for one in known}) != 1):
            return None
        chosen = max(above, key=lambda definition: len(definition.scope)) if above else known[0]
        return replace(chosen, domain="env-elsewhere")

    def _nearest(self, domain: str, variable: str, folder: str) -> Definition | None:
        same = [d for d in self.by_name.get((domain, variable), ()) if posixpath.dirname(d.span.path) == folder]
        return same[-1] if same else None

    def _ansible(self, folder: str, variable: str) -> Definition | None:
        """A variable of the same role; else one that the whole tree sets once."""
        known = self.by_name.get(("ansible", variable), [])
        role = re.sub(r"/(?:tasks|handlers|templates|vars|defaults)(?:/.*)?\Z", "", folder)
        near = [definition for definition in known if definition.span.path.startswith(role + "/")]
        if near:
            return near[0]
        return known[0] if len({str(definition.value) for definition in known}) == 1 else None


def _is_dockerfile(text: str) -> bool:
    return "dockerfile" in text.lower() or "containerfile" in text.lower()


def filled(
    value: Value, lookup: Lookup, seen: frozenset[tuple[str, Span | None]] = frozenset()
) -> tuple[Value, list[Related]]:
    """The value with its holes filled as far as they can be, and where the fillings come from."""
    if not isinstance(value, Unresolved):
        return value, []
    parts: list[str | Hole] = []
    related: list[Related] = []
    for part in value.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        given, origin = _meaning(part, lookup)
        key = (part.name, origin)
        if given is None or key in seen or len(seen) >= MAX_DEPTH:
            parts.append(part)
            continue
        inner, more = filled(given, lookup, seen | {key})
        if origin is not None:
            related.append(Related(origin, f"`{part.name}` is set here"))
        related.extend(more)
        parts.extend(inner.parts if isinstance(inner, Unresolved) else (_text(inner),))
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str)), related
    merged: list[str | Hole] = []
    for piece in parts:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "":
            merged.append(piece)
    text = "".join(piece if isinstance(piece, str) else "${" + piece.name + "}" for piece in merged)
    return Unresolved(value.text if len(merged) == len(value.parts) and not related else text, tuple(merged)), related


def _meaning(hole: Hole, lookup: Lookup) -> tuple[Value | None, Span | None]:
    definition = lookup(hole.name)
    weak = definition is not None and definition.domain in ("env-sample", "env-elsewhere")
    if definition is not None and not (weak and hole.default is not None):
        return definition.value, definition.span
    return hole.default, hole.origin


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Unresolved) else str(value)


def _package(fact: PackageReference, index: Index) -> PackageReference:
    values = (fact.specifier, fact.version, fact.vcs_ref)
    if not any(isinstance(value, Unresolved) for value in values):
        return fact
    lookup = index.lookup(fact.span.path)
    best: PackageReference | None = None
    for choice in choices(fact.span.path, values, index) or [lookup]:
        related: list[Related] = []
        found: list[Value | None] = []
        for value in values:
            if value is None:
                found.append(None)
                continue
            inner, more = filled(value, choice)
            found.append(inner)
            related.extend(more)
        made = replace(
            fact, specifier=found[0], version=found[1], vcs_ref=found[2], related=_with(fact.related, related)
        )
        if best is None or _package_rank(made) < _package_rank(best):
            best = made
    return best or fact


def _package_rank(fact: PackageReference) -> int:
    from auditor.launch.versions import package_verdict

    return ["vulnerable", "admits-vulnerable", "unverifiable", "safe"].index(package_verdict(fact).verdict)


def _image(fact: ImageReference, index: Index) -> ImageReference:
    if not isinstance(fact.reference, Unresolved):
        return fact
    best: ImageReference | None = None
    for choice in choices(fact.span.path, (fact.reference,), index) or [index.lookup(fact.span.path)]:
        value, related = filled(fact.reference, choice)
        made = replace(fact, reference=value, related=_with(fact.related, related))
        if best is None or _image_rank(made) < _image_rank(best):
            best = made
    return best or fact


def _image_rank(fact: ImageReference) -> int:
    from auditor.launch.images import image_verdict

    return ["vulnerable", "unverifiable", "safe"].index(image_verdict(fact.reference).verdict)


def choices(path: str, values: tuple[Value | None, ...], index: Index) -> list[Lookup]:
    """One lookup for each build that passes arguments to a Dockerfile: the worst is what the file can become."""
    names = {name for value in values if isinstance(value, Unresolved) for name in names_in(value)}
    found: list[Lookup] = []
    groups: dict[str, dict[str, Definition]] = {}
    for name in sorted(names):
        for definition in index.build_arguments(path, name):
            groups.setdefault(f"{definition.span.path}:{definition.span.start.line // 40}", {})[name] = definition
    for group in groups.values():
        found.append(lambda name, group=group: group.get(name))  # type: ignore[misc]
    return found


def names_in(value: Unresolved, depth: int = 0) -> Iterator[str]:
    """The names of a value's variables, those of its defaults included."""
    for part in value.parts:
        if isinstance(part, Hole):
            yield part.name
            if isinstance(part.default, Unresolved) and depth < MAX_DEPTH:
                yield from names_in(part.default, depth + 1)


def _with(old: tuple[Related, ...], new: list[Related]) -> tuple[Related, ...]:
    return (*old, *(related for related in dict.fromkeys(new) if related not in old))


def _launch(fact: EngineLaunch, index: Index) -> EngineLaunch:
    values = [fact.model, fact.image, *(flag.value for flag in (*fact.flags.values(), *fact.env.values()))]
    if not any(isinstance(value, Unresolved) for value in values):
        return fact
    from auditor.launch.flags import spelled, typed

    lookup = index.lookup(fact.span.path)
    related: list[Related] = []

    def value_of(value: Value | None) -> Value | None:
        if not isinstance(value, Unresolved):
            return value
        inner, more = filled(value, lookup)
        related.extend(more)
        return inner

    def flag_of(name: str, flag: Flag, *, option: bool) -> Flag:
        if not isinstance(flag.value, Unresolved):
            return flag
        value = value_of(flag.value)
        if option and isinstance(value, str):
            meaning = spelled(f"--{name}", None)
            value = typed(value, meaning.option.kind if meaning.option else None)
        return replace(flag, value=flag.value if value is None else value)

    flags = {name: flag_of(name, flag, option=True) for name, flag in fact.flags.items()}
    env = {name: flag_of(name, flag, option=False) for name, flag in fact.env.items()}
    made = replace(fact, model=value_of(fact.model), image=value_of(fact.image), flags=flags, env=env)
    mode = flags.get("disaggregation-mode")
    if made.role == "unknown" and mode is not None and isinstance(mode.value, str):
        from auditor.launch.parse import role_of

        made = replace(made, role=role_of(flags))
    return replace(made, related=_with(fact.related, related))
