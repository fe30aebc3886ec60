"""A launch as a file states it, as the question that the estimate answers; what is missing is named, never guessed."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.capacity.accelerators import Gpu, gpus_named
from auditor.capacity.launch import known_of, model_named
from auditor.capacity.pool import PoolEstimate, Word, estimate_pool, verdict
from auditor.capacity.shapes import ModelShape, shape_of
from auditor.capacity.spec import version_of
from auditor.model.facts import EngineLaunch, FactSet, ModelConfig, Unresolved
from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchPool:
    """The pool of one launch: `estimate` is `None` where `missing` says what is not known; `context` in tokens with
    where it comes from (`flag`, `model`)."""

    word: Word
    estimate: PoolEstimate | None
    context: int | None
    context_source: str | None
    missing: tuple[str, ...] = ()


def pool_of(launch: EngineLaunch, version: str | None, models: Sequence[ModelConfig] = ()) -> LaunchPool:
    """The estimate for one launch. Never raises: a launch that says too little has the word `unknown`."""
    missing: list[str] = []
    shape = _shape(launch, models, missing)
    gpu = _gpu(launch, missing)
    window = launch.flags.get("context-length")
    flag = window.value if window is not None and isinstance(window.value, int) and window.value > 0 else None
    context = flag or (shape.context_at(version_of(version)) if shape else None)
    source = "flag" if flag else "model" if context else None
    known = known_of(launch, shape, version) if shape is not None else None
    for name in known.open if known is not None else ():
        value = launch.flags[name].value
        words = "its effect is not modelled"
        if isinstance(value, Unresolved):
            words = f"`{value.text}` is not set in the tree"
        elif name == "mem-fraction-static":
            words = f"{value} is no share between 0 and 1, so the engine would not start"
        missing.append(f"--{name}: {words}")
    if shape is None or gpu is None or known is None or missing:
        return LaunchPool("unknown", None, context, source, tuple(missing))
    if not shape.priced:
        return LaunchPool("unknown", None, context, source, ("the KV bytes per token of this compressed attention",))
    spec = known.on(gpu)
    estimate = estimate_pool(spec)
    missing_context = () if context else ("the context length: neither a flag nor the model's configuration gives it",)
    return LaunchPool(verdict(estimate.tokens, context), estimate, context, source, missing_context)


def engine_version(launch: EngineLaunch, facts: FactSet) -> str | None:
    """The engine's version where the tree says it: by the image of the launch, else by the one pin of its file."""
    from auditor.launch.images import image_verdict, is_watched
    from auditor.launch.versions import package_verdict

    if launch.image is not None and is_watched(launch.image):
        return image_verdict(launch.image).version
    path = launch.span.path
    found = {package_verdict(fact).version for fact in facts.packages if fact.span.path == path}
    return found.pop() if len(found) == 1 else None


def _shape(launch: EngineLaunch, models: Sequence[ModelConfig], missing: list[str]) -> ModelShape | None:
    name = launch.model if isinstance(launch.model, str) else ""
    folder = name.strip("./").rstrip("/")
    for model in models:
        if folder and (model.model == name or model.span.path.rpartition("/")[0].endswith(folder)):
            shape = shape_of(model.values)
            if shape is not None:
                return shape
    shapes = model_named(launch).shapes
    if len(shapes) == 1:
        return shapes[0]
    if shapes:
        missing.append("which quantization the weights have: the model is known by the name that it is served under")
    elif isinstance(launch.model, Unresolved):
        missing.append(f"the model: `{launch.model.text}` is not set in the tree")
    else:
        missing.append(f"the architecture of `{name}`: not in the catalogue" if name else "the model")
    return None


def _gpu(launch: EngineLaunch, missing: list[str]) -> Gpu | None:
    if launch.gpu is None or not launch.gpu.type:
        missing.append('the GPU: nothing in the tree names it (`gpu = "..."` in the configuration does)')
        return None
    found = gpus_named(launch.gpu.type)
    if not found:
        missing.append(f"the memory of `{launch.gpu.type}`: not in the catalogue")
    elif len(found) > 1:
        missing.append(f"which of `{launch.gpu.type}` it runs on")
    return found[0] if len(found) == 1 else None
