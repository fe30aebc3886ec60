"""A checked-in `config.json` of a model: context length, layers, heads, as the file states them."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.model.facts import Fact, ModelConfig
from auditor.model.spans import SourceFile

MAX_CHARS = 2_000_000  # a model's configuration has a few thousand


def read(source: SourceFile) -> Iterator[Fact]:
    """The configuration as one fact. Raises `ReadError` where the file is no JSON."""
    if len(source.text) > MAX_CHARS:
        return
    try:
        values = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise ReadError("not valid JSON", error.pos) from None
    except ValueError:  # Python converts no number of more than some thousand digits
        raise ReadError("a number with too many digits", 0, limit=True) from None
    except RecursionError:
        raise ReadError("nested too deeply for a model configuration", 0, limit=True) from None
    if not isinstance(values, dict):
        return
    inner = values.get("text_config") if isinstance(values.get("text_config"), dict) else values
    if not isinstance(inner, dict) or not isinstance(inner.get("num_hidden_layers", inner.get("n_layer")), int):
        return
    name = values.get("_name_or_path")
    folder = posixpath.dirname(source.path)
    model = name if isinstance(name, str) and name else None
    yield ModelConfig(model, values, folder, source.span(0, len(source.text)))
