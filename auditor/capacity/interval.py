"""Numbers that are known only between two bounds."""

from __future__ import annotations

from auditor.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """`low <= expected <= high`, in whatever unit the field that holds it says."""

    low: float
    expected: float
    high: float

    def __add__(self, other: Interval | float) -> Interval:
        o = other if isinstance(other, Interval) else Interval(other, other, other)
        return Interval(self.low + o.low, self.expected + o.expected, self.high + o.high)

    def __sub__(self, other: Interval | float) -> Interval:
        o = other if isinstance(other, Interval) else Interval(other, other, other)
        return Interval(self.low - o.high, self.expected - o.expected, self.high - o.low)

    def __mul__(self, other: Interval | float) -> Interval:
        """The product of intervals that are not negative."""
        o = other if isinstance(other, Interval) else Interval(other, other, other)
        return Interval(self.low * o.low, self.expected * o.expected, self.high * o.high)

    def __truediv__(self, other: Interval | float) -> Interval:
        """The quotient; the divisor is positive."""
        o = other if isinstance(other, Interval) else Interval(other, other, other)
        return Interval(self.low / o.high, self.expected / o.expected, self.high / o.low)

    def at_least(self, floor: float) -> Interval:
        """No bound below `floor`."""
        return Interval(max(self.low, floor), max(self.expected, floor), max(self.high, floor))

    def at_most(self, ceiling: float) -> Interval:
        """No bound above `ceiling`."""
        return Interval(min(self.low, ceiling), min(self.expected, ceiling), min(self.high, ceiling))

    @property
    def is_exact(self) -> bool:
        """Whether the bounds are one number."""
        return self.low == self.high


def exact(value: Interval | float) -> Interval:
    """A number as an interval without width."""
    return value if isinstance(value, Interval) else Interval(value, value, value)


def around(value: float, below: float, above: float | None = None) -> Interval:
    """A value with relative margins: `around(10, 0.1)` is 9 to 11."""
    return Interval(value * (1 - below), value, value * (1 + (below if above is None else above)))


def hull(*values: Interval | float, expected: float | None = None) -> Interval:
    """The smallest interval that holds all; expected is the middle of the expectations unless it is given."""
    parts = [exact(value) for value in values]
    middle = sum(part.expected for part in parts) / len(parts) if expected is None else expected
    return Interval(min(part.low for part in parts), middle, max(part.high for part in parts))
