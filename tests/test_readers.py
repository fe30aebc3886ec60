"""Each case of `fixtures/files/<reader>/<case>`: what the reader must see in its files, in `facts.json`.

And for every reader: any text gives facts whose spans lie in the text, or a `ReadError`, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.decode import decode
from auditor.errors import ReadError
from auditor.model.facts import Definition, Fact, PackageReference
from auditor.model.spans import SourceFile
from auditor.readers import READERS, Reader
from auditor.reading import index
from auditor.report.inventory import fact_json, value_json
from tests.trees import ROOT

FILES = ROOT / "fixtures" / "files"
CASES = sorted(path for path in FILES.glob("*/*") if path.is_dir())
BY_NAME = {reader.name: reader for reader in READERS}


def shown(fact: Fact, source: SourceFile) -> dict[str, Any]:
    """A fact as the inventory shows it, with the text under its span; of a definition name, value and place."""
    place = {"at": source.slice(fact.span)}
    if isinstance(fact, Definition):
        kind = {"kind": "definition", "name": fact.name, "value": value_json(fact.value), "domain": fact.domain}
        return {**kind, "scope": fact.scope, "line": fact.span.start.line, "column": fact.span.start.column, **place}
    document = fact_json(fact)
    return {**(document or {"kind": type(fact).__name__, "path": fact.span.path}), **place}


def facts_of(reader: Reader, folder: Path) -> list[dict[str, Any]]:
    """All facts and errors of the case's files, each file read by this one reader."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name == "facts.json":
            continue
        assert reader in index().readers(name), f"`{name}` is no file of the reader `{reader.name}`"
        source, _ = decode(name, path.read_bytes())
        try:
            for fact in reader.load()(source):
                if isinstance(fact, ReadError):
                    found.append(problem(fact, source))
                else:
                    found.append(shown(fact, source))
        except ReadError as error:
            found.append(problem(error, source))
    return found


def problem(error: ReadError, source: SourceFile) -> dict[str, Any]:
    line = source.position(error.offset).line if error.offset is not None else None
    return {"kind": "error", "path": source.path, "reason": error.reason, "line": line}


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_reader_sees_what_the_file_says(case: Path, request: pytest.FixtureRequest) -> None:
    got = facts_of(BY_NAME[case.parent.name], case)
    golden = case / "facts.json"
    if request.config.getoption("--update"):
        golden.write_text(json.dumps({"facts": got}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert {"facts": got} == json.loads(golden.read_text(encoding="utf-8"))


def test_every_reader_has_a_case() -> None:
    assert [reader.name for reader in READERS if not any(case.parent.name == reader.name for case in CASES)] == []


def samples(name: str) -> list[str]:
    """The texts of a reader's cases: what mutations start from."""
    texts = []
    for path in sorted((FILES / name).glob("*/**/*")):
        if path.is_file() and path.name != "facts.json":
            texts.append(decode(path.name, path.read_bytes())[0].text)
    return texts or [""]


@st.composite
def texts(draw: st.DrawFn, name: str) -> str:
    """A text of the format with pieces cut out, doubled, or replaced by odd characters."""
    text = draw(st.sampled_from(samples(name)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        piece = draw(st.one_of(st.just(""), st.just(text[start:end] * 2), st.sampled_from(ODD)))
        text = text[:start] + piece + text[end:]
    return text


ODD = [
    "\n", "\r\n", "\r", "\t", '"', "'", "\\", "{", "}", "[", "]", "${", "$(", "{{", "}}", ":", "=", "==", "#", "- ",
    "&a", "*a", "<<:", "\u00e9", "\U0001f600", "\ue000", "\x00", "sglang", "\ufeff", "---\n", "|", ">", "\u2028",
    "<<EOF", "\\\n",
]  # fmt: skip


def name_for(reader: Reader) -> Iterator[str]:
    for path in sorted((FILES / reader.name).glob("*/**/*")):
        if path.is_file() and path.name != "facts.json":
            yield "/".join(path.relative_to(FILES / reader.name).parts[1:])
    yield "file.txt"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_text_gives_facts_inside_the_text_or_a_read_error(reader: Reader, data: st.DataObject) -> None:
    text = data.draw(texts(reader.name))
    source = SourceFile(next(name_for(reader)), text)
    try:
        facts = list(reader.load()(source))
    except ReadError:
        return
    for fact in facts:
        if isinstance(fact, ReadError):
            continue
        start, end = fact.span.start, fact.span.end
        assert 0 <= start.offset <= end.offset <= len(text)
        assert source.position(start.offset) == start
        assert source.position(end.offset) == end
        assert fact.span.path == source.path
        if isinstance(fact, PackageReference) and isinstance(fact.version, str) and fact.kind != "source":
            assert source.slice(fact.span)
