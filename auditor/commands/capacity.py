"""`auditor capacity`: the KV pool of one launch, worked out in the open."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from auditor.capacity.accelerators import Gpu, find_gpu, gpus
from auditor.capacity.catalog import find_model, models
from auditor.capacity.launch import QUANTIZATIONS
from auditor.capacity.pool import PoolEstimate, estimate_pool, longest_admitted, verdict
from auditor.capacity.remedies import remedies
from auditor.capacity.shapes import ModelShape, shape_of
from auditor.capacity.spec import LaunchSpec, version_of
from auditor.commands.common import add_output, document_stream
from auditor.errors import UsageError
from auditor.nearest import nearest_name

GIB = 2**30
INTEGERS = {
    "tp": ("--tp-size", "--tensor-parallel-size", "--tp"),
    "pp": ("--pp-size", "--pipeline-parallel-size"),
    "dp": ("--dp-size", "--data-parallel-size", "--dp"),
    "ep": ("--ep-size", "--expert-parallel-size", "--ep"),
    "nodes": ("--nodes", "--nnodes"),
    "context": ("--context-length",),
    "max_total_tokens": ("--max-total-tokens",),
    "chunked_prefill_size": ("--chunked-prefill-size",),
    "max_prefill_tokens": ("--max-prefill-tokens",),
    "max_running_requests": ("--max-running-requests",),
    "cuda_graph_max_bs": ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"),
    "page_size": ("--page-size",),
    "dcp": ("--dcp-size", "--decode-context-parallel-size"),
    "gpu_experts": ("--kt-num-gpu-experts",),
    "draft_tokens": ("--speculative-num-draft-tokens",),
    "mamba_slots": ("--max-mamba-cache-size",),
}
FLOATS = {
    "fraction": ("--mem-fraction-static",),
    "swa_full_tokens_ratio": ("--swa-full-tokens-ratio",),
    "mamba_full_memory_ratio": ("--mamba-full-memory-ratio",),
    "cpu_offload_gb": ("--cpu-offload-gb",),
}
TEXTS = {
    "kv_dtype": ("--kv-cache-dtype",),
    "quantization": ("--quantization",),
    "role": ("--disaggregation-mode",),
    "speculative": ("--speculative-algorithm",),
    "attention_backend": ("--attention-backend",),
    "mamba_dtype": ("--mamba-ssm-dtype",),
    "table_backend": ("--ple-offload-backend",),
}
# Words that the option took in one of the releases from 0.4.6 to 0.5.23 (`server_args.py`, `arg_groups/choices.py`).
QUANTIZATION_WORDS = (
    "auto-round", "auto-round-int8", "awq", "awq_marlin", "bitsandbytes", "blockwise_int8", "compressed-tensors", "fp8",
    "gguf", "gptq", "gptq_marlin", "humming", "marlin", "mlx_q4", "mlx_q8", "modelopt", "modelopt_fp4", "modelopt_fp8",
    "modelopt_mixed", "modelslim", "moe_wna16", "mxfp4", "mxfp8", "mxfp_w4a8", "nvfp4_online", "petit_nvfp4", "qoq",
    "quark", "quark_int4fp8_moe", "quark_mxfp4", "unquant", "w4afp8", "w8a8_fp8", "w8a8_int8",
)  # fmt: skip
SPECULATIVE_WORDS = (
    "DFLASH", "DSPARK", "EAGLE", "EAGLE3", "FROZEN_KV_MTP", "MTP", "NEXTN", "NGRAM", "NONE", "STANDALONE", "UNO",
)  # fmt: skip
WORDS = {
    "kv_dtype": ("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "mxfp8", "nvfp4", "fp4_mx_block16"),
    "role": ("null", "prefill", "decode"),
    "quantization": QUANTIZATION_WORDS,
    "speculative": SPECULATIVE_WORDS,
    "table_backend": ("pinned", "file"),
    "mamba_dtype": ("float32", "bfloat16", "float16"),
}
SWITCHES = {
    "dp_attention": ("--enable-dp-attention",),
    "disable_radix_cache": ("--disable-radix-cache",),
    "disable_hybrid_swa_memory": ("--disable-hybrid-swa-memory",),
    "hierarchical_cache": ("--enable-hierarchical-cache", "--enable-hicache"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The engine's own options, and what it reads from the machine."""
    from auditor.launch.flags import human_int

    parser.add_argument(
        "--model", "--model-path", required=True, help="a catalogue id, a config.json, or a model folder"
    )
    parser.add_argument("--gpu", help="an accelerator by catalogue name or alias; without it one row for each")
    parser.add_argument("--gpu-memory-gib", type=float, help="memory of one accelerator as the driver reports it")
    parser.add_argument("--engine-version", help="SGLang version; the heuristics differ")
    for name, spellings in INTEGERS.items():
        parser.add_argument(*spellings, dest=name, type=_integer(human_int), metavar="N")
    for name, spellings in FLOATS.items():
        parser.add_argument(*spellings, dest=name, type=float, metavar="X")
    for name, spellings in TEXTS.items():
        parser.add_argument(*spellings, dest=name, metavar="WORD")
    for name, spellings in SWITCHES.items():
        parser.add_argument(*spellings, dest=name, action="store_true")
    parser.add_argument(
        "--ple-offload-embedding", action=argparse.BooleanOptionalAction, help="n-gram table on the host"
    )
    parser.add_argument("--speculative-draft-model-path", "--speculative-draft-model", dest="draft", metavar="MODEL")
    parser.add_argument("--headroom", type=float, default=1.25, help="context windows that the pool has to hold")
    add_output(parser, ("terminal", "json"))


