"""Constants, and operations that rearrange elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dialect.mlir import ir
from tensorkiln import build
from tensorkiln.build import Builder, Tensor
from tensorkiln.build.constant import MAX_TABLE_ELEMENTS
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.frontends.composed import spreading

from .constants import too_large
from .elements import array_of, splat_value
from .op import Op
from .table import Translator
from .value import Known, Value

_EXACT: Final = 1 << 24
"""float32 and every wider type represent all integers up to this."""
_COUNTING: Final = frozenset(
    {DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT32, DType.UINT64},
)


def _constant(op: Op) -> Value:
    attribute = op.attribute("value")
    wanted = op.result()
    shape = op.static_shape()
    if not isinstance(attribute, ir.DenseElementsAttr):
        op.fail("its value is not dense elements")
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        # Not expanded: a short text may denote any number of elements.
        return Known(np.broadcast_to(splat_value(dense.get_splat_value(), wanted.dtype), shape), wanted.dtype)
    size = math.prod(shape)
    if size > MAX_TABLE_ELEMENTS:
        op.over(too_large(size), "constant_elements", MAX_TABLE_ELEMENTS, size)
    return Known(array_of(attribute, wanted.dtype).reshape(shape), wanted.dtype)


def _broadcast(op: Op) -> Value:
    return broadcast(op.tensor(0), op.static_shape(), op.integers("broadcast_dimensions"))


def broadcast(x: Tensor, shape: Sequence[Dim], axes: Sequence[int]) -> Tensor:
    """Broadcast `x` to `shape`, with its axes at `axes`; repeat along all others, and along axes of one element."""
    if not x.shape:
        return build.expand(x, list(shape))
    inner: list[Dim] = [1] * len(shape)
    for own, axis in enumerate(axes):
        inner[axis] = x.shape[own]
    order = sorted(range(len(axes)), key=lambda own: axes[own])
    return x.permute(order).reshape(inner).expand(list(shape))


def _reshape(op: Op) -> Value:
    return op.tensor(0).reshape(list(op.static_shape()))


def _transpose(op: Op) -> Value:
    return op.tensor(0).permute(op.integers("permutation"))


def _slice(op: Op) -> Value:
    names = ("start_indices", "limit_indices", "strides")
    parts = zip(*(op.integers(name) for name in names), strict=True)
    return op.tensor(0)[tuple(slice(*each) for each in parts)]


def _concatenate(op: Op) -> Value:
    return build.cat(op.tensors(), op.integer("dimension"))


def _reverse(op: Op) -> Value:
    return op.tensor(0).flip(op.integers("dimensions"))


def _pad(op: Op) -> Value:
    low, high, between = (op.integers(name) for name in _PADDINGS)
    return padded(op, op.tensor(0), list(zip(low, high, strict=True)), between, op.operands[1])


_PADDINGS: Final = ("edge_padding_low", "edge_padding_high", "interior_padding")


def padded(op: Op, x: Tensor, edges: Sequence[tuple[Dim, Dim]], between: Sequence[int], fill: Value) -> Tensor:
    """Pad `x` with `fill` between neighbours and at its edges; negative widths crop."""
    if isinstance(fill, Known) and not fill.is_symbolic and _is_plain(fill.splat):
        return _padded(x, edges, between, fill.splat.item())
    inside = build.ones(op.builder, x.shape, DType.BOOL)
    return build.where(_padded(inside, edges, between, 0), _padded(x, edges, between, 0), op.element(fill))


def _is_plain(value: Any) -> bool:
    """Whether a fill is known and not -0, which padding does not distinguish from 0."""
    return value is not None and not (value == 0 and math.copysign(1.0, float(value)) < 0)


def _padded(x: Tensor, edges: Sequence[tuple[Dim, Dim]], between: Sequence[int], fill: bool | int | float) -> Tensor:
    for axis, gap in enumerate(between):
        x = spreading.spread(x, axis, gap + 1, fill)
    return spreading.padded(x, edges, fill)


def _iota(op: Op) -> Value:
    return iota(op.builder, op.static_shape(), op.integer("iota_dimension"), op.result().dtype)


def iota(builder: Builder, shape: Sequence[Dim], axis: int, dtype: DType) -> Tensor:
    """The position of each element along an axis; integers wrap, and floats are rounded."""
    length = shape[axis]
    is_exact = dtype in _COUNTING and builder.bounds(length)[1] <= _EXACT
    counted = build.arange(builder, length, dtype) if is_exact else build.arange(builder, length).cast(dtype)
    return broadcast(counted, shape, [axis])


def _identity(op: Op) -> Sequence[Value]:
    return op.operands


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": _identity,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}

ANYWHERE: Final[dict[str, Translator]] = {"stablehlo.constant": _constant}
"""Also valid in regions on scalars."""
