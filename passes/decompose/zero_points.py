"""kiln -> kiln: take zero points out of products of bytes, for targets that multiply bytes as they are.

`sum((x - z) * w) = sum(x * w) - z * sum(w)`, exactly, since 32-bit integers wrap around. The sums of weights are
prepared. An image is padded with its zero point, so that `x - z` is 0 there. For targets that multiply bytes only if
one factor has no sign, int8 and its zero point, or 0, become uint8 by adding 128 to both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import permutations
from typing import Any, Final, NamedTuple

from dialect.conversion import CastOp
from dialect.elementwise import BinopOp, TernaryOp
from dialect.mlir import ir
from dialect.movement import ExpandOp
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind, ReduceKind, TernaryKind

from . import builder

SUM: Final = DType.INT32
BYTES: Final = (DType.UINT8, DType.INT8)
_MIDDLE: Final = 128
_LITERALS: Final = frozenset({"kiln.const_scalar", "kiln.vconst"})


class _Factor(NamedTuple):
    """A factor `bytes - zero`: bytes, and a zero point of their dtype and rank 0."""

    bytes: ir.Value
    zero: ir.Value


def take_zero_points_out(
    parameters: Collection[ir.Value], *, multiplies_signed: bool
) -> Callable[[Any], ir.Value | None]:
    """A decomposition of sums of products of bytes, less a zero point, and int8 that depends on `parameters` alone.

    `multiplies_signed` means that the target multiplies int8 by int8.
    """

    def decompose_reduce_axis(op: Any) -> ir.Value | None:
        """sum((x - z) * w) -> sum(x * w) - z * sum(w); None for a reduction that stays"""
        product = op.operands[0].owner
        if op.reduce_op_kind is not ReduceKind.SUM or op.tensor.dtype is not SUM or not isinstance(product, BinopOp):
            return None
        shape = type_of(op.operands[0]).shape
        if product.op is not BinopKind.MUL or any(type_of(each).shape != shape for each in product.operands):
            return None
        for centred, weights in permutations(product.operands):
            if not _holds_int8(weights) or not is_fixed(weights, parameters) or not _is_centred(centred):
                continue
            if multiplies_signed and _holds_int8(centred):
                continue
            sums = _sums_of(weights, op)
            if sums is not None:
                return _apart(_factor(centred, keeps_sign=multiplies_signed), weights, sums, op)
        return None

    return decompose_reduce_axis


def _apart(factor: _Factor, weights: ir.Value, sums: ir.Value, op: Any) -> ir.Value:
    products = builder.binop(BinopKind.MUL, builder.cast(factor.bytes, SUM), weights)
    total = builder.reduce(ReduceKind.SUM, products, op.axes, op.tensor.shape)
    zero = builder.repeated(builder.cast(factor.zero, SUM), type_of(sums).shape)
    less = builder.binop(BinopKind.MUL, sums, zero)
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
    is_cast = isinstance(value.owner, CastOp) and type_of(value).dtype is SUM
    return is_cast and type_of(value.owner.operands[0]).dtype is dtype


def _holds_int8(value: ir.Value) -> bool:
    """Whether the value is int8, widened and moved."""
    source, _ = builder.unmoved(value)
    return _is_cast(source, DType.INT8)


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
    """Whether the value is bytes, widened, less a zero point or int8, and moved; and repeated for several columns of
    weights, as in a contraction.
    """
    if not isinstance(value.owner, ExpandOp):
        return False
    source, moves = builder.unmoved(value)
    windows = (move.shape_tracker.views for move in moves if move.operation.name == "kiln.view")
    if any(view.mask is not None for views in windows for view in views):
        return False
    return _is_cast(source, DType.INT8) or is_centred_byte(source)


def is_centred_byte(value: ir.Value) -> bool:
    """Whether the value is uint8 or int8, widened, less a zero point of the same dtype."""
    if not isinstance(value.owner, BinopOp) or value.owner.op is not BinopKind.SUB:
        return False
    left, right = value.owner.operands
    return any(_is_cast(left, dtype) and _zero_of(right, dtype) is not None for dtype in BYTES)


def _zero_of(value: ir.Value, dtype: DType) -> ir.Value | None:
    """The byte behind a single widened number; None for anything else."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in ("kiln.expand", "kiln.reshape"):
        value = value.owner.operands[0]
    is_one = all(extent == 1 for extent in type_of(value).shape)
    return value.owner.operands[0] if is_one and _is_cast(value, dtype) else None


def _factor(value: ir.Value, *, keeps_sign: bool) -> _Factor:
    """The bytes and the zero point of a centred factor: uint8, or int8 if it `keeps_sign`."""
    owner = value.owner
    if isinstance(owner, CastOp):
        source = owner.operands[0]
        return _Factor(_without_sign(source), builder.number(_MIDDLE, DType.UINT8))
    if isinstance(owner, BinopOp):
        left, right = owner.operands
        source = left.owner.operands[0]
        zero = _zero_of(right, type_of(source).dtype)
        assert zero is not None, "a centred factor has a zero point"
        found = _Factor(source, builder.reshape(zero, ()))
        return found if keeps_sign else _Factor(*map(_without_sign, found))
    source, zero = _factor(owner.operands[0], keeps_sign=keeps_sign)
    moved = builder.moved(owner, source)
    if owner.operation.name == "kiln.pad":
        known = type_of(source)
        is_true = builder.number(True, DType.BOOL)
        inside = builder.moved(owner, builder.repeated(is_true, known.shape))
        around = builder.repeated(zero, type_of(moved).shape)
        moved = TernaryOp.make([inside, moved, around], type_of(moved), op=TernaryKind.WHERE).results[0]
    return _Factor(moved, zero)


def _without_sign(value: ir.Value) -> ir.Value:
    """A byte, plus 128 if it has a sign."""
    known = type_of(value)
    if known.dtype is DType.UINT8:
        return value
    bits = builder.cast(value, DType.UINT8)
    middle = builder.repeated(builder.number(_MIDDLE, DType.UINT8), known.shape)
    return builder.binop(BinopKind.ADD, bits, middle)
