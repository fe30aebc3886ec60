"""The TOML manifests beside pyproject: Pipfile, pixi.toml, hatch.toml, uv.toml, tox.toml."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.declared import listed, tabled
from auditor.readers.pyproject import environment, pixi_packages, settled, tox_packages
from auditor.syntax import toml_spans

_NOT_PACKAGES = {"source", "requires", "scripts", "pipenv", "pipfile"}


def read(source: SourceFile) -> Iterator[Fact]:
    """The packages that the manifest names, by the file's name."""
    root = toml_spans.parse(source)
    name = source.path.rsplit("/", 1)[-1].lower()
    if name == "pipfile":
        for category, node in root.pairs.items():
            if category not in _NOT_PACKAGES:
                yield from tabled(node.pairs, source, category, exact=True)
    elif name == "pixi.toml":
        yield from pixi_packages(root, source)
    elif name == "hatch.toml":
        for env, table in root.table("envs").items():
            yield from environment(env, table, source)
    elif name == "uv.toml":
        yield from settled(list(listed(root.list("dev-dependencies"), source, "group dev")), root.pairs, source)
    else:
        yield from tox_packages(root, source)
