"""Two audits of one repository side by side: what changed that moves the KV pool or the engine's version."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, TypeVar

from auditor.capacity.launch import FLOATS, INTEGERS, NOT_MODELLED, SWITCHES, TEXTS
from auditor.capacity.of_launch import LaunchPool, engine_version, pool_of
from auditor.capacity.pool import longest_admitted
from auditor.hidden import Compared, Hidden, hidden_findings, uncovered
from auditor.model.facts import EngineLaunch, FactSet, Flag, ImageReference, PackageReference, Unresolved, Value
from auditor.model.findings import Finding
from auditor.model.records import dataclass, field
from auditor.model.spans import Span

# Options that move the pool or the window although the estimate does not read them, by canonical name.
MOVES = frozenset(
    {
        *INTEGERS, *FLOATS, *TEXTS, *SWITCHES, *NOT_MODELLED,
        "nnodes", "disaggregation-mode", "allow-auto-truncate", "cuda-graph-bs-decode", "cuda-graph-bs-prefill",
        "cuda-graph-max-bs-prefill", "disable-cuda-graph", "dtype", "enable-dp-lm-head", "enable-lora",
        "enable-memory-saver", "enable-multimodal", "enable-torch-compile", "hicache-ratio", "hicache-size",
        "json-model-override-args", "load-format", "max-loras-per-batch", "moe-a2a-backend",
        "moe-dense-tp-size", "speculative-draft-model-path", "speculative-draft-model-quantization",
        "speculative-eagle-topk", "speculative-num-draft-tokens", "speculative-num-steps", "torchao-config",
    }
)  # fmt: skip
ENVIRONMENT = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    }
)  # fmt: skip
_WORDS = {"covers": 0, "low-headroom": 1, "straddles": 2, "below": 3}
_LEVELS = {"note": 0, "warning": 1, "error": 2}
T = TypeVar("T")
State = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that differs: its name, and the texts before and after (`None`: not there)."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One launch, image or package that is not what it was. `span` points into the new tree, into the old one when it
    was removed. `before` and `after` are the pools of a launch, or the verdicts of a reference."""

    kind: Literal["launch", "image", "package"]
    state: State
    subject: str
    scope: str
    span: Span
    settings: tuple[Setting, ...] = ()
    pool_before: LaunchPool | None = None
    pool_after: LaunchPool | None = None
    verdict_before: str | None = None
    verdict_after: str | None = None
    role: str = ""
    port: int = 30000  # what the engine listens on unless it is told otherwise
    worse: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """All that changed, the findings that are new or graver than before, those that are gone, those that the new
    configuration or a new comment hides, and those that only the new configuration shows."""

    base: str
    head: str
    changes: tuple[Change, ...] = ()
    opened: tuple[Finding, ...] = ()
    closed: tuple[Finding, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    uncovered: tuple[Finding, ...] = ()
    unread: tuple[str, ...] = ()
    worse: tuple[str, ...] = field(default=())


def changes_between(compared: Compared, base: str, head: str, fail_on: str) -> Changes:
    """Compare two audits. `fail_on` is the least level at which a new finding counts as worse; `never` for none. A new
    finding that the new configuration hides without a reason counts too."""
    old, new, before = compared.old, compared.new, compared.new_as_before
    found = _facts(old.facts, before.facts)
    if before is not new:
        found += [change for change in _facts(compared.old_anew.facts, new.facts) if change not in found]
    found.sort(key=lambda change: (change.span, change.kind, change.subject))
    opened, shown = uncovered(compared, _findings(old.active, new.active)[0])
    closed = _findings(old.active, before.findings)[1]
    hidden = hidden_findings(compared)
    fresh = {finding.fingerprint for finding in _findings(old.active, before.active)[0]}
    worse = [line for change in found for line in change.worse]
    if fail_on != "never":
        graver = [(finding, "") for finding in opened]
        graver += [
            (item.finding, f"; hidden: {item.by}")
            for item in hidden
            if not item.excused and item.finding.fingerprint in fresh
        ]
        worse += [
            f"{finding.span.path}:{finding.span.start.line}: {finding.level} [{finding.rule}] {finding.message}{why}"
            for finding, why in graver
            if _LEVELS[finding.level] >= _LEVELS[fail_on]
        ]
    unread = tuple(f"{problem.path}: {problem.reason}" for problem in new.problems)
    worse = worse if fail_on != "never" else []
    return Changes(base, head, tuple(found), opened, closed, hidden, shown, unread, tuple(dict.fromkeys(worse)))


def _facts(old: FactSet, new: FactSet) -> list[Change]:
    return [
        *_launches(old, new),
        *_references(old.images, new.images, _image),
        *_references(old.packages, new.packages, _package),
    ]


def _findings(old: Sequence[Finding], new: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings that are new or graver, and those that are gone. A finding in a file that was moved is not new: it is
    matched by what it is, without the path."""
    before: dict[str, Finding] = {finding.fingerprint: finding for finding in old}
    gone = dict(before)
    fresh = []
    opened = []
    for finding in new:
        known = gone.pop(finding.fingerprint, None)
        if known is None:
            fresh.append(finding)
        elif _LEVELS[finding.level] > _LEVELS[known.level]:
            opened.append(finding)
    here = {finding.span.path for finding in new}
    for finding in fresh:
        moved = next(
            (
                key
                for key, known in gone.items()
                if (known.rule, known.identity) == (finding.rule, finding.identity) and known.span.path not in here
            ),
            None,
        )
        known = gone.pop(moved) if moved is not None else None
        if known is None or _LEVELS[finding.level] > _LEVELS[known.level]:
            opened.append(finding)
    opened.sort(key=lambda finding: finding.sort_key)
    return tuple(opened), tuple(gone.values())


def _paired(old: Iterable[T], new: Iterable[T], *keys: Callable[[T], Hashable]) -> list[tuple[T | None, T | None]]:
    """Pairs by the first key under which both sides have something, in order; the rest stands alone."""
    left, right = list(old), list(new)
    pairs: list[tuple[T | None, T | None]] = []
    for key in keys:
        waiting: dict[Hashable, list[T]] = {}
        for item in left:
            waiting.setdefault(key(item), []).append(item)
        rest = []
        for item in right:
            same = waiting.get(key(item))
            if same:
                pairs.append((same.pop(0), item))
            else:
                rest.append(item)
        left, right = [item for items in waiting.values() for item in items], rest
    return [*pairs, *((item, None) for item in left), *((None, item) for item in right)]


def _launches(old: FactSet, new: FactSet) -> Iterable[Change]:
    def exact(launch: EngineLaunch) -> Hashable:
        return launch.span.path, launch.scope, launch.role, _text(launch.model)

    def place(launch: EngineLaunch) -> Hashable:
        return launch.span.path, launch.scope

    def moved(launch: EngineLaunch) -> Hashable:
        return posixpath.basename(launch.span.path), launch.scope, launch.role

    def renamed(launch: EngineLaunch) -> Hashable:
        return launch.span.path, launch.role, _text(launch.model)

    for before, after in _paired(old.launches, new.launches, exact, place, moved, renamed):
        change = _launch(before, after, old, new)
        if change is not None:
            yield change


def _launch(before: EngineLaunch | None, after: EngineLaunch | None, old: FactSet, new: FactSet) -> Change | None:
    settings = _settings(before, after)
    pool_before = _pool(before, old)
    pool_after = _pool(after, new)
    launch = after or before
    if launch is None or (before is not None and after is not None and not settings and _same(pool_before, pool_after)):
        return None
    port = launch.flags.get("port")
    return Change(
        kind="launch",
        state="removed" if after is None else "added" if before is None else "changed",
        subject=_text(launch.model) or launch.entrypoint,
        scope=launch.scope,
        span=launch.span,
        settings=settings if before is not None and after is not None else (),
        pool_before=pool_before,
        pool_after=pool_after,
        role=launch.role,
        port=port.value if port is not None and isinstance(port.value, int) else 30000,
        worse=_worse(launch, pool_before, pool_after),
    )


def _pool(launch: EngineLaunch | None, facts: FactSet) -> LaunchPool | None:
    return pool_of(launch, engine_version(launch, facts), facts.models) if launch is not None else None


def _same(one: LaunchPool | None, other: LaunchPool | None) -> bool:
    if one is None or other is None:
        return one is other
    tokens = [pool.estimate.tokens if pool.estimate else None for pool in (one, other)]
    return one.word == other.word and one.context == other.context and tokens[0] == tokens[1]


def _settings(before: EngineLaunch | None, after: EngineLaunch | None) -> tuple[Setting, ...]:
    one, other = _stated(before), _stated(after)
    return tuple(
        Setting(name, one.get(name), other.get(name))
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    )


def _stated(launch: EngineLaunch | None) -> dict[str, str]:
    """All that a launch says and that moves its pool, its window or its version, as texts."""
    if launch is None:
        return {}
    stated = {f"--{name}": _flag(flag) for name, flag in launch.flags.items() if name in MOVES}
    stated |= {name: _flag(flag) for name, flag in launch.env.items() if name in ENVIRONMENT}
    if launch.model is not None:
        stated["model"] = _text(launch.model)
    if launch.image is not None:
        stated["image"] = _text(launch.image)
    if launch.gpu is not None and launch.gpu.type:
        stated["GPU"] = launch.gpu.type
    if launch.gpu is not None and launch.gpu.count is not None:
        stated["GPUs per node"] = str(launch.gpu.count)
    if launch.nodes is not None:
        stated["nodes"] = str(launch.nodes)
    return stated


def _flag(flag: Flag) -> str:
    return "on" if flag.value is True else "off" if flag.value is False else _text(flag.value)


def _text(value: Value | None) -> str:
    return "" if value is None else value.text if isinstance(value, Unresolved) else str(value)


def _worse(launch: EngineLaunch, before: LaunchPool | None, after: LaunchPool | None) -> tuple[str, ...]:
    """Why the pool of a launch stands worse to its window than before, in words; a launch that is new and does not
    cover its window is worse than none."""
    if after is None or after.word not in _WORDS:
        return ()
    place = f"{launch.span.path}:{launch.span.start.line}"
    rank = _WORDS[after.word]
    if before is None or before.word not in _WORDS:
        if rank >= _WORDS["straddles"] and (before is None or before.context != after.context):
            return (f"{place}: the pool is {_words(after)}",)
        return ()
    if rank > _WORDS[before.word]:
        return (f"{place}: the pool was {_words(before)} and is {_words(after)}",)
    if rank >= _WORDS["straddles"] and open_band(after) > open_band(before) * 1.01:
        counts = f"{open_band(after):,} lengths, {open_band(before):,} before"
        return (f"{place}: the front accepts more lengths that the pool cannot hold: {counts}",)
    return ()


def open_band(pool: LaunchPool) -> int:
    """How many prompt lengths the front accepts and the pool, by its expected size, cannot hold."""
    if pool.context is None or pool.estimate is None:
        return 0
    return max(0, pool.context - longest_admitted(pool.estimate.tokens.expected, None))


def _words(pool: LaunchPool) -> str:
    return {
        "covers": "larger than the context window",
        "low-headroom": "larger than the context window with little to spare",
        "straddles": "perhaps smaller than the context window",
        "below": "smaller than the context window",
    }[pool.word]


@dataclass(frozen=True, slots=True)
class _Reference:
    kind: Literal["image", "package"]
    subject: str
    scope: str
    span: Span
    text: str
    verdict: str


def _references(old: Iterable[T], new: Iterable[T], view: Callable[[T], _Reference]) -> Iterable[Change]:
    def exact(item: _Reference) -> Hashable:
        return item.span.path, item.subject, item.scope, item.text

    def place(item: _Reference) -> Hashable:
        return item.span.path, item.subject, item.scope

    def repointed(item: _Reference) -> Hashable:
        return item.span.path, item.scope

    def moved(item: _Reference) -> Hashable:
        return item.subject, item.scope, item.text

    for before, after in _paired(map(view, old), map(view, new), exact, place, repointed, moved):
        item = after or before
        if item is None:
            continue
        if before is not None and after is not None and (before.text, before.verdict) == (after.text, after.verdict):
            continue
        yield Change(
            kind=item.kind,
            state="removed" if after is None else "added" if before is None else "changed",
            subject=item.subject,
            scope=item.scope,
            span=item.span,
            settings=(Setting("version", before.text if before else None, after.text if after else None),),
            verdict_before=before.verdict if before else None,
            verdict_after=after.verdict if after else None,
        )


def _image(fact: ImageReference) -> _Reference:
    from auditor.launch.images import image_verdict, parse_reference

    repository = parse_reference(fact.reference).repository
    return _Reference(
        "image", repository, fact.scope, fact.span, _text(fact.reference), image_verdict(fact.reference).verdict
    )


def _package(fact: PackageReference) -> _Reference:
    from auditor.launch.versions import package_verdict

    stated = _text(fact.specifier) or _text(fact.version) or _text(fact.vcs_ref)
    if fact.kind == "locked" and stated and stated[0].isdigit():
        stated = f"=={stated}"
    verdict = package_verdict(fact).verdict
    return _Reference("package", fact.name, fact.scope, fact.span, f"{fact.name}{stated}", verdict)
