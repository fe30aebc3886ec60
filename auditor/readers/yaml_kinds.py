"""What kind of document a YAML file holds: each is read by one reader and left alone by the others."""

from __future__ import annotations

import re
from typing import Literal

from auditor.syntax.yaml_nodes import ListNode, MapNode, Node, ScalarNode

Kind = Literal["compose", "kubernetes", "kustomization", "chart", "values", "template", "workflow", "gitlab", "other"]

_COMPOSE = re.compile(r"(?:^|/)(?:[\w.-]*[.-])?(?:docker-)?compose(?:[._-][\w.-]+)?\.(?:ya?ml|json)\Z", re.IGNORECASE)
_SERVICE_KEYS = frozenset(
    {"image", "build", "command", "entrypoint", "environment", "ports", "volumes", "deploy", "extends", "env_file"}
)
_GO = re.compile(
    r"^\s*\{\{-?\s*(?:if|end|with|range|include|define|template|toYaml|/\*|\$\w+\s*:=)|^\s*\{%|\{\{-?\s*\.(?:Values|Release|Chart)\.",
    re.MULTILINE,
)
_WORKFLOW = re.compile(r"(?:^|/)\.(?:github|gitea|forgejo)/(?:workflows|actions)/")


def kind_of(path: str, root: Node) -> Kind:
    """The kind of one document, by its path and its shape."""
    lower = path.lower()
    name = lower.rsplit("/", 1)[-1]
    if not isinstance(root, MapNode):
        return "other"
    if name in ("kustomization.yaml", "kustomization.yml", "kustomization") or root.text("kind") == "Kustomization":
        return "kustomization"
    if root.get("apiVersion") is not None and root.get("kind") is not None:
        return "kubernetes"
    if name in ("chart.yaml", "chart.yml"):
        return "chart"
    if name in ("action.yml", "action.yaml"):
        return "workflow"
    if _WORKFLOW.search("/" + lower) and not (root.get("jobs") is None and root.map("services") is not None):
        return "workflow"  # compose files lie there too
    jobs = root.map("jobs")
    if jobs is not None and any(
        isinstance(entry.value, MapNode) and entry.value.get("runs-on") is not None for entry in jobs.entries
    ):
        return "workflow"
    if name.endswith(("gitlab-ci.yml", "gitlab-ci.yaml")) or "/.gitlab/" in "/" + lower:
        return "gitlab"
    services = root.map("services")
    if services is not None and (_COMPOSE.search(lower) or _looks_like_services(services)):
        return "compose"
    if is_values_name(name):
        return "values"
    return "other"


def is_values_name(name: str) -> bool:
    """Whether a file name is one of Helm values: `values.yaml`, `values-prod.yaml`, `prod.values.yaml`."""
    return bool(re.search(r"(?:^|[._-])values(?:[._-][\w.-]+)?\.ya?ml\Z", name))


def is_template_path(path: str) -> bool:
    """Whether a path lies in the templates of a chart, or is a template by its ending."""
    lower = "/" + path.lower()
    return "/templates/" in lower or lower.endswith((".gotmpl", ".tpl", ".j2", ".jinja", ".jinja2", ".tmpl"))


def is_template(path: str, text: str) -> bool:
    """Whether a file is a template that has to be masked before YAML can read it."""
    if not any(mark in text for mark in ("{{", "{%", "<%")):
        return False
    return is_template_path(path) or _GO.search(text) is not None


def _looks_like_services(services: MapNode) -> bool:
    values = [entry.value for entry in services.entries if isinstance(entry.value, MapNode)]
    return any(not _SERVICE_KEYS.isdisjoint(entry.key.value for entry in value.entries) for value in values)


def text_list(node: Node | None) -> list[ScalarNode]:
    """The scalars of a list, or the one scalar that stands for a list."""
    if isinstance(node, ScalarNode):
        return [] if node.is_null else [node]
    return [item for item in node.items if isinstance(item, ScalarNode)] if isinstance(node, ListNode) else []
