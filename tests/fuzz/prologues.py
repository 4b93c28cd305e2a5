"""Operands of a contraction: an input as it is, or what a few nodes make of one that has another layout or dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln.build import Tensor, cast, cat, clip, flip, pad, permute, relu, reshape, shrink, sigmoid, take, where
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, product

from .composer import Composer

Prologue = Callable[[Composer, DType, Sequence[Dim]], Tensor]


def operand(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """A tensor of that dtype and shape."""
    if not composer.flag():
        return composer.input(dtype, shape)
    return composer.pick([entry for entry in _PROLOGUES if entry is not _scaled or dtype.is_float])(
        composer, dtype, shape
    )


def _permuted(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    order = list(range(len(shape)))
    if len(shape) > 1:
        order[-2:] = reversed(order[-2:])
    if len(shape) > 2 and composer.flag():
        order = [*order[1:], order[0]]
    stored = [shape[order.index(axis)] for axis in range(len(shape))]
    return permute(composer.input(dtype, stored), order)


def _converted(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """A cast, from what the target converts as it packs or from what it does not."""
    return cast(composer.input(composer.pick(_SOURCES[dtype]), shape), dtype)


def _scaled(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """Dequantized: by one scale and zero point, or by a scale for each element of an axis."""
    stored = cast(composer.input(composer.pick([DType.INT8, DType.UINT8]), shape), dtype)
    if composer.flag():
        return (stored - 3) * 0.125
    axis = composer.integer(0, len(shape) - 1) if shape else 0
    sizes = [dim if place == axis else 1 for place, dim in enumerate(shape)]
    return stored * composer.input(dtype, sizes)


def _padded(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """Zeros at one end of an axis, where it is long enough for any symbol."""
    axis = composer.integer(0, len(shape) - 1) if shape else 0
    widths = [(0, 0)] * len(shape)
    inner = list(shape)
    if shape and isinstance(shape[axis], int) and composer.value(shape[axis]) > 2:
        widths[axis] = composer.pick([(1, 0), (0, 1), (1, 1)])
        inner[axis] = composer.value(shape[axis]) - sum(widths[axis])
    return pad(composer.input(dtype, inner), widths)


def _cut(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    before, after = composer.integer(0, 2), composer.integer(0, 2)
    axis = composer.integer(0, len(shape) - 1) if shape else 0
    whole = [dim + before + after if place == axis else dim for place, dim in enumerate(shape)]
    limits = [(before, before + dim) if place == axis else (0, dim) for place, dim in enumerate(shape)]
    return shrink(composer.input(dtype, whole), limits)


def _flipped(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    return flip(composer.input(dtype, shape), [composer.integer(0, len(shape) - 1)] if shape else [])


def _joined(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    axis = composer.integer(0, len(shape) - 1) if shape else 0
    if not shape or not isinstance(shape[axis], int) or shape[axis] == 1:
        return composer.input(dtype, shape)
    first = composer.integer(1, composer.value(shape[axis]) - 1)
    sizes = [first, composer.value(shape[axis]) - first]
    return cat([composer.input(dtype, [*shape[:axis], size, *shape[axis + 1 :]]) for size in sizes], axis)


def _flat(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    return reshape(composer.input(dtype, [product(shape)]), shape)


def _taken(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """Rows of a table, as in an embedding; an index outside gives zeros."""
    if not shape:
        return composer.input(dtype, shape)
    indices = composer.input(composer.pick([DType.INT32, DType.INT64]), shape[:1])
    return take(composer.input(dtype, [7, *shape[1:]]), indices)


def _computed(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    """What an activation makes of an input, or of two by a condition."""
    x = composer.input(dtype, shape)
    if composer.flag():
        return where(x < 0, composer.input(dtype, shape), x)
    return composer.pick([relu, sigmoid, lambda y: clip(y, -1, 1), lambda y: y * y])(x) if dtype.is_float else relu(x)


def _repeated(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    axis = composer.integer(0, len(shape) - 1) if shape else 0
    return composer.input(dtype, [1 if place == axis else dim for place, dim in enumerate(shape)]).expand(shape)


_PROLOGUES: tuple[Prologue, ...] = (
    _permuted,
    _converted,
    _scaled,
    _padded,
    _cut,
    _flipped,
    _joined,
    _flat,
    _taken,
    _computed,
    _repeated,
)

_NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.BOOL)
_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_SOURCES: dict[DType, Sequence[DType]] = {
    DType.FLOAT16: (DType.FLOAT32, DType.INT8, DType.BFLOAT16),
    DType.BFLOAT16: (DType.FLOAT32, DType.INT8, DType.FLOAT16),
    DType.FLOAT32: (*_HALVES, *_NARROW, DType.FLOAT64, DType.INT32),
    DType.FLOAT64: (*_HALVES, *_NARROW, DType.FLOAT32, DType.INT32),
    **dict.fromkeys((DType.INT8, DType.UINT8), (DType.INT16, DType.BOOL, DType.FLOAT32)),
    **dict.fromkeys((DType.INT16, DType.UINT16), (DType.INT8, DType.UINT8, DType.INT32)),
    **dict.fromkeys((DType.INT32, DType.UINT32, DType.INT64, DType.UINT64), (*_NARROW, DType.FLOAT32)),
}
