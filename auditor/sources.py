"""The files of an audit by path, decoded when somebody asks: for spans, for reports, for the code checks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from auditor.decode import decode
from auditor.model.spans import SourceFile


class Sources(Mapping[str, SourceFile]):
    """Reads `root/path` on first use and keeps it. Files that were already decoded are handed in by `put`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: dict[str, SourceFile] = {}

    def put(self, source: SourceFile) -> None:
        """Keep a file that is decoded already."""
        self._known[source.path] = source

    def __getitem__(self, path: str) -> SourceFile:
        if path not in self._known:
            try:
                with open(os.path.join(self.root, *path.split("/")), "rb") as stream:
                    data = stream.read()
            except OSError:
                raise KeyError(path) from None
            self._known[path] = decode(path, data)[0]
        return self._known[path]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._known))

    def __len__(self) -> int:
        return len(self._known)
