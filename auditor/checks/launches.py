"""What several checks ask of launches: a flag as a number, the engine's version, the pairs of prefill and decode."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from auditor.model.facts import EngineLaunch, FactSet, Flag, ImageReference, Related, Value
from auditor.model.records import dataclass
from auditor.model.spans import Span

SERVING = frozenset(
    {
        "sglang.launch_server", "sglang serve", "image", "dynamo.sglang", "sglang_router.launch_server", "options file",
    }
)  # fmt: skip
"""Entrypoints that serve requests of others; benchmarks and offline engines are left out."""

_ROLE = re.compile(r"(?:(?<=[^a-z])|\A)(?:prefill|decode|pd|p|d)(?:er|ers|s)?(?=[^a-z]|\Z)", re.IGNORECASE)


def number(flag: Flag | None) -> int | None:
    """The positive whole number of a flag; `None` where it is absent or not known."""
    if flag is None or isinstance(flag.value, bool) or not isinstance(flag.value, int):
        return None
    return flag.value if flag.value > 0 else None


def text(flag: Flag | None) -> str | None:
    """The plain text of a flag; `None` where it is absent or not known."""
    return flag.value if flag is not None and isinstance(flag.value, str) else None


def switched_on(flag: Flag | None) -> bool:
    """Whether a switch is given: alone, or with a word that the engine's `EnvBool` and `store_true` read as true."""
    if flag is None:
        return False
    return flag.value is True or str(flag.value).strip().lower() in ("1", "true", "yes", "y", "t", "on")


def model_name(launch: EngineLaunch) -> str | None:
    """The last part of the model's id or path in lower case; `None` where it is not known."""
    if not isinstance(launch.model, str):
        return None
    return launch.model.rstrip("/").rpartition("/")[2].lower() or None


def image_place(launch: EngineLaunch, facts: FactSet) -> ImageReference | None:
    """The image reference that the launch runs in: of its file, the nearest one before it that says the same."""
    same = [image for image in facts.images if image.span.path == launch.span.path and image.reference == launch.image]
    before = [image for image in same if image.span.start <= launch.span.start]
    return before[-1] if before else same[0] if same else None


def version_of(launch: EngineLaunch, facts: FactSet) -> str | None:
    """The engine's version: by the image of the launch, else by the one pin of its file; `None` when not known."""
    if launch.image is not None:
        return image_version(launch.image)
    from auditor.launch.versions import package_verdict

    found = {
        package_verdict(package).version
        for package in facts.packages
        if package.name == "sglang" and package.span.path == launch.span.path
    }
    found |= {image_version(image.reference) for image in facts.images if image.span.path == launch.span.path}
    return found.pop() if len(found) == 1 else None


def image_version(reference: Value) -> str | None:
    """The engine version that an image's tag states."""
    from auditor.launch.images import image_verdict, is_watched

    return image_verdict(reference).version if is_watched(reference) else None


def at_least(version: str | None, floor: str) -> bool | None:
    """Whether a version is at or above a floor; `None` when it is not known."""
    from auditor.launch.versions import parse_version

    parsed, low = parse_version(version) if version else None, parse_version(floor)
    return None if parsed is None or low is None else parsed >= low


def span_of(launch: EngineLaunch, *names: str) -> Span:
    """The place of the first of these flags that is given, else of the role's flag, else of the launch."""
    for name in (*names, "disaggregation-mode", "model-path"):
        flag = launch.flags.get(name)
        if flag is not None:
            return flag.span
    return launch.span


@dataclass(frozen=True, slots=True)
class Pair:
    """A decode launch and the prefill launches that it can be fed by."""

    decode: EngineLaunch
    prefills: tuple[EngineLaunch, ...]


def pairs(facts: FactSet) -> Iterator[Pair]:
    """Every decode launch with the prefill launches of its deployment: of the same deployment in the same file, else of
    its file, else of the file whose path differs by the role's word only (`prefill.yaml` and `decode.yaml`)."""
    launches = [launch for launch in facts.launches if launch.role in ("prefill", "decode")]
    prefills = [launch for launch in launches if launch.role == "prefill"]
    for decode in launches:
        if decode.role != "decode":
            continue
        found = _partners(decode, prefills)
        if found:
            yield Pair(decode, tuple(found))


def _partners(decode: EngineLaunch, prefills: Sequence[EngineLaunch]) -> list[EngineLaunch]:
    fitting = [prefill for prefill in prefills if _same_model(prefill, decode)]
    here = [prefill for prefill in fitting if prefill.span.path == decode.span.path]
    close = [prefill for prefill in here if prefill.deployment == decode.deployment]
    if close:
        return close
    if here:
        # names that tell nothing: one launch of each role in the file still belong together
        return here if len({prefill.deployment for prefill in here}) == 1 else []
    path = _without_role(decode.span.path)
    return [
        prefill
        for prefill in fitting
        if prefill.span.path != decode.span.path and _without_role(prefill.span.path) == path
    ]


def _same_model(one: EngineLaunch, other: EngineLaunch) -> bool:
    first, second = model_name(one), model_name(other)
    return first is None or second is None or first == second


def _without_role(path: str) -> str:
    return _ROLE.sub("", path)


def related(launches: Iterable[EngineLaunch], message: str, *names: str) -> tuple[Related, ...]:
    """One remark at each launch, on the first of these flags that it has."""
    return tuple(Related(span_of(launch, *names), message) for launch in launches)
