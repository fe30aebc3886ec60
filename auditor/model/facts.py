"""What readers take out of files: typed facts, each with the exact span of the text that states it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a fact or finding rests on, with what stands there."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Hole:
    """One variable inside a text, such as `${TAG:-v1}` or `{{ .Values.image.tag }}`.

    `default` is what stands when nothing else sets the variable: written at the use (`:-`), or given by the last
    definition before it in the same file. `origin` is the span of that definition, `None` when the default is written
    at the use itself. `required` marks a default that may be empty only by mistake (`${TAG:?message}`).
    """

    name: str
    default: Value | None = None
    origin: Span | None = None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that holds variables: the text as written and its parts in order, literal text and holes."""

    text: str
    parts: tuple[str | Hole, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order of appearance."""
        return tuple(part.name for part in self.parts if isinstance(part, Hole))


Value = str | int | float | bool | Unresolved


@dataclass(frozen=True, slots=True)
class PackageReference:
    """A distribution named in a file, with what the file says of its version.

    `name` is normalised by PEP 503. `specifier` is the PEP 440 specifier set as written, `version` the single version
    that a pin or a lock states, `vcs_ref` the tag, branch or commit of a source checkout. `kind` says what sort of
    statement it is: `pinned` (one version), `range`, `locked` (by a lock file), `vcs` (a source repository),
    `file` (a wheel or sdist named by file), `source` (the project itself, a vendored tree) and `bare` (no version).
    `version_span` is the version alone where `span` covers other lines too: a pull request shows a finding only when
    all of its lines were changed, and a new version changes one.
    """

    name: str
    kind: Literal["pinned", "range", "locked", "vcs", "file", "source", "bare"]
    scope: str
    span: Span
    specifier: Value | None = None
    version: Value | None = None
    vcs_ref: Value | None = None
    vcs_url: str | None = None
    extras: tuple[str, ...] = ()
    marker: str | None = None
    related: tuple[Related, ...] = ()
    version_span: Span | None = None


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A container image named in a file. `reference` is the whole reference (`repo:tag@digest`), joined where the
    file keeps repository and tag apart; `span` is the smallest text to change (the tag where it stands alone)."""

    reference: Value
    scope: str
    span: Span
    related: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a launch under its canonical name. `span` covers flag and value as they are written;
    `spelling` is the option as written."""

    name: str
    value: Value
    span: Span
    spelling: str = ""


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """An option that the engine's own parser would refuse, or read otherwise than it looks: why, and where."""

    spelling: str
    reason: str
    span: Span


BUILT = "built-image"  # the domain of a definition: its name is the repository of an image that its file makes
OR = " or "  # between the alternatives in the type of an accelerator: `H100 or H200`


@dataclass(frozen=True, slots=True)
class Gpu:
    """The accelerators of one launch: `type` as written or as a catalogue name, alternatives joined by `OR`, `count`
    per node; `None` is unknown."""

    type: str | None
    count: int | None
    span: Span | None = None


Role = Literal["prefill", "decode", "unified", "unknown"]


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """One start of the engine. `flags` are keyed by canonical long name without dashes, the last one written wins;
    `env` holds the environment that the same file sets for it; `nodes` the number of machines where the file says;
    `precision` what the document says of the model's weights beside the launch (`fp8`, `fp4`), under its own key."""

    entrypoint: str
    model: Value | None
    role: Role
    flags: Mapping[str, Flag]
    scope: str
    span: Span
    env: Mapping[str, Flag] = field(default_factory=dict)
    gpu: Gpu | None = None
    nodes: int | None = None
    problems: tuple[FlagProblem, ...] = ()
    deployment: str = ""
    image: Value | None = None
    probes: tuple[Related, ...] = ()
    related: tuple[Related, ...] = ()
    precision: Flag | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A name given a value in a file. `domain` says which uses it can reach: `env-file`, `build-arg`, `helm-values`,
    `helm-chart`, `kustomize-image`, `config-map`, `terraform` and so on; a resolve step knows its own domains."""

    name: str
    value: Value
    domain: str
    scope: str
    span: Span


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A checked-in model configuration: the parsed architecture numbers, as the file states them."""

    model: str | None
    values: Mapping[str, object]
    scope: str
    span: Span


@dataclass(frozen=True, slots=True)
class CodeModule:
    """A source file that code checks may look at; `language` is `python` or `csharp`."""

    source: SourceFile
    language: str
    span: Span


Fact = PackageReference | ImageReference | EngineLaunch | Definition | ModelConfig | CodeModule


@dataclass(frozen=True, slots=True)
class FactSet:
    """All facts of one audit, one tuple a type, each sorted by span."""

    packages: tuple[PackageReference, ...] = ()
    images: tuple[ImageReference, ...] = ()
    launches: tuple[EngineLaunch, ...] = ()
    definitions: tuple[Definition, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    modules: tuple[CodeModule, ...] = ()

    def __iter__(self) -> Iterator[Fact]:
        yield from self.packages
        yield from self.images
        yield from self.launches
        yield from self.definitions
        yield from self.models
        yield from self.modules


def fact_set(facts: list[Fact]) -> FactSet:
    """Sort facts into a `FactSet`; of two equal statements at one span the first given is kept."""
    groups: dict[type, list[Fact]] = {}
    seen: set[tuple[type, Span, str]] = set()
    for fact in facts:
        key = (type(fact), fact.span, fact.name if isinstance(fact, (PackageReference, Definition)) else "")
        if key in seen:
            continue
        seen.add(key)
        groups.setdefault(type(fact), []).append(fact)
    for group in groups.values():
        group.sort(key=lambda fact: (fact.span, getattr(fact, "name", "")))

    def of(kind: type) -> tuple[Fact, ...]:
        return tuple(groups.get(kind, ()))

    return FactSet(
        packages=of(PackageReference),  # type: ignore[arg-type]
        images=of(ImageReference),  # type: ignore[arg-type]
        launches=of(EngineLaunch),  # type: ignore[arg-type]
        definitions=of(Definition),  # type: ignore[arg-type]
        models=of(ModelConfig),  # type: ignore[arg-type]
        modules=of(CodeModule),  # type: ignore[arg-type]
    )
