"""What PyTorch's allocator keeps around the matrices of a model: memory comes from the device in segments.

Source: `c10/core/AllocatorConfig.h` and `c10/cuda/CUDACachingAllocator.cpp`: tensors of 10 MiB and more get a segment
of their own, rounded up to 2 MiB; those above 1 MiB share segments of 20 MiB; smaller ones share segments of 2 MiB.
"""

from __future__ import annotations

import math

from auditor.capacity.interval import Interval, exact
from auditor.capacity.spec import LaunchSpec

MIB = 2**20
OWN = 10 * MIB  # kMinLargeAlloc: the size from which a tensor has a segment of its own
ROUND = 2 * MIB  # kRoundLarge
SHARED = 20 * MIB  # kLargeBuffer
SMALL = MIB  # kSmallSize


def slack(spec: LaunchSpec, width: float) -> Interval:
    """Bytes that segments hold beyond the matrices of the dense layers of a rank, at `width` bytes a parameter; nothing
    where the widths are not known. On Qwen2.5-0.5B, 3B and 7B, Qwen3-4B, 14B and 32B the logged weights are the tensors
    and this within 0.1 GiB."""
    shape = spec.shape
    if not shape.hidden or not shape.dense_width:
        return exact(0.0)
    ranks = spec.attention_ranks
    heads = shape.heads / ranks * shape.head_dim
    keys = 2 * max(1.0, shape.kv_heads / ranks) * shape.head_dim
    matrices = (
        shape.hidden * (heads + keys),  # queries, keys and values are one
        shape.hidden * heads,
        2 * shape.hidden * shape.dense_width / spec.tp,  # gates and ups are one
        shape.hidden * shape.dense_width / spec.tp,
    )
    total = exact(0.0)
    for elements in matrices:
        total = total + _around(elements * width)
    return total * (shape.layers / spec.pp)


def _around(size: float) -> Interval:
    if size >= OWN:
        return exact(math.ceil(size / ROUND) * ROUND - size)
    if size <= SMALL:
        return exact(0.0)
    most = SHARED / (SHARED // size) - size  # as much as nothing else fills
    return Interval(0.0, most / 2, most)