def _integer(human: Any) -> Any:
    def convert(text: str) -> int:
        value = human(text)
        if value is None:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number of tokens or ranks")
        return int(value)

    return convert


def run(options: argparse.Namespace) -> int:
    """Print the estimate; an unknown model or accelerator is the answer `unknown`, not an error."""
    _refuse(options)
    shape, model, notes = _shape(options.model)
    rows: list[dict[str, Any]] = []
    if options.gpu is not None or options.gpu_memory_gib is not None:
        rows.append(_row(options, shape, model, notes, find_gpu(options.gpu) if options.gpu else None))
    else:
        rows.extend(_row(options, shape, model, notes, gpu) for gpu in gpus().values())
    with document_stream(options.output) as stream:
        if options.format == "json":
            single = options.gpu is not None or options.gpu_memory_gib is not None
            document: dict[str, Any] = {"schema_version": 1, **(rows[0] if single else _over_all(model, rows))}
            json.dump(document, stream, indent=2)
            stream.write("\n")
        else:
            from auditor.report.capacity import write_capacity

            write_capacity(rows, stream)
    return 0


def _refuse(options: argparse.Namespace) -> None:
    """What the engine's own parser would not take, named before anything is worked out."""
    for name, spellings in INTEGERS.items():
        value = getattr(options, name)
        least = 0 if name == "gpu_experts" else 1
        if value is not None and value < least and name not in ("chunked_prefill_size", "max_prefill_tokens"):
            raise UsageError(f"{spellings[0]} {value}: has to be at least {least}")
    for name in ("fraction", "swa_full_tokens_ratio"):
        value = getattr(options, name)
        if value is not None and not 0 < value <= 1:
            raise UsageError(f"{FLOATS[name][0]} {value:g}: has to be a share between 0 and 1")
    for name, known in WORDS.items():
        value = getattr(options, name)
        if value is not None and value not in known and not (name == "speculative" and value.upper() in known):
            near = nearest_name(value, known)
            hint = f"; did you mean `{near}`?" if near else ""
            raise UsageError(f"{TEXTS[name][0]} {value}: one of {', '.join(known)}{hint}")
    if options.engine_version is not None and version_of(options.engine_version) is None:
        raise UsageError(_no_release(options.engine_version))
    if options.gpu_memory_gib is not None and options.gpu_memory_gib <= 0:
        raise UsageError(f"--gpu-memory-gib {options.gpu_memory_gib:g}: has to be above 0")


def _no_release(text: str) -> str:
    from auditor.launch.versions import releases

    catalogue = releases("sglang")
    known = catalogue.versions if catalogue is not None else ()
    near = nearest_name(text, known)
    hint = f"did you mean `{near}`?" if near else f"write it as `{known[-1]}`"
    return f"--engine-version {text}: no release number of the engine; {hint}"


