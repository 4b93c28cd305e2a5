"""JSON-like Python values as MLIR attributes and back, and records of them on functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from dialect.mlir import ir
from dialect.remembered import Remembered

T = TypeVar("T")


class Record(Generic[T]):
    """A value stored as an attribute: `to_json` converts it, `from_json` reads it back.

    A value that was written is cached in its context and not decoded again. So it must equal its decoded form, and must
    not be changed.
    """

    def __init__(self, to_json: Callable[[T], object], from_json: Callable[[Any], T]) -> None:
        self._to_json, self._from_json = to_json, from_json
        self._known = Remembered[int, T]()

    def write(self, value: T) -> ir.Attribute:
        """The attribute of a value, in the current context."""
        attribute = encode(self._to_json(value))
        self._known.within(attribute.context)[hash(attribute)] = value
        return attribute

    def read(self, attribute: ir.Attribute) -> T:
        """The value of an attribute."""
        known, address = self._known.within(attribute.context), hash(attribute)
        if address not in known:
            known[address] = self._from_json(decode(attribute))
        return known[address]


def encode(value: object) -> ir.Attribute:
    """The attribute of a value made of dicts, lists, strings, numbers, bools and None, in the current context."""
    write = _WRITERS.get(type(value))
    if write is None:
        raise TypeError(f"no attribute holds a {type(value).__name__}")
    return write(value)


_WRITERS: Final[Mapping[type, Callable[[Any], ir.Attribute]]] = {
    type(None): lambda _: ir.UnitAttr.get(),
    bool: ir.BoolAttr.get,
    int: lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value),
    float: lambda value: ir.FloatAttr.get(ir.F64Type.get(), value),
    str: ir.StringAttr.get,
    dict: lambda entries: ir.DictAttr.get({key: encode(entry) for key, entry in entries.items()}),
    **dict.fromkeys((list, tuple), lambda entries: ir.ArrayAttr.get([encode(entry) for entry in entries])),
}
"""By class of the value (`_READERS` by class of the attribute): records have many thousands of values."""


def decode(attribute: Any) -> Any:
    """The value that `encode` stored; tuples come back as lists."""
    read = _READERS.get(type(attribute))
    if read is None:
        raise TypeError(f"{attribute} holds no JSON-like value")
    return read(attribute)


_READERS: Final[Mapping[type, Callable[[Any], Any]]] = {
    ir.UnitAttr: lambda _: None,
    **dict.fromkeys((ir.BoolAttr, ir.StringAttr, ir.IntegerAttr, ir.FloatAttr), attrgetter("value")),
    ir.DictAttr: lambda entries: {entry.name: decode(entry.attr) for entry in entries},
    ir.ArrayAttr: lambda entries: [decode(entry) for entry in entries],
}
