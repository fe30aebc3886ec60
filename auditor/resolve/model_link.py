"""Links a launch to the model configuration that it names: a folder of the tree with a `config.json` in it."""

from __future__ import annotations

import posixpath

from auditor.model.facts import EngineLaunch, FactSet, ModelConfig, Related
from auditor.model.records import replace


def link_models(facts: FactSet) -> FactSet:
    """The facts with each configuration of the tree also under the name that a launch gives it, and shown there."""
    files = [model for model in facts.models if model.span.path.endswith("config.json")]
    if not files:
        return facts
    launches: list[EngineLaunch] = []
    linked: dict[str, ModelConfig] = {}
    for launch in facts.launches:
        found = next((model for model in files if _names(launch, model)), None)
        if found is not None and isinstance(launch.model, str):
            linked.setdefault(launch.model, replace(found, model=launch.model))
            more = Related(found.span, "the model's configuration")
            launch = replace(launch, related=tuple(dict.fromkeys((*launch.related, more))))
        launches.append(launch)
    known = {model.model for model in facts.models}
    added = tuple(model for name, model in sorted(linked.items()) if name not in known)
    return replace(facts, launches=tuple(launches), models=(*facts.models, *added))


def places_of(launch: EngineLaunch, name: str) -> tuple[str, str]:
    """What a path that a launch names means in the tree: from the launch's file, and from the root."""
    near = posixpath.normpath(posixpath.join(posixpath.dirname(launch.span.path), name))
    return near, posixpath.normpath(name).strip("/")


def _names(launch: EngineLaunch, model: ModelConfig) -> bool:
    """Whether the launch's model is the folder of the configuration: from the launch's file, from the root, or as the
    end of a path inside of a container."""
    name = launch.model
    if not isinstance(name, str) or not name.strip("./"):
        return False
    folder = model.scope
    if not folder:
        return False
    near, plain = places_of(launch, name)
    return folder in (near, plain) or (name.startswith("/") and ("/" + plain).endswith("/" + folder))
