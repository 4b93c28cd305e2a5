"""Attributes of kiln ops as Python values: a `Field` is declared in an op's class and reads itself from an instance.

    class PadOp(KilnOp, name="pad"):
        pad_width = dim_pairs()

    op.pad_width      # ((0, Expr(n)), (1, 1)), from the attribute `pad_width = [[0, "n"], [1, 1]]`

A dim is an `i64` attribute when it is static and its canonical text when it is symbolic. None is the unit attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

from tensorkiln.expr import Dim, parse_text, to_text

from .mlir import ir

T = TypeVar("T")
Kind = TypeVar("Kind", bound=StrEnum)


class DenseArray(ir.Attribute):
    """The IRDL constraint of `array<i64: …>` and `array<i1: …>`, which has no name in the bindings."""

    attr_name = "builtin.dense_array"


class Field(Generic[T]):
    """One attribute of an op: `encode` makes it from a Python value in the current context, `decode` reads it back.

    `constraint` is the constraint in the dialect's definition. A field is shareable if equal values have equal
    attributes, which does not hold for floats: 0.0 equals -0.0.
    """

    def __init__(
        self,
        constraint: Any,
        encode: Callable[[T], ir.Attribute],
        decode: Callable[[Any], T],
        *,
        is_shareable: bool = True,
    ) -> None:
        self.constraint = constraint
        self.encode = encode
        self.decode = decode
        self.is_shareable = is_shareable
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> T: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> Field[T] | T:
        return self if op is None else self.decode(op.attributes[self.name])


def _value_of(attribute: Any) -> Any:
    return attribute.value


def _int64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _int64s(values: Sequence[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


def enum(kind: type[Kind]) -> Field[Kind]:
    """A member of `kind`, stored by its value."""
    return Field(ir.StringAttr, lambda member: ir.StringAttr.get(member.value), lambda text: kind(text.value))


def text() -> Field[str]:
    return Field(ir.StringAttr, ir.StringAttr.get, _value_of)


def integer() -> Field[int]:
    """An integer of 64 bits."""
    return Field(ir.IntegerAttr, _int64, _value_of)


def flag() -> Field[bool]:
    return Field(ir.IntegerAttr, ir.BoolAttr.get, lambda attribute: bool(attribute.value))


def integers() -> Field[tuple[int, ...]]:
    """Integers of 64 bits."""
    return Field(DenseArray, _int64s, tuple)


def flags() -> Field[tuple[bool, ...]]:
    return Field(DenseArray, lambda values: ir.DenseBoolArrayAttr.get(list(values)), tuple)


def integer_pairs() -> Field[tuple[tuple[int, int], ...]]:
    return Field(ir.ArrayAttr, _from_integer_pairs, _to_integer_pairs)


def _from_integer_pairs(pairs: Sequence[tuple[int, int]]) -> ir.Attribute:
    return ir.ArrayAttr.get([_int64s(pair) for pair in pairs])


def _to_integer_pairs(attribute: Any) -> tuple[tuple[int, int], ...]:
    return tuple((first, second) for first, second in attribute)


def optional(field: Field[T]) -> Field[T | None]:
    """The value of `field`, or None."""
    return Field(
        Any,
        lambda value: ir.UnitAttr.get() if value is None else field.encode(value),
        lambda attribute: None if isinstance(attribute, ir.UnitAttr) else field.decode(attribute),
    )


def encode_dim(dim: Dim) -> ir.Attribute:
    return _int64(dim) if isinstance(dim, int) else ir.StringAttr.get(to_text(dim))


def decode_dim(attribute: Any) -> Dim:
    value = attribute.value
    return value if isinstance(value, int) else parse_text(value)


def encode_dims(dims: Sequence[Dim]) -> ir.Attribute:
    return ir.ArrayAttr.get([encode_dim(dim) for dim in dims])


def decode_dims(attribute: Any) -> tuple[Dim, ...]:
    return tuple(decode_dim(entry) for entry in attribute)


def encode_dim_pairs(pairs: Sequence[tuple[Dim, Dim]]) -> ir.Attribute:
    return ir.ArrayAttr.get([encode_dims(pair) for pair in pairs])


def decode_dim_pairs(attribute: Any) -> tuple[tuple[Dim, Dim], ...]:
    return tuple((decode_dim(first), decode_dim(second)) for first, second in attribute)


def dim() -> Field[Dim]:
    return Field(Any, encode_dim, decode_dim)


def dim_pairs() -> Field[tuple[tuple[Dim, Dim], ...]]:
    return Field(ir.ArrayAttr, encode_dim_pairs, decode_dim_pairs)
