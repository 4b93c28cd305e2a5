"""JSON-like Python values as MLIR attributes and back: how records ride on functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, cast

from dialect.mlir import ir


def encode(value: object) -> ir.Attribute:
    """The attribute of a value made of dicts, lists, strings, numbers, bools and None, in the current context."""
    match value:
        case None:
            return ir.UnitAttr.get()
        case bool():
            return ir.BoolAttr.get(value)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), value)
        case str():
            return ir.StringAttr.get(value)
        case Mapping():
            entries = cast("Mapping[str, object]", value)
            return ir.DictAttr.get({key: encode(entry) for key, entry in entries.items()})
        case Sequence():
            return ir.ArrayAttr.get([encode(entry) for entry in cast("Sequence[object]", value)])
        case _:
            raise TypeError(f"no attribute holds a {type(value).__name__}")


def decode(attribute: Any) -> Any:
    """The value that `encode` made the attribute of; tuples come back as lists."""
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
"""By the class of the attribute, which is looked up: records have many thousands of them."""
