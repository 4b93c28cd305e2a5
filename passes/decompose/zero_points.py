"""kiln -> kiln: take zero points out of products of bytes, for targets that multiply bytes as they are.

`sum((x - z) * w) = sum(x * w) - z * sum(w)`, exactly, since 32-bit integers wrap around. The sums of weights are
prepared. An image is padded with its zero point, so that `x - z` is 0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import permutations
from typing import Any, Final, NamedTuple

from dialect.constants import ConstScalarOp
from dialect.conversion import CastOp
from dialect.elementwise import BinopOp, TernaryOp
from dialect.mlir import ir
from dialect.movement import ExpandOp
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind, ReduceKind, TernaryKind

from . import builder

_SUM: Final = DType.INT32
_LITERALS: Final = frozenset({"kiln.const_scalar", "kiln.vconst"})


class _Factor(NamedTuple):
    """A factor `bytes - zero`: bytes of uint8, and a zero point of uint8 and rank 0."""

    bytes: ir.Value
    zero: ir.Value


def take_zero_points_out(parameters: Collection[ir.Value]) -> Callable[[Any], ir.Value | None]:
    """A decomposition of sums of products of uint8, less a zero point, and int8 that depends on `parameters` alone."""

    def decompose_reduce_axis(op: Any) -> ir.Value | None:
        """sum((x - z) * w) -> sum(x * w) - z * sum(w); None for a reduction that stays"""
        product = op.operands[0].owner
        if op.reduce_op_kind is not ReduceKind.SUM or op.tensor.dtype is not _SUM or not isinstance(product, BinopOp):
            return None
        shape = type_of(op.operands[0]).shape
        if product.op is not BinopKind.MUL or any(type_of(each).shape != shape for each in product.operands):
            return None
        for centred, weights in permutations(product.operands):
            if _holds_bytes(weights) and is_fixed(weights, parameters) and _is_centred(centred):
                sums = _sums_of(weights, op)
                if sums is not None:
                    return _apart(_factor(centred), weights, sums, op)
        return None

    return decompose_reduce_axis


def _apart(factor: _Factor, weights: ir.Value, sums: ir.Value, op: Any) -> ir.Value:
    products = builder.binop(BinopKind.MUL, builder.cast(factor.bytes, _SUM), weights)
    total = builder.reduce(ReduceKind.SUM, products, op.axes, op.tensor.shape)
    zero = _scalar(builder.cast(factor.zero, _SUM), type_of(sums).rank)
    less = builder.binop(BinopKind.MUL, sums, builder.expand(zero, type_of(sums).shape))
    return builder.binop(BinopKind.SUB, total, builder.expand(less, op.tensor.shape))


def _sums_of(weights: ir.Value, op: Any) -> ir.Value | None:
    """The sums of the weights over the axes of `op`, before they are expanded; None if those axes are expanded."""
    source = weights.owner.operands[0] if isinstance(weights.owner, ExpandOp) else weights
    shape, whole = type_of(source).shape, type_of(weights).shape
    if any(shape[axis] != whole[axis] for axis in op.axes):
        return None
    kept = [axis for axis in range(len(shape)) if axis not in op.axes]
    sums = builder.reduce(ReduceKind.SUM, source, op.axes, [shape[axis] for axis in kept])
    if len(op.tensor.shape) == len(kept):
        return sums
    return builder.reshape(sums, [1 if axis in op.axes else extent for axis, extent in enumerate(shape)])


def _is_cast(value: ir.Value, dtype: DType) -> bool:
    is_cast = isinstance(value.owner, CastOp) and type_of(value).dtype is _SUM
    return is_cast and type_of(value.owner.operands[0]).dtype is dtype


def _holds_bytes(value: ir.Value) -> bool:
    """Whether the value is int8, widened and moved."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in builder.MOVES:
        value = value.owner.operands[0]
    return _is_cast(value, DType.INT8)


def is_fixed(value: ir.Value, parameters: Collection[ir.Value]) -> bool:
    """Whether the value depends on parameters and constants alone."""
    stack, seen = [value], set[Any]()
    while stack:
        each = stack.pop()
        if isinstance(each.owner, ir.Block):
            if each not in parameters:
                return False
        elif each.owner.operation not in seen:
            seen.add(each.owner.operation)
            if not each.owner.operands and each.owner.operation.name not in _LITERALS:
                return False
            stack.extend(each.owner.operands)
    return True


def _is_centred(value: ir.Value) -> bool:
    """Whether the value is uint8, widened, less a zero point of uint8, and moved; and repeated for several columns of
    weights, as in a contraction.
    """
    if not isinstance(value.owner, ExpandOp):
        return False
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in builder.MOVES:
        owner = value.owner
        if owner.operation.name == "kiln.view" and any(view.mask is not None for view in owner.shape_tracker.views):
            return False
        value = owner.operands[0]
    return is_centred_byte(value)


def is_centred_byte(value: ir.Value) -> bool:
    """Whether the value is uint8, widened, less a zero point of uint8."""
    if not isinstance(value.owner, BinopOp) or value.owner.op is not BinopKind.SUB:
        return False
    left, right = value.owner.operands
    return _is_cast(left, DType.UINT8) and _zero_of(right) is not None


def _zero_of(value: ir.Value) -> ir.Value | None:
    """The uint8 behind a single widened number; None for anything else."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in ("kiln.expand", "kiln.reshape"):
        value = value.owner.operands[0]
    is_one = all(extent == 1 for extent in type_of(value).shape)
    return value.owner.operands[0] if is_one and _is_cast(value, DType.UINT8) else None


def _factor(value: ir.Value) -> _Factor:
    """The bytes and the zero point of a centred factor."""
    owner = value.owner
    if isinstance(owner, BinopOp):
        left, right = owner.operands
        zero = _zero_of(right)
        assert zero is not None, "a centred factor has a zero point"
        return _Factor(left.owner.operands[0], builder.reshape(zero, ()))
    source, zero = _factor(owner.operands[0])
    moved = builder.moved(owner, source)
    if owner.operation.name == "kiln.pad":
        known = type_of(source)
        is_true = ConstScalarOp.make([], builder.typed(zero, (), DType.BOOL), value=True).results[0]
        inside = builder.moved(owner, builder.expand(_scalar(is_true, known.rank), known.shape))
        around = builder.expand(_scalar(zero, known.rank), type_of(moved).shape)
        moved = TernaryOp.make([inside, moved, around], type_of(moved), op=TernaryKind.WHERE).results[0]
    return _Factor(moved, zero)


def _scalar(value: ir.Value, rank: int) -> ir.Value:
    """A single number with this rank."""
    return builder.reshape(value, (1,) * rank)
