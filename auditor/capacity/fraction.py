"""The static memory fraction: given, or by the heuristic of the engine's version.

Source: `server_args.py` of the published wheels 0.3.6 to 0.5.23 (`_handle_gpu_memory_settings` and what came before
it). All sizes in MiB. Where the version is not known the heuristics of all sampled versions give the interval.
"""

from __future__ import annotations

from auditor.capacity.interval import Interval, exact, hull
from auditor.capacity.spec import LaunchSpec, Version

MIB = 2**20
SAMPLED: tuple[Version, ...] = (
    (0, 4, 6), (0, 4, 8), (0, 5, 1), (0, 5, 3), (0, 5, 9), (0, 5, 11), (0, 5, 14), (0, 5, 19), (0, 5, 23),
)  # fmt: skip
BY_ROLE = (0, 5, 17)  # the first release with the heuristic of 0.5.19: reserves and towers by role (`server_args.py`)
# Limit of each memory class, its chunked prefill size, its decode graph batch for tp < 4 and tp >= 4 (0.5.6 to 0.5.19).
CLASSES = (
    (20480, 2048, 8, 8),
    (35840, 2048, 24, 80),
    (61440, 4096, 32, 160),
    (92160, 8192, 256, 512),
    (163840, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)


def static_fraction(spec: LaunchSpec, least: float = 0.0) -> tuple[Interval, str]:
    """The fraction of the memory that was free before loading which weights and pool may take, and where it is from:
    `flag`, `heuristic of VERSION` or `heuristic, version unknown`. `least` is what the weights alone take."""
    if spec.fraction is not None:
        return exact(spec.fraction) * workspace(spec), "flag"
    fraction, source = _given_by_engine(spec, least)
    return fraction * workspace(spec), source


def workspace(spec: LaunchSpec) -> Interval:
    """What the aiter backend of AMD devices leaves of the fraction, of an explicit one too, where the context is above
    8,192: 0.85 of it (`attention_hook.py`, `model_runner.py` up to 0.5.3; not yet in 0.4.6). It is the default except
    for sparse MLA and for MLA whose rank has neither 16 nor 128 heads; hybrids choose by layer kind."""
    shape, context = spec.shape, spec.context or spec.shape.context_at(spec.version)
    if spec.vendor != "amd" or (context is not None and context <= 8192):
        return exact(1.0)
    if spec.attention_backend is not None:
        chosen = spec.attention_backend == "aiter"
    else:
        served = not shape.kv_lora_rank or max(1, shape.kv_heads // spec.tp) in (16, 128)
        chosen = served and shape.family not in ("dsa", "compressed")
    if not chosen or (spec.version is not None and spec.version < (0, 4, 7)):
        return exact(1.0)
    undecided = context is None or (shape.linear_layers and spec.attention_backend is None)
    if undecided or spec.version is None or spec.version < (0, 4, 9):
        return hull(0.85, 1.0, expected=0.85)
    return exact(0.85)


def _given_by_engine(spec: LaunchSpec, least: float) -> tuple[Interval, str]:
    version = spec.version
    if version is not None and version in SAMPLED:
        return exact(_heuristic(spec, version)), f"heuristic of {'.'.join(map(str, version))}"
    if version is not None and BY_ROLE <= version <= (0, 5, 19):
        return exact(_heuristic(spec, (0, 5, 19))), f"heuristic of {'.'.join(map(str, version))}"
    if version is not None and version[:3] < (0, 4, 5):
        return exact(_by_parallelism(spec.tp)), f"heuristic of {'.'.join(map(str, version))}"
    if version is not None and version[:3] == (0, 4, 5):
        # post releases learned to keep 13 GiB of a card above 80
        early = _by_parallelism(spec.tp)
        late = early if spec.memory / MIB <= 81920 else 1 - 13 * 1024 * MIB / spec.memory
        return hull(early, late), "heuristic around 0.4.5"
    if version is not None:
        # between two sampled releases the change may lie on either side
        near = [
            max((v for v in SAMPLED if v <= version), default=SAMPLED[0]),
            min((v for v in SAMPLED if v > version), default=SAMPLED[-1]),
        ]
        values = [_heuristic(spec, candidate) for candidate in near]
        if version[:3] > SAMPLED[-1]:
            return hull(*values), f"heuristic of {'.'.join(map(str, SAMPLED[-1]))}, the last known"
        return hull(*values), f"heuristic around {'.'.join(map(str, version))}"
    values = [_heuristic(spec, candidate) for candidate in possible_versions(spec)]
    starts = [value for value in values if value > least] or values  # where nothing is left the engine would not start
    return hull(*starts, expected=sorted(starts)[len(starts) // 2]), "heuristic, version unknown"


def possible_versions(spec: LaunchSpec) -> tuple[Version, ...]:
    """The sampled versions that a launch without a version can mean: from the last one before the engine learned the
    model's architecture, since the change lies between the two."""
    since = spec.shape.since
    if since is None:
        return SAMPLED
    return (max(version for version in SAMPLED if version < since), *(v for v in SAMPLED if v >= since))


def _heuristic(spec: LaunchSpec, version: Version) -> float:
    memory = spec.memory / MIB
    if version < (0, 4, 7):
        return _memory_steps(spec, memory)
    reserve = _reserve_by_class(spec, memory) if version < (0, 5, 2) else _reserve(spec, version, memory)
    fraction = round((memory - reserve) / memory, 3)
    if version < (0, 5, 6) and spec.shape.family == "dsa":
        fraction = 0.8
    vision = spec.shape.vision_size
    if vision is not None and version < (0, 4, 9):
        fraction *= 0.9
    elif vision is not None and not (version >= (0, 5, 19) and spec.role == "decode"):
        complexity = vision[0] * vision[1] ** 2 / (24 * 1024**2)
        fraction *= 0.95 * min(max(1 - 0.1 * (complexity - 1), 0.8), 1.05)
    return min(max(fraction, 0.05), 0.99)


def _by_parallelism(ranks: int) -> float:
    """By the size of the tensor-parallel group, whatever the card: 0.4.2 to 0.4.5 (`server_args.py`)."""
    return next(value for least, value in ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (0, 0.88)) if ranks >= least)


def _memory_steps(spec: LaunchSpec, memory: float) -> float:
    """0.4.6: by parallelism up to 80 GiB; above it 0.88, and with a bounded reserve above 96 GiB."""
    ranks = spec.tp * spec.pp
    fraction = 0.88
    if memory <= 81920:
        fraction = next(
            value for least, value in ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (0, 0.88)) if ranks >= least
        )
    if memory > 98304:
        fraction = min(fraction + 49152 * (1 - fraction) / memory, (memory - 18432) / memory)
    return fraction * 0.9 if spec.shape.vision_size else fraction


def _reserve_by_class(spec: LaunchSpec, memory: float) -> float:
    """0.4.8 to 0.5.1: a reserve by memory class and ranks, in MiB."""
    ranks = spec.tp * spec.pp
    if memory < 35 * 1024:
        reserve = (2.8 + ranks / 10) * 1024
    elif memory < 90 * 1024:
        reserve = (9.5 + ranks / 2) * 1024
    elif memory < 160 * 1024:
        reserve = (12 + ranks / 2) * 1024
    else:
        reserve = 32.0 * 1024
    return reserve + (2048 if spec.speculative else 0) + (4096 if spec.dp_attention else 0)


def class_defaults(spec: LaunchSpec, version: Version, memory: float) -> tuple[int, int]:
    """Chunked prefill size and largest decode graph batch of the memory class."""
    for limit, chunk, small, large in CLASSES:
        if memory < limit:
            if limit == 35840 and version >= (0, 5, 20):
                chunk, small, large = 4096, 48, 160
            elif limit == 35840 and version < (0, 5, 6):
                small = 16
            batch = large if spec.tp >= 4 else small
            if version >= (0, 5, 22) and spec.max_running_requests:
                batch = min(batch, spec.max_running_requests)
            return chunk, spec.cuda_graph_max_bs or batch
    return 4096, 160


def _reserve(spec: LaunchSpec, version: Version, memory: float) -> float:
    chunk, batch = class_defaults(spec, version, memory)
    chunk = spec.chunked_prefill_size if spec.chunked_prefill_size is not None else chunk
    activations = max(chunk if chunk > 0 else (spec.max_prefill_tokens or 16384), 2048)
    late = version >= (0, 5, 19)
    if late and spec.role == "decode":
        activations = max((spec.max_running_requests or batch or 1) * 4, 2048)
    reserve = 512 + 1.5 * activations + 1024 * spec.tp * spec.pp / 8
    decode_graph = not (late and spec.role == "prefill")
    if decode_graph:
        reserve += 2 * batch
        if spec.dp_attention:
            reserve += 3 * batch * spec.dp + (1.5 * batch * spec.dp if batch > 300 else 0)
    mla = spec.shape.kv_lora_rank > 0
    if version >= (0, 5, 11) and not (late and spec.role == "decode"):
        reserve += 1536 if mla else 8 * 36  # prefill graphs, about 36 sizes by default
    if memory > 61440:
        reserve = max(reserve, 10240)
    if spec.speculative and version < (0, 5, 14):
        base = 2048 if version < (0, 5, 11) else 4096
        reserve += 6144 if spec.speculative == "STANDALONE" else 0 if spec.speculative == "NGRAM" else base
    if spec.deepep and late and decode_graph:
        reserve += 2048
    return reserve
