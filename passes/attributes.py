"""JSON-like Python values as MLIR attributes and back: how records ride on functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

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
    match attribute:
        case ir.UnitAttr():
            return None
        case ir.BoolAttr() | ir.StringAttr() | ir.IntegerAttr() | ir.FloatAttr():
            return attribute.value
        case ir.DictAttr():
            return {entry.name: decode(entry.attr) for entry in attribute}
        case ir.ArrayAttr():
            return [decode(entry) for entry in attribute]
        case _:
            raise TypeError(f"{attribute} holds no JSON-like value")
