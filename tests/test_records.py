"""Our records behave as those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from types import ModuleType
from typing import Any

import pytest

from auditor.model import records
from auditor.model.spans import Position, Span


def classes(module: ModuleType) -> tuple[Any, Any, Any]:
    @module.dataclass(frozen=True, slots=True, order=True)  # type: ignore[untyped-decorator]
    class Point:
        """A place."""

        x: int
        y: int = 2
        names: list[str] = module.field(default_factory=list)
        secret: str = module.field(default="s", repr=False, compare=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    @module.dataclass(frozen=True, slots=True)  # type: ignore[untyped-decorator]
    class Far(Point):  # type: ignore[misc, valid-type]
        z: int = 3

    @module.dataclass(slots=True)  # type: ignore[untyped-decorator]
    class Loose:
        given: dict[str, int]
        seen: set[str] = module.field(default_factory=set)

        def __post_init__(self) -> None:
            self.seen.update(self.given)

    return Point, Far, Loose


@pytest.mark.parametrize("which", [0, 1])
def test_a_frozen_record_is_what_the_standard_module_makes_of_it(which: int) -> None:
    ours, theirs = classes(records)[which], classes(dataclasses)[which]
    for arguments in ((1,), (1, 5), (1, 5, ["a"], "x")):
        mine, other = ours(*arguments), theirs(*arguments)
        assert repr(mine).rpartition("<locals>.")[2] == repr(other).rpartition("<locals>.")[2]
        assert mine.total == other.total
        assert mine == ours(*arguments)
        assert mine != other
        assert (mine < ours(2)) is (other < theirs(2)) if not which else True
        assert records.replace(mine, y=9) == ours(1, 9, *arguments[2:])
        assert copy.deepcopy(mine) == mine
    assert dataclasses.replace(ours(1), y=9) == ours(1, 9)
    assert records.replace(theirs(1), y=9) == theirs(1, 9)
    assert ours(1).names is not ours(1).names
    assert ours(1, secret="a") == ours(1, secret="b")
    assert ours.__doc__ == theirs.__doc__ or which
    assert [item.name for item in records.fields(ours)] == [item.name for item in dataclasses.fields(theirs)]
    with pytest.raises(AttributeError, match="cannot assign to field 'x'"):
        ours(1).x = 2
    with pytest.raises(AttributeError, match="cannot delete field 'x'"):
        del ours(1).x
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        ours()
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        ours(1, w=2)


def test_a_record_that_changes_has_no_hash_and_takes_no_new_names() -> None:
    ours = classes(records)[2]
    record = ours({"a": 1})
    assert record.seen == {"a"}
    record.given = {}
    assert record == ours({}, {"a"})
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)
    with pytest.raises(AttributeError):
        record.other = 1


def test_equal_records_are_one_in_a_set_and_survive_the_way_to_a_worker() -> None:
    span = Span("a.py", Position(0, 1, 1), Position(4, 1, 5))
    assert pickle.loads(pickle.dumps(span)) == span
    assert len({span, Span("a.py", Position(0, 1, 1), Position(4, 1, 5))}) == 1
    assert sorted([Position(5, 2, 1), Position(0, 1, 1)])[0] == Position(0, 1, 1)
    assert records.is_dataclass(span)
    assert records.is_dataclass(Span)
    assert not records.is_dataclass("a.py")