def _over_all(model: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All rows, and what holds on each accelerator on which the launch can start: a verdict only where all agree."""
    running = [
        row
        for row in rows
        if row["pool_tokens"] and row["pool_tokens"]["high"] > 0 and "all_weights_bytes_per_gpu" not in row["breakdown"]
    ]
    words = {row["verdict"] for row in running}
    fits = {"covers", "low-headroom"}
    document: dict[str, Any] = {"model": model, "gpu": None, "verdict": "unknown", "pool_tokens": None}
    document["missing"] = ["the accelerator: give --gpu, or --gpu-memory-gib"]
    if len(words) == 1 or (words and words <= fits):
        document["verdict"] = words.pop() if len(words) == 1 else "low-headroom"
        pools = [row["pool_tokens"] for row in running]
        document["pool_tokens"] = {
            "low": min(pool["low"] for pool in pools),
            "expected": sorted(pool["expected"] for pool in pools)[len(pools) // 2],
            "high": max(pool["high"] for pool in pools),
        }
    return {**document, "gpus": rows}


def _shape(name: str) -> tuple[ModelShape | None, str, list[str]]:
    """The model's shape: from a configuration file of the tree, or from the catalogue."""
    path = Path(name)
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file() and (path.is_dir() or file.suffix == ".json") and find_model(name) is None:
        raise UsageError(f"there is no `{file}`; --model takes a catalogue id, a config.json or a model folder")
    if name.startswith(("/", "./", "../", "~")) and not path.exists():
        raise UsageError(f"`{name}` does not exist; --model takes a catalogue id, a config.json or a model folder")
    if file.suffix == ".json" and file.is_file():
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"`{file}` is not valid JSON: {error}") from None
        except OSError as error:
            raise UsageError(f"`{file}` cannot be read: {error.strerror}") from None
        index = file.parent / "model.safetensors.index.json"
        if isinstance(config, dict) and index.is_file():
            total = _total_size(index)
            if total is not None:
                config = {**config, "checkpoint_gib": total / GIB}
        if not isinstance(config, dict):
            raise UsageError(f"`{file}` is no model configuration: it holds no JSON object")
        shape = shape_of(config)
        if shape is None:
            raise UsageError(f"`{file}` is no model configuration that the estimate can use: {_lacking(config)}")
        return shape, str(file), []
    found = find_model(name)
    return (found.shape, name, [found.note] if found.note else []) if found else (None, name, [])


