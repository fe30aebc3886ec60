"""What a check is: a small pure function from facts and typed parameters to matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from auditor.model.facts import FactSet, Related
from auditor.model.findings import Confidence, Edit, JsonValue, Level
from auditor.model.records import dataclass, field
from auditor.model.spans import Span

if TYPE_CHECKING:  # the tree modules import `ast`; a scan without source files never needs it
    from auditor.checks.code_index import CodeIndex
    from auditor.checks.code_shapes import Shape
    from auditor.checks.code_words import StateWords
    from auditor.syntax.code_tree import CodeTree

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Above:
    """Stands beside the type of a numeric parameter (`Annotated`): the value has to be above `least`."""

    least: float


@dataclass(frozen=True, slots=True)
class Match:
    """One place where a check holds. `subject` and `scope` are what the finding is (a package, a flag, a service);
    they make its identity and hold no version and no line. `values` fill the rule's message; `properties` travel
    into the JSON and SARIF documents. `level` overrides the rule's level for the outcome where the evidence of this one
    place says less (never more)."""

    outcome: str
    span: Span
    subject: str
    scope: str = ""
    values: Mapping[str, JsonValue] = field(default_factory=dict)
    properties: Mapping[str, JsonValue] = field(default_factory=dict)
    related: tuple[Related, ...] = ()
    flow: tuple[Related, ...] = ()
    edits: tuple[Edit, ...] = ()
    confidence: Confidence | None = None
    level: Level | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Check(Generic[P]):
    """A check over facts. `fields` are the names that a rule's messages may use; `whole_tree` says that it compares
    places of several files and must not run on a list of single files."""

    name: str
    params: type[P]
    outcomes: tuple[str, ...]
    fields: tuple[str, ...]
    run: Callable[[FactSet, P], Iterator[Match]]
    whole_tree: bool = False


@dataclass(frozen=True, slots=True)
class CodeCheck(Generic[P]):
    """A check over source code. `needles` gives byte strings of which a file must hold one to be looked at at all;
    `run` sees the tree of one file and what the index knows of all files. `shape` says what the bytes of a file must
    look like before it is parsed for this check, from what the index found and the lowest confidence that is shown;
    it gives `None` where no file can hold a match. `states` gives the words that the index is built with, `None` for a
    check that needs no index."""

    name: str
    params: type[P]
    outcomes: tuple[str, ...]
    fields: tuple[str, ...]
    languages: tuple[str, ...]
    needles: Callable[[P], frozenset[bytes]]
    run: Callable[[CodeTree, CodeIndex, P], Iterator[Match]]
    shape: Callable[[P, CodeIndex, str], Shape | None] | None = None
    states: Callable[[P], StateWords] | None = None


@dataclass(frozen=True, slots=True)
class NoParams:
    """The parameters of a check that takes none."""


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """A judgement that the engine itself makes (a file not read, an ignore not used); it runs over no facts."""

    name: str
    outcomes: tuple[str, ...]
    fields: tuple[str, ...]
    params: type[NoParams] = NoParams


AnyCheck = Check[Any] | CodeCheck[Any] | EngineCheck
CheckTable = Sequence[AnyCheck]
