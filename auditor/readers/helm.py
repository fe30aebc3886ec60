"""Helm charts: the chart file, values files, and templates read through a mask; other templates of YAML alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.parse import LaunchContext
from auditor.launch.script import script_facts
from auditor.model.facts import Definition, Fact
from auditor.model.spans import SourceFile
from auditor.readers.workloads import Reading
from auditor.readers.yaml_kinds import is_template, is_values_name, kind_of
from auditor.syntax.go_eval import defines_of
from auditor.syntax.go_templates import masked
from auditor.syntax.mapped import piece_of
from auditor.syntax.yaml_nodes import Documents, MapNode, Node, ScalarNode, documents, walk

_TEMPLATE_ENDING = re.compile(r"\.(?:j2|jinja2?|gotmpl|tmpl|template)\Z")
_SHELL = (".sh", ".bash", ".sbatch", ".slurm", ".zsh")
MAX_BLANKED = 40  # lines of one template given up before it counts as unread
MAX_VALUES = 20_000  # scalars of one values file


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """The facts of one file of a chart; what could not be read is an error among them."""
    name = source.path.lower().rsplit("/", 1)[-1]
    if name in ("chart.yaml", "chart.yml"):
        yield from chart_file(source)
    elif is_values_name(name) and "/templates/" not in "/" + source.path:
        yield from values_file(source)
    elif is_template(source.path, source.text):
        yield from template(source)


def chart_file(source: SourceFile) -> Iterator[Fact | ReadError]:
    """`version` and `appVersion`, which templates refer to."""
    answer = documents(source)
    for root in answer.roots:
        if isinstance(root, MapNode):
            for key, name in (("appVersion", "AppVersion"), ("version", "Version"), ("name", "Name")):
                value = root.get(key)
                if isinstance(value, ScalarNode) and not value.is_null:
                    yield Definition(name, value.value, "helm-chart", source.path, value.span)
    yield from answer.errors


def values_file(source: SourceFile) -> Iterator[Fact | ReadError]:
    """Every scalar as a definition under its dotted path, and the images and launches by shape."""
    text = masked(source.text) if "{{" in source.text else None
    answer = documents(source, text)
    reading = Reading(source)
    for root in answer.roots:
        kind = kind_of(source.path, root)
        if kind not in ("values", "other"):
            continue
        yield from definitions(root, source)
        yield from reading.document(root, "values", LaunchContext(deployment=source.path))
    yield from answer.errors


def definitions(root: Node, source: SourceFile) -> Iterator[Definition]:
    """The scalars of a values file."""
    count = 0
    for path, node in walk(root):
        if isinstance(node, ScalarNode) and "\n" not in node.value:
            count += 1
            if count > MAX_VALUES:
                return
            value = "" if node.is_null else node.value
            yield Definition(".".join(path), value, "helm-values", source.path, node.span)


def template(source: SourceFile) -> Iterator[Fact | ReadError]:
    """A template: named templates as definitions, documents by shape with their actions as holes."""
    text = source.text
    for name, body in defines_of(text).items():
        yield Definition(name, body, "helm-define", source.path, source.span(0, 0))
    inner = _TEMPLATE_ENDING.sub("", source.path.lower())
    if inner.endswith(".tpl"):
        return
    if inner.endswith(_SHELL) or text.startswith("#!"):
        yield from script_facts(piece_of(source), source, LaunchContext(deployment=source.path))
        return
    if inner != source.path.lower() and re.search(r"\.\w+\Z", inner) and not inner.endswith((".yaml", ".yml", ".json")):
        return  # a template of something else than YAML
    answer = salvaged(source, masked(text))
    reading = Reading(source)
    for root in answer.roots:
        kind = kind_of(source.path, root)
        yield from reading.document(root, "compose" if kind == "compose" else "template")
    yield from answer.errors


def salvaged(source: SourceFile, text: str) -> Documents:
    """The documents of a masked template. Lines that still are no YAML are blanked one by one; only where one of them
    names the engine, or too many had to go, the error stays."""
    answer = documents(source, text)
    if not answer.errors:
        return answer
    whole = SourceFile(source.path, text)
    lost = False
    for _ in range(MAX_BLANKED):
        error = answer.errors[0]
        if error.limit or error.offset is None:
            return answer
        line = whole.position(min(error.offset, max(len(text) - 1, 0))).line
        while line > 1 and not whole.line_text(line).strip():
            line -= 1
        start = whole.line_starts[line - 1]
        written = whole.line_text(line)
        if not written.strip():
            return answer
        lost = lost or "sglang" in source.text[start : start + len(written)].lower()
        text = text[:start] + " " * len(written) + text[start + len(written) :]
        whole = SourceFile(source.path, text)
        tried = documents(source, text)
        if not tried.errors:
            return Documents(tried.roots, answer.errors[:1] if lost else ())
        answer = tried
    return answer
