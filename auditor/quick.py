"""The answer for changed files that hold nothing of interest, before anything heavy is imported.

Most commits touch no file that names the engine. For them the pipeline, the rule files and the parsers are not needed:
it is enough to know which byte strings the rules look for. Those are remembered from the last full run, in the user's
cache folder, beside the sizes and times of the rule files that they came from. Whenever something is not plain (another
option, a configuration, a folder, a file that some reader wants), this module says so and the full audit runs.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Mapping, Sequence
from typing import Any

from auditor import __version__
from auditor.limits import BINARY_PROBE_BYTES, MAX_FILE_BYTES

CONFIG_NAMES = ("auditor.toml", "pyproject.toml")
MARKER = b"auditor:"


def answer(arguments: Sequence[str]) -> str | None:
    """The whole report for `auditor scan FILE ...`, or `None` when the full audit has to run."""
    files = [word for word in arguments if word != "--"]
    if not files or any(word.startswith("-") for word in files) or not all(map(os.path.isfile, files)):
        return None
    watched = load()
    if watched is None or _configured(os.getcwd()):
        return None
    from auditor.readers import READERS
    from auditor.walk import LANGUAGES, NameIndex

    index = NameIndex(READERS)
    seen = {os.path.abspath(name) for name in files}
    for full in seen:
        ending = os.path.splitext(full)[1].lower()
        readers = index.readers(full.replace(os.sep, "/").lstrip("/"))
        try:
            if os.path.getsize(full) > MAX_FILE_BYTES:
                return None
            with open(full, "rb") as stream:
                data = stream.read()
        except OSError:
            return None
        if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:BINARY_PROBE_BYTES]:
            return None
        low = data.lower()
        wanted = [*watched["needles"], MARKER.decode()]
        if any(needle.encode("latin-1") in low for needle in wanted):
            return None
        if any(needle.encode("latin-1") in data for needle in watched["code"].get(LANGUAGES.get(ending, ""), ())):
            return None
        for reader in readers:
            if reader.needles is not None and (not reader.needles or any(needle in low for needle in reader.needles)):
                return None
    count = len(seen)
    return f"no findings; {count} file{'s' if count != 1 else ''} looked at, 0 read\n"


def _configured(folder: str) -> bool:
    """Whether a configuration of ours may stand in the folder or above it, up to the repository's root."""
    while True:
        for name in CONFIG_NAMES:
            try:
                with open(os.path.join(folder, name), "rb") as stream:
                    if name == "auditor.toml" or b"auditor" in stream.read():
                        return True
            except OSError:
                continue
        parent = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, ".git")) or parent == folder:
            return False
        folder = parent


def cache_folder() -> str:
    """The user's cache folder for this program, by the custom of the platform."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return os.path.join(base or os.path.join(os.path.expanduser("~"), ".cache"), "auditor")


def _place() -> str:
    """Where the words of this installation are kept: a hook and a development checkout must not undo each other's."""
    return os.path.join(cache_folder(), f"watched-{crc32(os.path.abspath(__file__).encode()):08x}.json")


def _key() -> list[Any]:
    """What the remembered words were made from: the version, and each rule file with its size and time."""
    here = os.path.dirname(os.path.abspath(__file__))
    for root in (os.path.join(here, "rules"), os.path.join(os.path.dirname(here), "rules")):
        if os.path.isdir(os.path.join(root, "version")):
            break
    else:
        return [__version__]
    stats = []
    for family in sorted(os.listdir(root)):
        folder = os.path.join(root, family)
        if os.path.isdir(folder):
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
                stat = entry.stat()
                stats.append([family, entry.name, stat.st_size, stat.st_mtime_ns])
    return [__version__, root, stats]


def load() -> dict[str, Any] | None:
    """The byte strings that the rules look for, as remembered; `None` when there are none or the rules have changed."""
    try:
        with open(_place(), encoding="utf-8") as stream:
            known = json.load(stream)
    except (OSError, ValueError):
        return None
    if not isinstance(known, dict) or known.get("key") != _key():
        return None
    return known


def remember(needles: Sequence[bytes], code: Mapping[str, Sequence[bytes]]) -> None:
    """Keep them for the next run. A cache folder that cannot be written costs time and nothing else."""
    if load() is not None:
        return
    known = {
        "key": _key(),
        "needles": [needle.decode("latin-1") for needle in needles],
        "code": {language: [needle.decode("latin-1") for needle in words] for language, words in code.items()},
    }
    try:
        os.makedirs(cache_folder(), exist_ok=True)
        from auditor.whole_file import whole_file

        with whole_file(_place(), mode=0o600) as stream:
            json.dump(known, stream)
    except OSError:
        return
