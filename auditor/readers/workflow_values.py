"""GitHub workflows: what `env.*` and `matrix.*` stand for in the same file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.launch.images import repository_of
from auditor.launch.parse import LaunchContext
from auditor.model.facts import BUILT, Definition, Fact, Hole, ImageReference, Related, Unresolved, Value
from auditor.model.records import replace
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.readers.yaml_shapes import place_of
from auditor.syntax.expansion import word_of, word_of_text
from auditor.syntax.shell_lexer import SHELL
from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode, walk

_MAKES = re.compile(r"docker/(?:build-push|metadata)-action@|redhat-actions/buildah-build@")
MAX_VALUES = 40  # values of one matrix entry that are looked at


def workflow(root: Node, source: SourceFile, reading: Reading) -> Iterator[Fact]:
    """The facts of a workflow. An image that a matrix varies stands where each value is written."""
    variables: dict[str, Definition] = {}
    matrix: dict[str, list[ScalarNode]] = {}
    for path, node in walk(root):
        if isinstance(node, MapNode) and path and path[-1] == "env":
            for entry in node.own:
                if isinstance(entry.value, ScalarNode):
                    add(variables, f"env.{entry.key.value}", entry.value, source)
                    add(variables, entry.key.value, entry.value, source)
        elif isinstance(node, MapNode) and path and path[-1] == "matrix":
            collect(node, matrix)
        elif isinstance(node, MapNode) and path and path[-1] == "inputs":
            for entry in node.own:
                default = entry.value.get("default") if isinstance(entry.value, MapNode) else None
                if isinstance(default, ScalarNode):
                    for known in (f"inputs.{entry.key.value}", f"github.event.inputs.{entry.key.value}"):
                        add(variables, known, default, source)
    yield from _built(root, source, variables)
    context = LaunchContext(deployment=source.path, variables=variables)
    for fact in reading.document(root, "workflow", context):
        if isinstance(fact, ImageReference) and isinstance(fact.reference, Unresolved):
            yield from varied(fact, matrix)
        else:
            yield fact


def _built(root: Node, source: SourceFile, variables: dict[str, Definition]) -> Iterator[Fact]:
    """The images that the steps of a workflow make."""
    for _, node in walk(root):
        if not isinstance(node, MapNode) or not _MAKES.match(node.text("uses") or ""):
            continue
        for key in ("tags", "images"):
            named = node.get("with", key)
            if not isinstance(named, ScalarNode) or named.is_null:
                continue
            for line in re.finditer(r"[^\s,][^\n,]*", named.value):
                value = word_of_text(named.mapped.piece(*line.span()), source, SHELL, variables).value
                repository = repository_of(value)
                if "=" not in repository:  # `type=sha,prefix=...` makes tags and no name
                    yield Definition(repository, value, BUILT, source.path, named.span)


def add(variables: dict[str, Definition], name: str, node: ScalarNode, source: SourceFile) -> None:
    """A variable of the workflow; of several of a name the first stands."""
    if not node.is_null and name not in variables:
        word = word_of(node, variables=variables)
        span = place_of(node, SHELL, variables)
        variables[name] = Definition(name, word.value, "workflow", source.path, span)


def collect(node: MapNode, matrix: dict[str, list[ScalarNode]]) -> None:
    """The values of each matrix entry, those of `include` with them."""
    for entry in node.own:
        if isinstance(entry.value, ListNode):
            for item in entry.value.items[:MAX_VALUES]:
                if isinstance(item, ScalarNode):
                    matrix.setdefault(f"matrix.{entry.key.value}", []).append(item)
                elif isinstance(item, MapNode):
                    prefix = "matrix" if entry.key.value == "include" else f"matrix.{entry.key.value}"
                    for inner in item.own:
                        if isinstance(inner.value, ScalarNode):
                            matrix.setdefault(f"{prefix}.{inner.key.value}", []).append(inner.value)


def varied(fact: ImageReference, matrix: dict[str, list[ScalarNode]]) -> Iterator[ImageReference]:
    """The reference once for each value of the matrix entry in it; as it is when there is none."""
    value = fact.reference
    hole = (
        next((part for part in value.parts if isinstance(part, Hole) and part.name in matrix), None)
        if isinstance(value, Unresolved)
        else None
    )
    if hole is None or not isinstance(value, Unresolved):
        yield fact
        return
    for node in matrix[hole.name]:
        filled: list[str | Hole] = []
        for part in value.parts:
            piece = node.value if part == hole else part
            if isinstance(piece, str) and filled and isinstance(filled[-1], str):
                filled[-1] += piece
            else:
                filled.append(piece)
        made: Value = (
            "".join(part for part in filled if isinstance(part, str))
            if all(isinstance(part, str) for part in filled)
            else Unresolved(
                "".join(part if isinstance(part, str) else "${{ " + part.name + " }}" for part in filled), tuple(filled)
            )
        )
        more = Related(fact.span, "the image is used here")
        yield replace(fact, reference=made, span=node.span, related=(*fact.related, more))
