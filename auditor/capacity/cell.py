"""Bytes of KV cache that one token takes on one accelerator, by attention family.

Sources: `model_runner.py:profile_max_num_token` up to 0.5.9, `pool_configurator.py` from 0.5.11.
"""

from __future__ import annotations

import math

from auditor.capacity.interval import Interval, exact, hull
from auditor.capacity.spec import LaunchSpec
from auditor.model.records import replace

FP8 = ("fp8_e4m3", "fp8_e5m2", "mxfp8")
FP4 = ("fp4_e2m1", "nvfp4", "fp4_mx_block16")
INDEX_SCALE_BLOCK = 128
DRAFT_LAYERS = ("EAGLE", "EAGLE3", "NEXTN", "MTP", "FROZEN_KV_MTP")  # algorithms whose draft is one layer or a few
SCHEME_FOLLOWED = (0, 5, 4)  # between 0.5.3 and 0.5.6 `auto` began to follow the checkpoint's KV scheme
COMPRESS_WINDOW = 128
INDEX_WITH_PEERS = (0, 5, 22)  # the first release that leaves out index rows beside a peer or a hierarchical cache
WINDOW_POOL = (0, 5, 9)  # the first sampled release that gives sliding-window layers their own pool by default


def element_bytes(spec: LaunchSpec) -> Interval:
    """Bytes of one KV element. `auto` follows the model's type; DSA models take fp8 from compute capability 10 on
    (`arg_groups/overrides.py:_dsa_kv_cache_dtype_default`)."""
    dtype = spec.kv_dtype or "auto"
    if dtype in FP8:
        return exact(1.0)
    if dtype in FP4:
        return exact(0.5625)
    if dtype in ("bf16", "bfloat16", "float16"):
        return exact(2.0)
    if spec.shape.family == "dsa":
        if spec.capability is None:
            return hull(1.0, 2.0, expected=1.5)
        return exact(1.0 if spec.capability >= 10 and spec.vendor == "nvidia" else 2.0)
    quantization = spec.quantization or spec.shape.quantization
    if spec.shape.kv_scheme == "fp8" and quantization == spec.shape.quantization:
        if spec.version is not None and not SCHEME_FOLLOWED <= spec.version < (0, 5, 6):
            return exact(1.0 if spec.version >= (0, 5, 6) else 2.0)
        return hull(1.0, 2.0, expected=1.0)
    if quantization == "nvfp4" and spec.shape.kv_scheme is None:
        return hull(1.0, 2.0, expected=2.0)  # these checkpoints often carry an fp8 KV scheme, which auto follows
    return exact(2.0)


