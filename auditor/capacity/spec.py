"""What the estimate is asked about: one launch, with everything unknown left as `None`."""

from __future__ import annotations

from auditor.capacity.shapes import ModelShape
from auditor.model.records import dataclass

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """`memory` is one accelerator's memory in bytes as the driver reports it, `smallest` the least that its name is
    sold with, `held` what a display or a hypervisor holds of it at least, usually and at most; sizes are the engine's
    global ones; `version` the engine's as numbers (`(0, 5, 19)`), `None` when it is not known; `kv_dtype` as the flag
    takes it; `draft` a draft model of its own; `gpu_experts` how many experts of a layer stay on the accelerators
    where the host computes the others; `table` where n-gram tables are (`accelerator`, `host`, `disk`); `mamba_slots`
    the states that the engine is told to keep over all replicas, `mamba_dtype` their type; `options_open` says that an
    option which is not here may be set all the same."""

    shape: ModelShape
    memory: float
    vendor: str = "nvidia"
    capability: float | None = None
    unified: bool = False
    smallest: float | None = None
    held: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int | None = None
    nodes: int | None = None
    dp_attention: bool = False
    fraction: float | None = None
    kv_dtype: str | None = None
    quantization: str | None = None
    context: int | None = None
    max_total_tokens: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int | None = None
    max_running_requests: int | None = None
    cuda_graph_max_bs: int | None = None
    page_size: int | None = None
    role: str | None = None
    speculative: str | None = None
    draft_tokens: int | None = None
    draft: ModelShape | None = None
    swa_full_tokens_ratio: float | None = None
    mamba_full_memory_ratio: float | None = None
    mamba_slots: int | None = None
    mamba_dtype: str | None = None
    cpu_offload_gb: float = 0.0
    gpu_experts: int | None = None
    table: str | None = None
    dcp: int = 1
    disable_radix_cache: bool = False
    disable_hybrid_swa_memory: bool = False
    hierarchical_cache: bool = False
    deepep: bool = False
    attention_backend: str | None = None
    version: Version | None = None
    options_open: bool = False

    @property
    def attention_ranks(self) -> int:
        """Tensor-parallel size of the attention: under data-parallel attention each of its ranks holds a part."""
        return max(1, self.tp // self.dp) if self.dp_attention and self.dp > 1 else self.tp

    @property
    def gpus(self) -> int:
        """Accelerators of one replica."""
        return self.tp * self.pp


def version_of(text: str | None) -> Version | None:
    """The release numbers of a version text; `None` when there are none."""
    if not text:
        return None
    numbers = []
    for part in text.lstrip("v").split("."):
        digits = ""
        for char in part:
            if not char.isdigit():
                break
            digits += char
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers) or None
