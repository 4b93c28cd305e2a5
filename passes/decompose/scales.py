"""kiln -> kiln: take scales out of products of dequantised bytes, for targets that multiply bytes as they are.

`sum((x - z) * s * w * t) = sum((x - z) * w) * s * t` if neither scale changes along the sum. The sum of integers is
exact, so that only its conversion and the scales round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

from dialect.conversion import CastOp
from dialect.elementwise import BinopOp
from dialect.mlir import ir
from dialect.movement import ExpandOp, PermuteOp, ReshapeOp
from dialect.types import type_of
from passes.loops.index_space import IndexSpace
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.nodes import BinopKind, ReduceKind

from . import builder
from .zero_points import BYTES, SUM, is_centred_byte, is_fixed

_FLOAT: Final = DType.FLOAT32
_MOST_DEPTH: Final = (1 << 31) // (255 * 128)
"""Terms of which the sum fits 32 bits: bytes less their zero point, and int8."""


@dataclass(frozen=True, slots=True)
class _Dequantised:
    """A factor `move(integers * scale)`: `moves` has the first one first. The scale has the shape before it is
    expanded.
    """

    integers: ir.Value
    scale: ir.Value
    moves: Sequence[Any]

    def moved_integers(self) -> ir.Value:
        """The integers where the factor has their products with the scale."""
        value = builder.cast(self.integers, SUM)
        for move in self.moves:
            value = builder.moved(move, value)
        return value

    def scale_of(self, op: Any) -> ir.Value:
        """The scale in the shape of the result of the sum `op`."""
        shape = op.tensor.shape
        if all(extent == 1 for extent in type_of(self.scale).shape):
            return builder.expand(builder.reshape(self.scale, (1,) * len(shape)), shape)
        value = builder.expand(self.scale, type_of(self.integers).shape)
        for move in self.moves:
            value = builder.moved(move, value)
        whole = type_of(value).shape
        limits = [(0, 1 if axis in op.axes else extent) for axis, extent in enumerate(whole)]
        return builder.reshape(builder.shrink(value, limits), shape)


def take_scales_out(parameters: Collection[ir.Value], space: IndexSpace) -> Callable[[Any], ir.Value | None]:
    """A decomposition of sums of products of dequantised bytes, and of dequantised int8 that depends on `parameters`
    alone; `space` has the bounds of the symbols.
    """

    def decompose_reduce_axis(op: Any) -> ir.Value | None:
        """sum((x - z) * s * w * t) -> sum((x - z) * w) * s * t; None for a reduction that stays"""
        product = op.operands[0].owner
        is_sum = op.reduce_op_kind is ReduceKind.SUM and op.tensor.dtype is _FLOAT and isinstance(product, BinopOp)
        if not is_sum or product.op is not BinopKind.MUL:
            return None
        shape = type_of(op.operands[0]).shape
        if space.largest(expr.product([shape[axis] for axis in op.axes])) > _MOST_DEPTH:
            return None
        for activations, weights in permutations(product.operands):
            if type_of(activations).shape != shape or type_of(weights).shape != shape:
                continue
            one, other = (_dequantised(each, op.axes) for each in (activations, weights))
            if one is None or other is None or not is_fixed(weights, parameters):
                continue
            is_byte = is_centred_byte(one.integers) or _is_byte(one.integers, *BYTES)
            # Memory limits the product of one row, and not arithmetic: each weight is read once.
            has_rows = expr.product(shape) != expr.product(type_of(other.integers).shape)
            if is_byte and has_rows and _is_byte(other.integers, DType.INT8):
                return _apart(one, other, op)
        return None

    return decompose_reduce_axis


def _apart(one: _Dequantised, other: _Dequantised, op: Any) -> ir.Value:
    products = builder.binop(BinopKind.MUL, one.moved_integers(), other.moved_integers())
    total = builder.reduce(ReduceKind.SUM, products, op.axes, op.tensor.shape)
    scaled = builder.binop(BinopKind.MUL, builder.cast(total, _FLOAT), one.scale_of(op))
    return builder.binop(BinopKind.MUL, scaled, other.scale_of(op))


def _dequantised(value: ir.Value, axes: Collection[int]) -> _Dequantised | None:
    """The integers and the scale of a factor whose scale is the same along `axes`."""
    value, moves = builder.unmoved(value)
    if not isinstance(value.owner, BinopOp) or value.owner.op is not BinopKind.MUL:
        return None
    for number, scale in permutations(value.owner.operands):
        if isinstance(number.owner, CastOp) and type_of(number.owner.operands[0]).dtype.is_integer:
            source = scale.owner.operands[0] if isinstance(scale.owner, ExpandOp) else scale
            varying = {axis for axis, extent in enumerate(type_of(source).shape) if extent != 1}
            for move in moves:
                varying = _moved_axes(varying, move) if varying else varying
                if varying is None:
                    return None
            if varying.isdisjoint(axes):
                return _Dequantised(number.owner.operands[0], source, moves)
    return None


def _moved_axes(axes: Collection[int], move: Any) -> set[int] | None:
    """The axes of the result of `move` along which a value may change that changes along `axes`; None if a part of the
    result is no part of the value, or if they are not known.
    """
    if isinstance(move, ExpandOp):
        return set(axes)
    if isinstance(move, PermuteOp):
        return {axis for axis, source in enumerate(move.axes_permutation) if source in axes}
    if not isinstance(move, ReshapeOp):
        return None
    found: set[int] = set()
    for before, after in _groups(type_of(move.operands[0]).shape, move.tensor.shape):
        if not before.isdisjoint(axes):
            found |= after
    return found


def _groups(before: builder.Shape, after: builder.Shape) -> Iterator[tuple[set[int], set[int]]]:
    """The axes of two shapes in the smallest groups of the same size; axes of size 1 at the end are left out."""
    sides = (before, after)
    places, sizes = [0, 0], [1, 1]
    taken: tuple[set[int], set[int]] = (set(), set())
    while any(place < len(shape) for place, shape in zip(places, sides, strict=True)):
        side = 0 if (sizes[0] <= sizes[1] and places[0] < len(before)) or places[1] >= len(after) else 1
        extent = sides[side][places[side]]
        if not isinstance(extent, int):
            break
        taken[side].add(places[side])
        places[side] += 1
        sizes[side] *= extent
        if sizes[0] == sizes[1]:
            yield taken
            taken, sizes = (set(), set()), [1, 1]
    # What is not told apart is one group.
    rest = tuple(taken[side] | set(range(places[side], len(shape))) for side, shape in enumerate(sides))
    yield rest[0], rest[1]


def _is_byte(value: ir.Value, *dtypes: DType) -> bool:
    """Whether the value is one of the dtypes, perhaps widened."""
    known = type_of(value).dtype
    if known is SUM and isinstance(value.owner, CastOp):
        known = type_of(value.owner.operands[0]).dtype
    return known in dtypes
