"""Records: what this program uses of `dataclasses`, without its price at start.

`dataclasses` imports `inspect` and compiles up to eleven functions for each class; for the classes that one run loads
that was two fifths of the time of a hook. Here the functions are shared, and a class gets an `__init__` of its own when
its first record is made. Type checkers see the standard module. Not there, because nothing uses it: `init=False`,
`kw_only`, `InitVar`, `asdict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
else:
    from operator import attrgetter

    MISSING = type("Missing", (), {"__repr__": lambda self: "MISSING"})()

    class Field:
        """One field: its name, its default or what makes one, and whether it shows and counts for equality."""

        __slots__ = ("compare", "default", "default_factory", "name", "repr")
        init, _field_type = True, None  # what `dataclasses.replace` asks of a field

        def __init__(self, default=MISSING, default_factory=MISSING, repr=True, compare=True) -> None:
            self.name = ""
            self.default, self.default_factory = default, default_factory
            self.repr, self.compare = repr, compare

    def field(**options):
        """The settings of one field, in the place of its default."""
        return Field(**options)

    def fields(kind) -> tuple[Field, ...]:
        """The fields of a record or of its class, inherited ones first."""
        return tuple(kind.__dataclass_fields__.values())

    def is_dataclass(kind) -> bool:
        """Whether this is a record or the class of records."""
        return hasattr(kind if isinstance(kind, type) else type(kind), "__dataclass_fields__")

    def replace(record, /, **changes):
        """The record with other values in some of its fields."""
        for name in record.__dataclass_fields__:
            if name not in changes:
                changes[name] = getattr(record, name)
        return type(record)(**changes)

    def dataclass(kind=None, /, *, frozen=False, slots=False, order=False):
        """The class with the methods of a record; with `slots` it is made anew, as by the standard module."""
        if kind is None:
            return lambda kind: _record(kind, frozen, slots, order)
        return _record(kind, frozen, slots, order)

    def _record(kind, frozen, slots, order):
        known = {}
        for base in reversed(kind.__mro__[1:]):
            known.update(getattr(base, "__dataclass_fields__", ()))
        own = []
        for name, hint in kind.__annotations__.items():
            if str(hint).startswith(("ClassVar", "typing.ClassVar")):
                continue
            default = kind.__dict__.get(name, MISSING)
            item = default if isinstance(default, Field) else Field(default)
            item.name = name
            known[name] = item
            own.append(item)
        body = dict(kind.__dict__)
        for item in own:
            if slots or item.default is MISSING:
                body.pop(item.name, None)
        names = tuple(known)
        compared = [item.name for item in known.values() if item.compare]
        body["__dataclass_fields__"] = known
        body["__match_args__"] = names
        body["_compared"] = attrgetter(*compared) if compared else staticmethod(lambda record: ())
        body.setdefault("__repr__", _repr)
        body.setdefault("__eq__", _equal)
        if frozen:
            body.update(__setattr__=_refuse_set, __delattr__=_refuse_delete)
            body["__hash__"] = _hash
        elif "__hash__" not in kind.__dict__:
            body["__hash__"] = None
        if order:
            body.update(__lt__=_less, __le__=_less_or_equal, __gt__=_greater, __ge__=_greater_or_equal)
        if slots:
            inherited = {name for base in kind.__mro__[1:] for name in getattr(base, "__slots__", ())}
            body["__slots__"] = tuple(item.name for item in own if item.name not in inherited)
            body.update(__getstate__=_state, __setstate__=_restore)
        for name in ("__dict__", "__weakref__"):
            body.pop(name, None)
        body["__init__"] = lambda self, *given, **named: _first(made, frozen, slots, self, given, named)
        made = type(kind)(kind.__name__, kind.__bases__, body)
        made.__qualname__ = kind.__qualname__
        return made

    def _first(kind, frozen, slots, record, given, named) -> None:
        """The first record of a class: compile its `__init__`, keep it, and go on with it."""
        scope, head, lines = {"_unset": MISSING}, [], []
        for item in fields(kind):
            name, value = item.name, item.name
            if item.default_factory is not MISSING:
                scope[f"_make_{name}"] = item.default_factory
                value = f"_make_{name}() if {name} is _unset else {name}"
                head.append(f"{name}=_unset")
            elif item.default is not MISSING:
                scope[f"_default_{name}"] = item.default
                head.append(f"{name}=_default_{name}")
            else:
                head.append(name)
            if frozen and slots:
                scope[f"_set_{name}"] = getattr(kind, name).__set__
                lines.append(f" _set_{name}(self, {value})")
            elif frozen:
                lines.append(f" self.__dict__[{name!r}] = {value}")
            else:
                lines.append(f" self.{name} = {value}")
        if hasattr(kind, "__post_init__"):
            lines.append(" self.__post_init__()")
        exec(f"def __init__(self, {', '.join(head)}):\n" + ("\n".join(lines) or " pass"), scope)  # noqa: S102 - names of fields
        kind.__init__ = scope["__init__"]
        kind.__init__.__qualname__ = f"{kind.__qualname__}.__init__"
        kind.__init__(record, *given, **named)

    def _repr(self) -> str:
        shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{type(self).__qualname__}({shown})"

    def _equal(self, other):
        return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented

    def _hash(self) -> int:
        return hash(self._compared(self))

    def _less(self, other):
        return self._compared(self) < self._compared(other) if type(other) is type(self) else NotImplemented

    def _less_or_equal(self, other):
        return self._compared(self) <= self._compared(other) if type(other) is type(self) else NotImplemented

    def _greater(self, other):
        return self._compared(self) > self._compared(other) if type(other) is type(self) else NotImplemented

    def _greater_or_equal(self, other):
        return self._compared(self) >= self._compared(other) if type(other) is type(self) else NotImplemented

    def _refuse_set(self, name, value) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    def _refuse_delete(self, name) -> None:
        raise AttributeError(f"cannot delete field {name!r}")

    def _state(self) -> list[Any]:
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def _restore(self, state) -> None:
        for name, value in zip(self.__dataclass_fields__, state, strict=True):
            object.__setattr__(self, name, value)


__all__ = ["MISSING", "dataclass", "field", "fields", "is_dataclass", "replace"]
