"""Joins a launch with the file of options that its `--config` names."""

from __future__ import annotations

from auditor.launch.parse import role_of
from auditor.model.facts import EngineLaunch, FactSet, Related
from auditor.model.records import replace
from auditor.readers.option_file import ENTRYPOINT
from auditor.resolve.model_link import places_of


def join_option_files(facts: FactSet) -> FactSet:
    """The launches with the options of their files added; what the command line says itself stands, as in the engine.
    A file that a launch names is no launch of its own any more."""
    files = [launch for launch in facts.launches if launch.entrypoint == ENTRYPOINT]
    if not files:
        return facts
    used: set[str] = set()
    launches: list[EngineLaunch] = []
    for launch in facts.launches:
        named = launch.flags.get("config")
        file = _named(launch, named.value, files) if named is not None and isinstance(named.value, str) else None
        if file is not None:
            used.add(file.span.path)
            flags = {**file.flags, **launch.flags}
            model = flags["model-path"].value if "model-path" in flags else launch.model
            more = Related(file.span, "options of this launch")
            related = tuple(dict.fromkeys((*launch.related, more)))
            launch = replace(launch, flags=flags, model=model, role=role_of(flags), related=related)
        launches.append(launch)
    kept = (launch for launch in launches if launch.entrypoint != ENTRYPOINT or launch.span.path not in used)
    return replace(facts, launches=tuple(kept))


def _named(launch: EngineLaunch, name: str, files: list[EngineLaunch]) -> EngineLaunch | None:
    """The one file that a path means: from the launch's file, from the root, or as the end of a path in a container."""
    if launch.entrypoint == ENTRYPOINT or not name.strip("./"):
        return None
    near, plain = places_of(launch, name)
    exact = [file for file in files if file.span.path in (near, plain)]
    if exact:
        return exact[0]
    base = plain.rpartition("/")[2]
    alike = [file for file in files if file.span.path.rpartition("/")[2] == base]
    return alike[0] if name.startswith("/") and len(alike) == 1 else None
