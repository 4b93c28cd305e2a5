"""Build kiln ops in front of the op that they replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dialect.constants import ConstScalarOp
from dialect.conversion import CastOp
from dialect.elementwise import BinopOp
from dialect.mlir import ir
from dialect.movement import ExpandOp, PermuteOp, ReshapeOp, ShrinkOp
from dialect.reduction import ReduceAxisOp
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.nodes import BinopKind, ReduceKind
from tensorkiln.types import TensorType

Shape = Sequence[Dim]

MOVES: Final = frozenset(f"kiln.{kind}" for kind in ("expand", "pad", "permute", "reshape", "shrink", "view"))
"""The ops that `moved` makes again."""


def replace(block: ir.Block, decompositions: Mapping[str, Callable[[Any], ir.Value | None]]) -> None:
    """Replace each op of a block by the value that its function makes; an op without a function or a value stays."""
    for op in list(block.operations):
        make = decompositions.get(op.operation.name)
        if make is None:
            continue
        with ir.InsertionPoint(op), op.location:
            value = make(op)
        if value is not None:
            op.operation.results[0].replace_all_uses_with(value)
            op.operation.erase()


def typed(value: ir.Value, shape: Shape, dtype: DType | None = None) -> TensorType:
    """A type of `shape` with the dtype of `value` unless another is given."""
    return TensorType(dtype or type_of(value).dtype, tuple(shape))


def reshape(value: ir.Value, shape: Shape) -> ir.Value:
    """`value` in another shape."""
    if type_of(value).shape == tuple(shape):
        return value
    return ReshapeOp.make([value], typed(value, shape)).results[0]


def permute(value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """`value` with dimension `i` taken from dimension `axes[i]`."""
    shape = type_of(value).shape
    moved = typed(value, [shape[axis] for axis in axes])
    return PermuteOp.make([value], moved, axes_permutation=tuple(axes)).results[0]


def expand(value: ir.Value, shape: Shape) -> ir.Value:
    """`value` with its dimensions of size 1 repeated."""
    if type_of(value).shape == tuple(shape):
        return value
    return ExpandOp.make([value], typed(value, shape)).results[0]


def number(value: bool | float, dtype: DType) -> ir.Value:
    """A number of rank 0."""
    return ConstScalarOp.make([], TensorType(dtype, ()), value=value).results[0]


def repeated(value: ir.Value, shape: Shape) -> ir.Value:
    """A single number for each element of a shape."""
    return expand(reshape(value, (1,) * len(shape)), shape)


def shrink(value: ir.Value, limits: Sequence[tuple[Dim, Dim]]) -> ir.Value:
    """The part of `value` within `limits`."""
    shape = [end - begin for begin, end in limits]
    return ShrinkOp.make([value], typed(value, shape), limits=tuple(limits)).results[0]


def unmoved(value: ir.Value) -> tuple[ir.Value, list[Any]]:
    """The value from which MOVES made this one, and these ops, the first one first."""
    moves: list[Any] = []
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in MOVES:
        moves.insert(0, value.owner)
        value = value.owner.operands[0]
    return value, moves


def moved(op: Any, source: ir.Value) -> ir.Value:
    """`source` moved as the operand of `op` is, one of MOVES."""
    fields = {name: getattr(op, name) for name in type(op).fields}
    return type(op).make([source], typed(source, op.tensor.shape), **fields).results[0]


def cast(value: ir.Value, dtype: DType) -> ir.Value:
    """`value` converted to `dtype`."""
    known = type_of(value)
    return value if known.dtype is dtype else CastOp.make([value], typed(value, known.shape, dtype)).results[0]


def binop(kind: BinopKind, left: ir.Value, right: ir.Value) -> ir.Value:
    """`left` and `right`, of the same type, combined."""
    return BinopOp.make([left, right], type_of(left), op=kind).results[0]


def reduce(kind: ReduceKind, value: ir.Value, axes: Sequence[int], shape: Shape) -> ir.Value:
    """`value` reduced over `axes`, to `shape`."""
    return ReduceAxisOp.make([value], typed(value, shape), reduce_op_kind=kind, axes=tuple(axes)).results[0]
