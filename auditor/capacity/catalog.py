"""The catalogue of models by Hugging Face id, loaded on first use from its data file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor.capacity.checkpoint import text_config
from auditor.capacity.parameters import Parameters
from auditor.capacity.shapes import ModelShape, shape_of
from auditor.model.records import dataclass, replace

_HERE = Path(__file__).resolve().parent

# Words at the end of an id that name another quantization of the same architecture.
_QUANT_WORDS = (
    (re.compile(r"[-_.]?(?:w4afp8)", re.IGNORECASE), "w4afp8"),
    (re.compile(r"[-_.]?(?:nvfp4|(?<!mx)fp4)(?:[-_.]?(?:v\d|mtp|dynamic))*", re.IGNORECASE), "nvfp4"),
    (re.compile(r"[-_.]?(?:w-)?mxfp4(?:-a-fp8|[-_.]v\d)?", re.IGNORECASE), "mxfp4"),
    # before the 4-bit words: `GPTQ-Int8` and `AWQ-8bit` name a method of both widths
    (
        re.compile(
            r"[-_.]?(?:(?:gptq|awq|bnb|autoround)[-_.]?)?(?:int8|w8a8|w8a16|quantized\.w8a(?:8|16)|8-?bit)", re.I
        ),
        "fp8",
    ),
    (
        re.compile(
            r"(?:[-_.]?(?:gptq|awq|bnb|int4|w4a16|quantized\.w4a16|auto-?round|(?<!\d)4-?bit|marlin)"
            r"(?:[-_.]?(?:int4|4bit|w4a16|g\d+))*)+",
            re.IGNORECASE,
        ),
        "int4",
    ),
    (re.compile(r"[-_.]?(?:mx)?fp8(?:[-_.]?(?:dynamic|block|static|kv|pertensor|per-tensor))*", re.IGNORECASE), "fp8"),
    (re.compile(r"[-_.]?bf16", re.IGNORECASE), "bf16"),
)
# Endings of tuned or dated versions that leave the architecture as it is.
_TUNED = re.compile(
    r"[-_.](?:instruct|chat|base|it|thinking|hf|reasoning|fin|preview|exp|terminus|\d{4}|v0(?:\.[\dx]+)?|latest|speciale|"
    r"abliterated|mtp|dynamic|requant)$",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Any]:
    data = json.loads((_HERE / "models.json").read_text(encoding="utf-8"))
    return dict(data["models"])


def models() -> tuple[str, ...]:
    """All ids of the catalogue, sorted."""
    return tuple(sorted(_models()))


@lru_cache(maxsize=1)
def _by_base() -> Mapping[str, str]:
    """Ids by their name without organisation, quantization and tuning words, the plainest id first."""
    found: dict[str, str] = {}
    for key in sorted(_models(), key=lambda key: (bool(_unquantized(key)[1]), len(key), key)):
        for name in (key.rpartition("/")[2].lower(), base_name(key)[0]):
            found.setdefault(name, key)
    for key, entry in _models().items():
        for name in entry.get("aliases", ()):
            found.setdefault(name.lower(), key)
    return found


def _described(model: str) -> tuple[str, str]:
    """A name, and what is said of it behind: `Name (words)`, `Name class, words`."""
    name, _, words = re.sub(r"\s*\(([^)]*)\)", r", \1", model).partition(",")
    return re.sub(r"\s+class$", "", name.strip(), flags=re.IGNORECASE), words.strip()


def _of_family(name: str, words: str) -> str | None:
    """The one id whose name goes on where `name` ends and whose size is the one that the words state."""
    stated = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)\s*b\b", words, re.IGNORECASE)
    if stated is None:
        return None
    size = float(stated.group(1)) * 1e9
    family = [key for key in _models() if key.rpartition("/")[2].lower().startswith(f"{name}-")]
    near = [key for key in family if 0.8 * size <= _shape(_models()[key]).parameters.total <= 1.25 * size]
    return near[0] if len(near) == 1 else None


_SIZED = re.compile(r"[-_.]\d+(?:\.\d+)?b$")


def _with_active(base: str) -> str | None:
    """The one model that is named as this, with its active parameters behind: `gemma-4-26b` is `gemma-4-26B-A4B`."""
    if not _SIZED.search(base):
        return None
    longer = re.compile(re.escape(base) + r"-a\d+(?:\.\d+)?b")
    names = _by_base()
    found = {name: names[name] for name in names if longer.fullmatch(name)}
    return next(iter(found.values())) if len(found) == 1 else None


def _unquantized(model: str) -> tuple[str, str | None]:
    """The name without organisation and quantization words, and the first quantization that it names."""
    name = re.sub(r"\s*\(.*?\)", "", model).rstrip("/").rpartition("/")[2].lower()
    quantization = None
    for pattern, word in _QUANT_WORDS:
        match = pattern.search(name)
        if match:
            quantization = quantization or word
            name = name[: match.start()] + name[match.end() :]
    return name.strip("-_. "), quantization


def base_name(model: str) -> tuple[str, str | None]:
    """The name without organisation, quantization and tuning words, and the quantization that it names."""
    name, quantization = _unquantized(model)
    name = name.removeprefix("meta-").removeprefix("nvidia-")
    while True:
        shorter = _TUNED.sub("", name)
        if shorter == name:
            return name.strip("-_. "), quantization
        name = shorter


_BASE = re.compile(r"[-_.]base$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """A model of the catalogue: its id, its shape, and in `note` how it was read when it is not the id itself."""

    id: str
    shape: ModelShape
    note: str = ""


@lru_cache(maxsize=512)
def find_model(model: str) -> Found | None:
    """The model that an id, a requant of it, or a path ending in its name means; `None` when none does."""
    known = _models()
    if model in known:
        return Found(model, _shape(known[model]))
    whole, words = _described(model)
    plain = whole.rstrip("/").rpartition("/")[2].lower()
    names = _by_base()
    said = quantization_word(words)
    for candidate in (whole, whole.lower(), plain):
        key = candidate if candidate in known else names.get(candidate) or _of_family(candidate, words)
        if key is not None:
            shape = _shape(known[key])
            note = "" if key == model else f"read as {key}"
            return Found(key, _foreign(requantized(shape, said) if said else shape, key, whole), note)
    base, quantization = base_name(whole)
    quantization = quantization or said
    key = names.get(_unquantized(whole)[0]) or names.get(base)  # a tuned version can have another context
    key = key or _with_active(base)
    if key is None:
        return None
    shape = _shape(known[key])
    note = f"read as {key}"
    if quantization is None:
        # a requant of it is all that the catalogue has: what nobody calls quantized is taken for 16 bits
        quantization = "bf16" if _unquantized(key)[1] else shape.quantization
        if quantization != "bf16" and _BASE.search(_unquantized(whole)[0]) and not _BASE.search(key):
            shape, note = _either(shape), f"{note}; whether these weights are quantized as its own is not published"
            quantization = shape.quantization
    return Found(key, _foreign(requantized(shape, quantization), key, whole), note)


def _either(shape: ModelShape) -> ModelShape:
    """A pretrained model of which only the tuned one is catalogued, and that quantized: its experts are of that width
    or of 16 bits; a dense one is taken for 16 bits."""
    if not shape.parameters.experts:
        return requantized(shape, "bf16")
    from auditor.capacity.weights import EXPERT_BYTES

    return replace(shape, expert_bytes=(EXPERT_BYTES.get(shape.quantization, 2.0), 2.0), checkpoint_bytes=None)


def _foreign(shape: ModelShape, key: str, name: str) -> ModelShape:
    """What one publisher's requant leaves in which type says nothing of another's."""
    if key.rpartition("/")[0].lower() == name.rpartition("/")[0].lower() or key.rpartition("/")[2] == name:
        return shape
    return replace(shape, part_bytes=(), kv_scheme=None)


def quantization_word(text: str) -> str | None:
    """The quantization that a text names."""
    return next((word for pattern, word in _QUANT_WORDS if pattern.search(text)), None)


def requantized(shape: ModelShape, quantization: str) -> ModelShape:
    """The same architecture with other weights; a published size no longer holds when the quantization differs."""
    if quantization == shape.quantization:
        return shape
    return replace(shape, quantization=quantization, checkpoint_bytes=None, part_bytes=(), kv_scheme=None)


def _shape(entry: Mapping[str, Any]) -> ModelShape:
    shape = shape_of(entry)
    if shape is None:
        raise ValueError("a catalogue entry without layers or heads")
    total = entry.get("total_params_b")
    counted = shape.parameters.total
    if total and not 0.8 <= counted / (total * 1e9) <= 1.25:
        # no widths to count from, or a layout that the count does not know: one part, spread over the ranks
        moe = shape.parameters.experts > 0 or entry.get("moe")
        shape = replace(shape, parameters=Parameters(experts=total * 1e9) if moe else Parameters(dense=total * 1e9))
    elif not total and not entry.get("vocab_size") and not text_config(entry).get("vocab_size"):
        shape = replace(shape, parameters=Parameters())
    if entry.get("audio_params_b"):
        towers = shape.parameters.vision + entry["audio_params_b"] * 1e9
        shape = replace(shape, parameters=replace(shape.parameters, vision=towers))
    if entry.get("since"):
        shape = replace(shape, since=tuple(int(part) for part in entry["since"].split(".")))
    if entry.get("multimodal") and shape.vision_size is None:
        shape = replace(shape, vision_size=(24, 1024))
    return shape
