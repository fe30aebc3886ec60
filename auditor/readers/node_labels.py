"""The accelerator that a pod selects its node by: labels and required affinity, judged by what their values name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.model.facts import OR, Gpu
from auditor.model.records import dataclass
from auditor.syntax.yaml_nodes import ListNode, MapNode, ScalarNode, walk

_SELECTORS = ("nodeSelector", "node_selector", "nodeSelectors")
_SLICE_KEY = re.compile(r"gpu-partition-size$|mig[.-](?:config|profile)$", re.IGNORECASE)
_FAMILY_KEY = re.compile(r"(?:instance|machine)-family$", re.IGNORECASE)
# The most exact first: a product label names the card, an instance type the machine that has it.
_KEYS = (
    re.compile(r"gpu[._/-]?(?:product|type|model|name)|gpu\.nvidia\.com", re.IGNORECASE),
    re.compile(r"accelerator(?:-?(?:type|name|class))?$|gpu[._/-]?class", re.IGNORECASE),
    re.compile(r"instance-type|machine-type|node-type", re.IGNORECASE),
)
_NO_NAME = re.compile(r"(?:true|false|yes|no|on|present|any|all|gpu|nvidia|amd|[\d.]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Label:
    """One label and the values that it may have."""

    key: str
    values: tuple[ScalarNode, ...]

    @property
    def rank(self) -> int:
        """How exactly the key speaks of an accelerator, 0 first; beyond the table where it does not at all."""
        return next((number for number, key in enumerate(_KEYS) if key.search(self.key)), len(_KEYS))


def selected_gpu(node: MapNode) -> Gpu | None:
    """The accelerator by the labels of one mapping; alternatives as `H100 or H200`. A name that no catalogue knows is
    given as written where the key leaves no doubt that it is one."""
    labels = sorted(_labels(node), key=lambda label: label.rank)
    if not labels:
        return None
    part = next((label.values[0].value for label in labels if _SLICE_KEY.search(label.key)), "")
    for label in labels:
        words = _meant(label)
        if words is not None:
            kind = f"{words}-MIG-{part}" if re.fullmatch(r"\dg\.\d+gb", part) and OR not in words else words
            return Gpu(kind, None, label.values[0].span)
    for label in labels:
        value = label.values[0]
        if label.rank < len(_KEYS) and len(label.values) == 1 and not _NO_NAME.fullmatch(value.value.strip()):
            return Gpu(value.value, None, value.span)
    return None


def _labels(node: MapNode) -> Iterator[_Label]:
    for name in _SELECTORS:
        selector = node.map(name)
        for entry in selector.entries if selector is not None else ():
            if isinstance(entry.value, ScalarNode) and not entry.value.is_null:
                yield _Label(entry.key.value, (entry.value,))
    required = node.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, (MapNode, ListNode)):
        return
    for _, part in walk(required):
        key = part.text("key") if isinstance(part, MapNode) else None
        if key and isinstance(part, MapNode) and part.text("operator") in (None, "In"):
            values = tuple(item for item in part.list("values") if isinstance(item, ScalarNode))
            if values:
                yield _Label(key, values)


def _meant(label: _Label) -> str | None:
    """The accelerators that the values of a label name; `None` unless all of them name one."""
    from auditor.capacity.accelerators import Gpu as Card
    from auditor.capacity.accelerators import find_gpu, of_family

    cards: dict[str, str] = {}
    for value in label.values:
        found: Sequence[Card] = ()
        if _FAMILY_KEY.search(label.key):
            found = of_family(value.value)
        elif (card := find_gpu(value.value)) is not None:
            found = (card,)
        if not found:
            return None
        for card in found:
            cards.setdefault(card.name, value.value if len(found) == 1 else card.name)
    return next(iter(cards.values())) if len(cards) == 1 else OR.join(cards)
