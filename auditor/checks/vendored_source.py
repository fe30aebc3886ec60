"""Engine code kept in a tree, judged by the admission guards that it defines and asks, whatever its version says."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checks.base import Check, Match
from auditor.model.facts import Definition, FactSet, Related
from auditor.model.records import dataclass

RETIRE = "_retire_aborted_prefill_result"
REJECT = "is_unadmitted_reject"


@dataclass(frozen=True, slots=True)
class Params:
    """`fixed` is the release to move to."""

    fixed: str = "0.5.22"


def trees_of(facts: FactSet) -> dict[str, list[Definition]]:
    """The engine trees by their folder, with their doors and guards."""
    trees: dict[str, list[Definition]] = {}
    for definition in facts.definitions:
        if definition.domain == "engine-guard":
            trees.setdefault(definition.scope, []).append(definition)
    return {
        folder: found
        for folder, found in sorted(trees.items())
        if any(definition.name == "door prefill" for definition in found)
    }


def run(facts: FactSet, params: Params) -> Iterator[Match]:
    """One match for each tree that lacks a guard, at its prefill door."""
    for folder, found in trees_of(facts).items():
        doors = [definition for definition in found if definition.name.startswith("door ")]
        defined = {str(definition.value) for definition in found if definition.name.startswith("guard ")}
        door = next(definition for definition in doors if definition.name == "door prefill")
        retires = RETIRE in defined and RETIRE in str(door.value)
        open_doors = [each for each in doors if REJECT not in defined or REJECT not in str(each.value)]
        if retires and not open_doors:
            continue
        missing = [f"`{RETIRE}`"] if not retires else []
        if open_doors:
            missing.append(f"`{REJECT}` at the {' and the '.join(each.name.split(' ')[1] for each in open_doors)} door")
        project = [fact for fact in facts.packages if fact.kind == "source" and holds(fact.span.path, folder)]
        related = [Related(each.span, "this door admits without the guard") for each in open_doors if each is not door]
        related += [
            Related(fact.span, f"the tree calls itself {fact.name} {fact.version or ''}".rstrip()) for fact in project
        ]
        yield Match(
            outcome="partly-guarded" if retires else "vulnerable",
            span=door.span,
            subject="engine source",
            scope=folder,
            values={
                "folder": folder or ".",
                "missing": " and ".join(missing),
                "fixed": params.fixed,
            },
            properties={"guards": [*sorted(defined)], "verdict": "admits-vulnerable" if retires else "vulnerable"},
            related=tuple(related),
        )


def holds(manifest: str, folder: str) -> bool:
    """Whether a manifest's folder is the tree's or one above it."""
    above = manifest.rpartition("/")[0]
    return above == "" or folder == above or folder.startswith(above + "/")


CHECK = Check(
    name="vendored-source",
    params=Params,
    outcomes=("vulnerable", "partly-guarded"),
    fields=("folder", "missing", "fixed"),
    run=run,
)
