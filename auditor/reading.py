"""One file to facts and problems: bytes, needles, text, readers. Runs in this process, or in workers on big trees."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache

from auditor.decode import decode, is_binary, utf8_of
from auditor.errors import ReadError
from auditor.limits import MAX_CODE_BYTES, MAX_FILE_BYTES
from auditor.model.facts import CodeModule, Fact, PackageReference
from auditor.model.findings import Problem
from auditor.model.records import dataclass, field
from auditor.model.spans import Position, SourceFile, Span
from auditor.own_documents import is_report
from auditor.readers import READERS, Reader
from auditor.suppress import MARKER, Ignore, ignores_of
from auditor.walk import LANGUAGES, Candidate, NameIndex

PARALLEL_FROM = 400  # candidates; below it starting worker processes costs more than they save
_MARKED = MARKER.rstrip(b":")  # also a needle of a reader, so that one search serves both


@dataclass(frozen=True, slots=True)
class Plan:
    """What is looked for: `names` of packages that rules watch, `needles` in lower case for the readers that have none
    of their own, `code_needles` by language."""

    names: frozenset[str]
    needles: tuple[bytes, ...]
    code_needles: tuple[tuple[str, tuple[bytes, ...]], ...] = ()


@dataclass(slots=True)
class FileResult:
    """What one file gave. `source` is there when the file was decoded in this process."""

    path: str
    facts: list[Fact] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    ignores: list[Ignore] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    source: SourceFile | None = None
    read: bool = False

    @property
    def told(self) -> bool:
        """Whether there is anything in it."""
        return self.read or bool(self.problems)


def _bytes(path: str) -> bytes:
    """The bytes of a file; of one that is larger than an audit reads, one byte more than that. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        about = os.fstat(handle)
        if (
            stat.S_ISREG(about.st_mode) and about.st_size
        ):  # a buffer of the right size; Python's own would be MAX_FILE_BYTES for each
            return os.read(handle, min(about.st_size, MAX_FILE_BYTES) + 1)
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(handle)


@lru_cache(maxsize=256)
def _searched(readers: tuple[Reader, ...], needles: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Each byte string that decides over one of the readers, once."""
    own = (needle for reader in readers for needle in reader.needles or ())
    return tuple(dict.fromkeys((*needles, _MARKED, *own)))


def read_file(candidate: Candidate, plan: Plan, index: NameIndex) -> FileResult:
    """Everything that one file says. Never raises: what goes wrong becomes a problem of the file."""
    result = FileResult(candidate.path)
    readers = index.readers(candidate.path)
    dot = candidate.path.rfind(".")
    language = LANGUAGES.get(candidate.path[dot:].lower(), "") if dot > candidate.path.rfind("/") else ""
    try:
        data = _bytes(candidate.full)
    except OSError as error:
        result.problems.append(Problem(candidate.path, f"cannot be read: {error.strerror or error}", "unread"))
        return result
    plain = utf8_of(data)
    low = plain.lower()
    found = {needle for needle in _searched(readers, plan.needles) if needle in low}
    evidence = not found.isdisjoint(plan.needles)
    if len(data) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // (1024 * 1024)
        if readers and not is_report(data):
            result.problems.append(Problem(candidate.path, f"larger than {limit} MiB", "limit", evidence=evidence))
        return result
    wanted = [
        reader
        for reader in readers
        if (evidence if reader.needles is None else not reader.needles or not found.isdisjoint(reader.needles))
    ]
    code_needles = dict(plan.code_needles).get(language, ())
    code = bool(code_needles) and any(needle in plain for needle in code_needles)
    if candidate.explicit and not readers and not language and evidence and not is_report(data):
        result.problems.append(Problem(candidate.path, "no reader knows this kind of file", "unread", evidence=True))
    marked = _MARKED in found and MARKER in low and (bool(readers) or bool(language))
    if (not wanted and not code and not marked) or is_report(data):
        return result
    if is_binary(data):
        if wanted:
            result.problems.append(Problem(candidate.path, "not text: it holds NUL bytes", "unread", evidence=evidence))
        return result
    source, remark = decode(candidate.path, data)
    result.source, result.read = source, True
    if remark and wanted:
        result.problems.append(Problem(candidate.path, remark, "unread"))
    if marked:
        result.ignores.extend(ignores_of(source))
    if code:
        if len(data) > MAX_CODE_BYTES:
            reason = f"source of more than {MAX_CODE_BYTES // (1024 * 1024)} MiB: the code rules did not look at it"
            result.problems.append(Problem(candidate.path, reason, "limit"))
        else:
            result.modules.append(language)
    for reader in wanted:
        _run(reader, source, plan, evidence, result)
    return result


def _run(reader: Reader, source: SourceFile, plan: Plan, evidence: bool, result: FileResult) -> None:
    try:
        for fact in _stream(reader, source):
            if isinstance(fact, ReadError):
                _problem(fact, source, evidence, result)
            elif not isinstance(fact, PackageReference) or fact.name in plan.names:
                result.facts.append(fact)
    except ReadError as error:
        _problem(error, source, evidence, result)
    except RecursionError:
        result.problems.append(
            Problem(source.path, f"nested too deeply for the reader `{reader.name}`", "limit", evidence=evidence)
        )
    except Exception as error:  # noqa: BLE001 - a bug of ours: kept, shown, and the rest of the audit goes on
        reason = f"the reader `{reader.name}` failed: {type(error).__name__}: {error}"
        result.problems.append(Problem(source.path, reason, "internal", evidence=evidence))


def _stream(reader: Reader, source: SourceFile) -> Iterator[Fact | ReadError]:
    yield from reader.load()(source)


def _problem(error: ReadError, source: SourceFile, evidence: bool, result: FileResult) -> None:
    span = source.span(error.offset, error.offset) if error.offset is not None else None
    reason = error.reason if span is None else f"{error.reason} at line {span.start.line}"
    problem = Problem(source.path, reason, "limit" if error.limit else "unread", span, evidence)
    if not any(known.path == problem.path and known.span == problem.span for known in result.problems):
        result.problems.append(problem)


@lru_cache(maxsize=1)
def index() -> NameIndex:
    """The name index over all readers, made once a process."""
    return NameIndex(READERS)


def read_files(candidates: Sequence[Candidate], plan: Plan, jobs: int) -> list[FileResult]:
    """The candidates that say anything, in order. On big trees with `jobs` over 1 in worker processes; the answer is
    the same."""
    if jobs > 1 and len(candidates) >= PARALLEL_FROM:
        from concurrent.futures import ProcessPoolExecutor

        size = max(50, len(candidates) // (jobs * 8))
        chunks = [candidates[start : start + size] for start in range(0, len(candidates), size)]
        with ProcessPoolExecutor(jobs) as pool:
            results = pool.map(_chunk, chunks, [plan] * len(chunks))
            return [result for chunk in results for result in chunk]
    return [result for result in (read_file(candidate, plan, index()) for candidate in candidates) if result.told]


def _chunk(candidates: Sequence[Candidate], plan: Plan) -> list[FileResult]:
    results = read_files(candidates, plan, 1)
    for result in results:
        result.source = None  # the parent reads again the few files that findings point into
    return results


_START = Position(0, 1, 1)  # not asked of the file: that would count the lines of every source file of a tree


def modules_of(results: Sequence[FileResult], sources: dict[str, SourceFile]) -> list[CodeModule]:
    """The files that code checks look at."""
    return [
        CodeModule(sources[result.path], language, Span(result.path, _START, _START))
        for result in results
        for language in result.modules
        if result.path in sources
    ]
