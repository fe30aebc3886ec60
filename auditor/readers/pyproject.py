"""pyproject.toml: PEP 621, PEP 735 groups, Poetry, PDM, Hatch, uv, pixi, and the project itself.

uv's overrides replace what the dependencies say, and its sources say where a package comes from: then the override or
the source is the statement that holds, and the dependency is not stated a second time.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.facts import Fact, PackageReference, Related
from auditor.model.records import replace
from auditor.model.spans import SourceFile
from auditor.readers.declared import listed, of_source, project_itself, tabled
from auditor.syntax import toml_spans
from auditor.syntax.requirement_lines import normalise
from auditor.syntax.spanned import Spanned


def read(source: SourceFile) -> Iterator[Fact]:
    """The project itself, then what it requires."""
    root = toml_spans.parse(source)
    own = root.get("project") or root.get("tool", "poetry") or Spanned({}, 0, 0)
    name = own.word("name")
    itself = project_itself(own.get("name"), own.get("version"), source)
    if itself is not None:
        yield itself
    stated = [fact for fact in _all(root, source) if name is None or fact.name != normalise(name)]
    yield from settled(stated, root.table("tool", "uv"), source)


def _all(root: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    yield from listed(root.list("project", "dependencies"), source, "dependencies")
    for extra, items in root.table("project", "optional-dependencies").items():
        yield from listed(items.items, source, f"extra {extra}")
    for group, items in root.table("dependency-groups").items():
        yield from listed(items.items, source, f"group {group}")
    yield from listed(root.list("build-system", "requires"), source, "build-system")
    tool = root.get("tool")
    if tool is None:
        return
    yield from _poetry(tool.get("poetry"), source)
    for group, items in tool.table("pdm", "dev-dependencies").items():
        yield from listed(items.items, source, f"group {group}")
    yield from tabled(tool.table("pdm", "resolution", "overrides"), source, "pdm overrides", exact=True)
    yield from tabled(tool.table("pdm", "overrides"), source, "pdm overrides", exact=True)
    for env, node in tool.table("hatch", "envs").items():
        yield from environment(env, node, source)
    yield from listed(tool.list("uv", "dev-dependencies"), source, "group dev")
    yield from listed(tool.list("uv", "build-constraint-dependencies"), source, "uv build constraints")
    yield from listed(tool.list("rye", "dev-dependencies"), source, "group dev")
    for key in ("requires", "dev-requires"):
        yield from listed(tool.list("flit", "metadata", key), source, key)
    pixi = tool.get("pixi")
    if pixi is not None:
        yield from pixi_packages(pixi, source)
    yield from tox_packages(Spanned(tool.table("tox"), 0, 0), source)


def tox_packages(root: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """What tox installs into its environments."""
    for env in (root.get("env_run_base"), *root.table("env").values()):
        if env is not None:
            yield from listed(env.list("deps"), source, "tox")


def _poetry(poetry: Spanned | None, source: SourceFile) -> Iterator[PackageReference]:
    if poetry is None:
        return
    yield from tabled(poetry.table("dependencies"), source, "dependencies", exact=True)
    yield from tabled(poetry.table("dev-dependencies"), source, "group dev", exact=True)
    for group, node in poetry.table("group").items():
        yield from tabled(node.table("dependencies"), source, f"group {group}", exact=True)


def environment(name: str, node: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """The packages of one Hatch environment, its overrides included."""
    for key in ("dependencies", "extra-dependencies"):
        yield from listed(node.list(key), source, f"environment {name}")
    for _, inner in Spanned(node.table("overrides"), 0, 0).walk():
        yield from listed((item.get("value") or item for item in inner.items), source, f"environment {name}")


def pixi_packages(root: Spanned, source: SourceFile) -> Iterator[PackageReference]:
    """The packages of a pixi manifest: conda and PyPI, per feature and per platform."""
    for path, node in root.walk():
        if not path or path[-1] not in ("pypi-dependencies", "dependencies", "host-dependencies", "build-dependencies"):
            continue
        before = path[:-1]
        if before and before[0] not in ("feature", "target", "package"):
            continue
        scope = f"feature {before[1]}" if len(before) > 1 and before[0] == "feature" else "dependencies"
        yield from tabled(node.pairs, source, scope, exact=False)


def settled(stated: list[PackageReference], uv: dict[str, Spanned], source: SourceFile) -> Iterator[PackageReference]:
    """What holds once uv's overrides, constraints and sources are applied."""
    node = Spanned(uv, 0, 0)
    overrides = list(listed(node.list("override-dependencies"), source, "uv overrides"))
    constraints = list(listed(node.list("constraint-dependencies"), source, "uv constraints"))
    sources = list(_sources(node.table("sources"), source))
    local = {normalise(name) for name, entry in node.table("sources").items() if _is_local(entry)}
    overridden = {fact.name for fact in overrides if fact.marker is None}
    sourced = {fact.name for fact in sources if fact.marker is None}
    required = {fact.name for fact in stated}
    for fact in stated:
        if fact.name in overridden or fact.name in sourced or (fact.name in local and fact.kind in ("bare", "range")):
            continue
        bound = [limit for limit in constraints if limit.name == fact.name and limit.marker is None]
        if bound and fact.kind in ("bare", "range", "pinned") and fact.version is None:
            joined = ",".join(str(part.specifier) for part in (fact, *bound) if isinstance(part.specifier, str))
            related = tuple(Related(limit.span, "uv constrains it here") for limit in bound)
            fact = replace(fact, kind="range", specifier=joined or None, related=(*fact.related, *related))
        yield fact
    for fact in constraints:
        if fact.name not in required or fact.marker is not None:
            yield fact
    yield from (fact for fact in overrides if fact.name not in sourced)
    yield from sources


def _is_local(entry: Spanned) -> bool:
    return any("workspace" in node.pairs or "path" in node.pairs for node in (entry.items or [entry]))


def _sources(table: dict[str, Spanned], source: SourceFile) -> Iterator[PackageReference]:
    for name, entry in table.items():
        for node in entry.items or [entry]:
            fact = of_source(name, node, source, "uv sources")
            if fact is not None:
                yield replace(fact, marker=node.word("marker") or node.word("extra") or node.word("group"))