def stage_layers(layers: int, stages: int) -> float:
    """Layers of the fullest pipeline stage."""
    return -(-layers // stages)


def cell_bytes(spec: LaunchSpec) -> Interval:
    """Bytes per token of the pool. A draft model keeps its own rows for each token, one layer like the target's where
    it is not known: priced with the target's from 0.5.14 on, and out of what the target left before."""
    cell = _of_target(spec)
    if spec.draft is not None:
        both = cell + _of_target(replace(spec, shape=spec.draft, draft=None, speculative=None))
    elif spec.speculative and spec.speculative.upper() in DRAFT_LAYERS and spec.shape.full_layers:
        if any(spec.shape.compressed):
            return cell  # counted there
        both = cell * (1 + (spec.shape.draft_layers or 1) / spec.shape.full_layers)
    else:
        return cell
    if spec.version is None:
        return hull(cell, both, expected=both.expected)
    return both if spec.version >= (0, 5, 14) else cell


def _of_target(spec: LaunchSpec) -> Interval:
    """Bytes per token of the full-attention pool; of sliding-window hybrids the cost of one full-pool token with its
    share of the window pool (`swa_full_tokens_ratio`)."""
    shape, element = spec.shape, element_bytes(spec)
    if shape.token_bytes is not None:
        return hull(shape.token_bytes * 0.98, shape.token_bytes * 1.02, expected=shape.token_bytes) * (1 / spec.pp)
    if any(shape.compressed):
        return _compressed(spec)
    layers = stage_layers(shape.full_layers, spec.pp)
    if shape.kv_lora_rank:
        return _latent(spec, element, layers)
    ranks = spec.attention_ranks
    heads = max(1, shape.kv_heads // ranks)
    cell = element * (heads * (shape.head_dim + shape.v_head_dim) * layers)
    if shape.family == "swa" and shape.swa_layers:
        row = max(1, shape.swa_kv_heads // ranks) * (shape.swa_head_dim + shape.swa_v_head_dim)
        windows = stage_layers(shape.swa_layers, spec.pp)
        share = _window_share(spec)
        if _priced_twice(spec) and row != heads * (shape.head_dim + shape.v_head_dim):
            every = cell * ((layers + windows) / layers) + element * (row * windows)
            return every * (share * windows + layers) * (1 / (layers + windows))
        cell = cell + element * (row * windows) * share
    if shape.index_elements and shape.linear_layers:
        cell = cell + 2.0 * shape.index_elements / spec.pp  # keys of blocks, whole on each rank, in 16 bits by default
    elif shape.index_elements:
        # indices of block-sparse attention, in the model's type or in fp8 where its kernels take that; quantized
        # checkpoints have a layout of about a quarter in 0.5.23 (`_compute_cell_size`, `minimax_m3_nvfp4_pool.py`)
        least = 1.0 if element.low < 2 else 2.0
        cell = cell + hull(least, 2.0, expected=2.0) * (shape.index_elements / spec.pp)
        if (spec.quantization or shape.quantization) == "nvfp4" and (spec.version or (0, 5, 23)) >= (0, 5, 20):
            cell = hull(cell * 0.25, cell, expected=cell.expected)
    return cell


def _priced_twice(spec: LaunchSpec) -> bool:
    """Whether rows of window layers of a width of their own come on top of rows of the common width in every layer, the
    tokens being split as if all layers cost the same: so up to 0.5.8 (sglang#18039 mended both)."""
    return spec.version is not None and spec.version < WINDOW_POOL


def _window_share(spec: LaunchSpec) -> Interval:
    """Window tokens paid for with one token of the full pool: up to 0.5.3 every layer kept the whole context unless a
    flag said otherwise (`model_config.py:is_hybrid_model`)."""
    if spec.disable_hybrid_swa_memory:
        return exact(1.0)
    apart = 0.8 if spec.swa_full_tokens_ratio is None else spec.swa_full_tokens_ratio
    since = spec.shape.since
    if spec.version is None:
        return exact(apart) if since is not None and since >= WINDOW_POOL else hull(apart, 1.0, expected=apart)
    if spec.version >= WINDOW_POOL:
        return exact(apart)
    return exact(1.0) if spec.version < (0, 5, 4) else hull(apart, 1.0, expected=apart)


def _compressed(spec: LaunchSpec) -> Interval:
    """Bytes per token of compressed attention (`DSV4PoolConfigurator._get_bytes_per_full_token`): rows for 4 and 128
    tokens with an index row for 4, and a tenth of the tokens in the window pool with the state of the compressors. Up
    to 0.5.14 the state of the wide ones was priced by token too, which gives the 15,956 bytes that start-ups of that
    time log; from 0.5.19 on it is not. Pages are padded by less than a hundredth."""
    shape = spec.shape
    narrow, wide = shape.compressed
    row = shape.head_dim - shape.rope_dim + 2 * shape.rope_dim + 8  # fp8 latent, 16-bit rope part, scales
    rows = hull(row, 2 * shape.head_dim, expected=row) if spec.vendor != "nvidia" else exact(row)
    share = 0.1 if spec.swa_full_tokens_ratio is None else spec.swa_full_tokens_ratio
    rings = 2 if spec.speculative else 1
    state = 16 * (shape.head_dim + shape.index_dim) * rings * 8 / COMPRESS_WINDOW
    index = shape.index_dim + shape.index_dim / INDEX_SCALE_BLOCK * 4
    late = rows * (narrow / 4 + wide / 128 + share * shape.layers) + (index / 4 + share * state) * narrow
    early = late + share * 8 * shape.head_dim * rings * 128 / COMPRESS_WINDOW * wide
    version = spec.version
    if version is None or (0, 5, 14) < version < (0, 5, 19):
        cell = hull(late, early, expected=early.expected)
    else:
        cell = late if version >= (0, 5, 19) else early
    if version is not None and version >= (0, 5, 20) and spec.max_running_requests and not spec.swa_full_tokens_ratio:
        # the window pool is then sized by the requests, and the tokens pay for the rest alone
        bare = rows * (narrow / 4 + wide / 128) + index / 4 * narrow
        cell = hull(bare, cell, expected=cell.expected)
    if spec.speculative:
        cell = cell * ((shape.layers + 1) / shape.layers)
    return cell * Interval(1.0, 1.004, 1.01) * _stage(spec)


STAGED = (0, 5, 13)  # the first release whose configurator takes the layers of its own pipeline stage


def _stage(spec: LaunchSpec) -> Interval:
    """The share of the layers that a token is priced with on each pipeline stage. The stage with the most of them
    decides, because all stages keep as many tokens as the smallest pool; before 0.5.13 every stage paid for the layers
    of all (`DSV4PoolConfigurator.__init__`, `cfg.compress_ratios` whole), and left the rest of its share unused."""
    if spec.pp == 1:
        return exact(1.0)
    fullest = -(-spec.shape.layers // spec.pp) / spec.shape.layers
    own = hull(1 / spec.pp, fullest, expected=fullest)
    if spec.version is None:
        return hull(own, 1.0, expected=fullest)
    return exact(1.0) if spec.version < STAGED else own


def _pooled_index(spec: LaunchSpec) -> Interval:
    """Bytes a token of the index of a hybrid's sparse layers: one row for a pool of tokens is priced so from 0.5.22 on
    (`pool_configurator.py:_compute_dsa_indexer_cell_size`), before that one row a token."""
    shape = spec.shape
    if not shape.index_dim:
        return exact(0.0)
    row = shape.index_dim + shape.index_dim / INDEX_SCALE_BLOCK * 4
    pooled = math.ceil(row / shape.index_pool)
    if spec.version is None:
        return hull(pooled, row, expected=pooled)
    return exact(pooled if spec.version >= (0, 5, 22) else row)


def _latent(spec: LaunchSpec, element: Interval, layers: float) -> Interval:
    shape = spec.shape
    row = shape.kv_lora_rank + shape.rope_dim
    if shape.family != "dsa":
        return element * (row * layers) + _pooled_index(spec) * layers
    index = shape.index_dim + shape.index_dim / INDEX_SCALE_BLOCK * 4
    plain = exact(row * 1.0) * element
    stored = shape.kv_lora_rank + shape.kv_lora_rank / 128 * 4 + shape.rope_dim * 2
    raw = spec.vendor != "nvidia" or (spec.capability is not None and spec.capability >= 10)
    kept = plain if element.high != 1.0 or raw else exact(stored)
    every, owners = index * layers, index * shape.index_layers * layers / shape.layers
    if spec.version is not None and spec.version < INDEX_WITH_PEERS and (spec.role or spec.hierarchical_cache):
        owners = every
    # What prices the pool, by release: the plain row without and with an index row a layer, the row as it is stored,
    # and index rows only where a layer owns an index (`pool_configurator.py` of 0.5.16, 0.5.17 and 0.5.18); a prefill
    # or decode role and a hierarchical cache kept a row a layer until 0.5.22 (`_should_elide_dsa_index_k`).
    bare, early, middle, late = plain * layers, plain * layers + every, kept * layers + every, kept * layers + owners
    version = spec.version
    if version is None:
        without_index = [bare] if shape.since is not None and shape.since < (0, 5, 6) else []
        return hull(*without_index, early, middle, late, expected=middle.expected)
    if version < (0, 5, 6):
        return bare
    if version < (0, 5, 17):
        return early
    return middle if version < (0, 5, 18) else late
