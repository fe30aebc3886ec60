"""One word of a command line or one scalar of a list: its value, and where it stands."""

from __future__ import annotations

from auditor.model.facts import Value
from auditor.model.records import dataclass, field
from auditor.model.spans import Span
from auditor.syntax.mapped import Mapped


@dataclass(frozen=True, slots=True)
class Word:
    """`value` is the text after quotes and escapes, or `Unresolved` where it holds variables; `raw` is the text as
    written, quotes included; `quoted` says that some part of it was quoted. `mapped` is the text after quotes with the
    place of each character, where the reader of the word knows it (a block scalar after `sh -c` needs it)."""

    value: Value
    span: Span
    raw: str
    quoted: bool = False
    mapped: Mapped | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The value as text; of an unresolved one the text as written."""
        return self.value if isinstance(self.value, str) else getattr(self.value, "text", str(self.value))