def _total_size(index: Path) -> float | None:
    """The size of the weights that their index states, in bytes. An index that says none is as good as no index."""
    try:
        metadata = json.loads(index.read_text(encoding="utf-8"))["metadata"]
        total = metadata["total_size"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(total) if isinstance(total, (int, float)) else None


def _lacking(config: dict[str, Any]) -> str:
    """What keeps a configuration from being a shape, in words."""
    from auditor.capacity.checkpoint import text_config
    from auditor.capacity.config_keys import slip

    slips = [f"`{key}` (did you mean `{near}`?)" for key in text_config(config) if (near := slip(key)) is not None]
    if slips:
        return f"unknown {', '.join(slips)}"
    layers, heads = "`num_hidden_layers`", "`num_attention_heads`"
    lacking = [name for name in (layers, heads) if not isinstance(text_config(config).get(name.strip("`")), int)]
    return f"it has no {' and no '.join(lacking) or f'{layers} or {heads} above 0'}"


def spec_of(options: argparse.Namespace, shape: ModelShape, gpu: Gpu | None) -> LaunchSpec | None:
    """The launch to estimate; `None` when the accelerator's memory is not known."""
    memory = options.gpu_memory_gib * GIB if options.gpu_memory_gib else gpu.memory if gpu else None
    if memory is None:
        return None
    given = {name: getattr(options, name) for name in (*INTEGERS, *FLOATS, *TEXTS, *SWITCHES)}
    given["quantization"] = QUANTIZATIONS.get(given["quantization"] or "", given["quantization"]) or None
    if given["quantization"] and shape.quantization in ("nvfp4", "mxfp4", "int4", "w4afp8"):
        given["quantization"] = None  # the checkpoint is quantized already; the flag only names the kernel
    for name, default in (("tp", 1), ("pp", 1), ("dp", 1), ("dcp", 1), ("cpu_offload_gb", 0.0)):
        given[name] = given[name] if given[name] is not None else default
    backend = given.pop("table_backend")
    offloaded = options.ple_offload_embedding
    given["table"] = (
        "accelerator" if offloaded is False else "disk" if backend == "file" else "host" if offloaded else None
    )
    draft = find_model(options.draft) if options.draft else None
    return LaunchSpec(
        shape=shape,
        draft=draft.shape if draft else None,
        memory=memory,
        vendor=gpu.vendor if gpu else "nvidia",
        capability=gpu.capability if gpu else None,
        unified=gpu.unified if gpu else False,
        smallest=gpu.smallest if gpu and not options.gpu_memory_gib else None,
        held=gpu.held if gpu else (0.0, 0.0, 0.0),
        version=version_of(options.engine_version),
        options_open=True,
        **given,
    )


def _meant(word: str, known: Iterable[str]) -> str:
    near = nearest_name(word, known)
    return f"; did you mean `{near}`?" if near else ""


def _row(
    options: argparse.Namespace, shape: ModelShape | None, model: str, notes: list[str], gpu: Gpu | None
) -> dict[str, Any]:
    name = gpu.name if gpu else options.gpu
    missing = []
    if shape is None:
        missing.append(
            f"the architecture of `{model}`: not in the catalogue; give a config.json or a model folder"
            + _meant(model, models())
        )
    spec = spec_of(options, shape, gpu) if shape is not None else None
    if options.gpu and gpu is None and not options.gpu_memory_gib:
        missing.append(
            f"the memory of `{options.gpu}`: not in the catalogue; give --gpu-memory-gib{_meant(options.gpu, gpus())}"
        )
    if shape is not None and not shape.priced:
        missing.append("the KV bytes per token of this compressed attention: no public figure")
        spec = None
    context = options.context or (shape.context_at(version_of(options.engine_version)) if shape else None)
    row: dict[str, Any] = {
        "model": model,
        "gpu": name,
        "pool_tokens": None,
        "context_tokens": context,
        "context_source": "flag" if options.context else "model" if context else None,
        "longest_admitted_tokens": None,
        "verdict": "unknown",
        "missing": missing,
        "breakdown": None,
        "assumptions": list(notes),
    }
    if spec is None:
        return row
    estimate = estimate_pool(spec)
    row.update(
        pool_tokens=_tokens(estimate),
        longest_admitted_tokens=longest_admitted(estimate.tokens.expected, context),
        verdict=verdict(estimate.tokens, context, options.headroom),
        breakdown=_breakdown(spec, estimate),
        assumptions=[*notes, *estimate.assumptions],
    )
    if estimate.refused is not None:  # how much such a launch would hold answers nothing
        row.update(verdict="unknown", refused=estimate.refused)
        row["missing"].append(f"a launch that starts: {estimate.refused}")
    single = options.gpu is not None or options.gpu_memory_gib is not None
    if single and context is not None and estimate.refused is None:
        row["remedies"] = [
            {"change": one.change, "works": one.works, "verdict": one.verdict, "pool_tokens": _tokens(one.pool)}
            for one in remedies(spec, context, options.headroom, gpus().values())
        ]
    if options.draft and spec.draft is None:
        row["assumptions"].append(f"the draft model `{options.draft}` is not in the catalogue: counted as one layer")
    if options.gpu and gpu is None:
        row["assumptions"].append(
            f"`{options.gpu}` is not in the catalogue: taken for a CUDA device of the given memory"
        )
    if context is None:
        row["missing"].append("the context length: neither a flag nor the model's configuration gives it")
    return row


def _tokens(estimate: PoolEstimate) -> dict[str, int]:
    return {key: int(getattr(estimate.tokens, key)) for key in ("low", "expected", "high")}


def _breakdown(spec: LaunchSpec, estimate: PoolEstimate) -> dict[str, Any]:
    def ends(value: Any) -> dict[str, int]:
        return {key: int(getattr(value, key)) for key in ("low", "expected", "high")}

    return {
        "gpu_memory_bytes": int(spec.memory),
        "free_before_load_bytes": ends(estimate.free),
        "mem_fraction_static": round(estimate.fraction.expected, 4),
        "mem_fraction_static_interval": {
            key: round(getattr(estimate.fraction, key), 4) for key in ("low", "expected", "high")
        },
        "mem_fraction_source": estimate.fraction_source,
        "weights_bytes_per_gpu": int(estimate.weights.expected),
        "weights_bytes_per_gpu_interval": ends(estimate.weights),
        "kv_bytes_per_token_per_gpu": int(estimate.cell.expected),
        "kv_bytes_per_token_per_gpu_interval": ends(estimate.cell),
        "kv_pool_bytes_per_gpu": int(estimate.budget.expected),
        "kv_pool_bytes_per_gpu_interval": ends(estimate.budget),
        **({"all_weights_bytes_per_gpu": ends(estimate.hosted)} if estimate.hosted is not None else {}),
    }
