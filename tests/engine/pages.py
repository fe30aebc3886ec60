"""A KV pool of fixed pages. Pages that are given back keep their content: nothing in the engine wipes them."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence


class PagePool:
    """`tokens` of room in pages of `page_size`. Reserved pages hold whatever was written to them last."""

    def __init__(self, tokens: int, page_size: int, reuse: str = "fifo") -> None:
        self.page_size = page_size
        self.pages = tokens // page_size
        self.reuse = reuse
        self._content = array("i", bytes(4 * self.pages * page_size))
        self._free: deque[int] = deque(range(self.pages))

    @property
    def available(self) -> int:
        """Free pages."""
        return len(self._free)

    def reserve(self, tokens: int) -> list[int] | None:
        """Pages for so many tokens, `None` when too few are free. Their content is not touched."""
        wanted = -(-tokens // self.page_size)
        if wanted > len(self._free):
            return None
        return [self._free.popleft() for _ in range(wanted)]

    def release(self, pages: Sequence[int]) -> None:
        """Give pages back. `fifo` puts them last, `sorted` hands out low pages first."""
        self._free.extend(pages)
        if self.reuse == "sorted":
            self._free = deque(sorted(self._free))

    def write(self, pages: Sequence[int], tokens: Sequence[int]) -> None:
        """Write tokens into the first pages that they need; the rest of the pages stays as it was."""
        size = self.page_size
        data = array("i", tokens)
        for index, page in enumerate(pages):
            part = data[index * size : (index + 1) * size]
            if not part:
                break
            self._content[page * size : page * size + len(part)] = part

    def read(self, pages: Sequence[int], tokens: int) -> array[int]:
        """The first `tokens` tokens that stand in the pages, whoever wrote them."""
        size = self.page_size
        found = array("i")
        for page in pages:
            found.extend(self._content[page * size : (page + 1) * size])
        return found[:tokens]
