"""What a document says of the model beside the launch: where its files lie, and how its weights are quantized."""

from __future__ import annotations

from auditor.model.facts import Flag, Value
from auditor.model.records import dataclass
from auditor.syntax.expansion import word_of
from auditor.syntax.shell_lexer import Dialect
from auditor.syntax.yaml_nodes import MapNode, ScalarNode


@dataclass(frozen=True, slots=True)
class ModelWords:
    """`path` is the model's id or folder as written, without the `hf:` of srt-slurm; `precision` the word for its
    weights (`fp8`, `fp4`, `bf16`) with its place. `None` where nothing is said."""

    path: Value | None = None
    precision: Flag | None = None


def model_words(node: MapNode, dialect: Dialect) -> ModelWords:
    """What a mapping says of the model of everything below it: `model: {path, container, precision}` of srt-slurm (its
    `container` is mounted over whatever the options name), `supportedModelFormats:` of an OME runtime."""
    model = node.map("model")
    if model is not None and (model.get("container") is not None or model.get("precision") is not None):
        return ModelWords(_path(model, dialect), _word(model, "precision", dialect))
    formats = node.list("supportedModelFormats")
    words = [_word(one, "quantization", dialect) for one in formats if isinstance(one, MapNode)]
    found = {str(word.value) if word is not None else "" for word in words}
    return ModelWords(precision=words[0] if len(found) == 1 else None)


def _path(model: MapNode, dialect: Dialect) -> Value | None:
    path = model.get("path")
    if not isinstance(path, ScalarNode) or path.is_null or not path.value.strip():
        return None
    value = word_of(path, dialect).value if "$" in path.value else path.value.strip()
    return value.removeprefix("hf:") if isinstance(value, str) else value


def _word(node: MapNode, key: str, dialect: Dialect) -> Flag | None:
    stated = node.get(key)
    if not isinstance(stated, ScalarNode) or stated.is_null or not stated.value.strip():
        return None
    value = word_of(stated, dialect).value if "$" in stated.value or "{{" in stated.value else stated.value.strip()
    return Flag(key, value, stated.span, key)
