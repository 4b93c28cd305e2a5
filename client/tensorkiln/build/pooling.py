"""Pooling over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..dtypes import DType
from ..expr import Dim, add, ceildiv, mul, sub
from .arithmetic import divide
from .arithmetic import mul as multiply
from .conversion import cast, widened
from .convolution import SpatialPadding, spatial_padding
from .filled import ones
from .movement import reshape
from .operands import need, require_tensor
from .padding import pad
from .reduction import max_, sum_
from .shape import at_least, at_most
from .windows import PerAxis, Window, plain_windows, window

if TYPE_CHECKING:
    from .builder import Builder
    from .tensor import Tensor


_MOST_COUNTED = 1 << 22
"""The most positions of an axis times elements of a window for which window sizes are counted when building."""

Pair: TypeAlias = "tuple[Dim, Dim]"


def max_pool(
    x: Tensor,
    size: PerAxis,
    stride: PerAxis | None = None,
    padding: SpatialPadding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    *,
    rank: int,
) -> Tensor:
    """The greatest element of each window over the last `rank` axes; padding never wins, and NaN does.

    `stride` is `size` unless told otherwise. With `ceil_mode`, a last window that starts inside the tensor or its
    leading padding counts even where it overhangs the end.
    """
    require_tensor(x, "max_pool")
    over = window(x, size, size if stride is None else stride, dilation, rank)
    widths = _widths(x, over, spatial_padding(x, padding, rank), ceil_mode)
    lead = len(x.shape) - rank
    padded = pad(x, [*((0, 0) for _ in range(lead)), *widths], x.dtype.min)
    return max_(plain_windows(padded, over), range(lead + rank, lead + 2 * rank))


def avg_pool(
    x: Tensor,
    size: PerAxis,
    stride: PerAxis | None = None,
    padding: SpatialPadding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    count_padding: bool = False,
    *,
    rank: int,
) -> Tensor:
    """The mean of each window over the last `rank` axes, of the elements inside the tensor alone.

    With `count_padding` the padding counts as zeros, but not what `ceil_mode` adds beyond it.
    """
    require_tensor(x, "avg_pool")
    need(x, "avg_pool", floats=True)
    over = window(x, size, size if stride is None else stride, dilation, rank)
    given = spatial_padding(x, padding, rank)
    widths = _widths(x, over, given, ceil_mode)
    lead = len(x.shape) - rank
    wide = widened(x)
    padded = pad(wide, [*((0, 0) for _ in range(lead)), *widths])
    total = sum_(plain_windows(padded, over), range(lead + rank, lead + 2 * rank))
    counted: Sequence[Pair] = given if count_padding else [(0, 0)] * rank
    return cast(divide(total, _counts(wide, over, counted, widths)), x.dtype)


def _widths(x: Tensor, over: Window, given: Sequence[Pair], ceil_mode: bool) -> list[tuple[Dim, Dim]]:
    widths: list[tuple[Dim, Dim]] = list(given)
    if not ceil_mode:
        return widths
    spatial = x.shape[-len(given) :]
    return [
        (before, add(after, _overhang(x, dim, before, after, reach, stride)))
        for dim, (before, after), reach, stride in zip(spatial, given, over.reach, over.stride, strict=True)
    ]


def _overhang(x: Tensor, dim: Dim, before: Dim, after: Dim, reach: int, stride: int) -> Dim:
    """Elements beyond the trailing padding that the last window needs, by rounding the count of windows up."""
    length = add(dim, before, after)
    count = add(ceildiv(sub(length, reach), stride), 1)
    # A window must not start in the trailing padding or beyond.
    count = at_most(x.builder, count, ceildiv(add(dim, before), stride))
    return at_least(x.builder, sub(add(mul(sub(count, 1), stride), reach), length), 0)


def _counts(x: Tensor, over: Window, counted: Sequence[Pair], widths: Sequence[Pair]) -> Tensor:
    """The number of elements that each window averages: one factor per axis; a constant if it is uniform."""
    spatial = x.shape[-len(widths) :]
    constant = 1
    tables: list[Tensor] = []
    for axis, dim in enumerate(spatial):
        along = Window(over.size[axis : axis + 1], over.stride[axis : axis + 1], over.dilation[axis : axis + 1])
        if widths[axis] == counted[axis]:
            constant *= along.size[0]
            continue
        counts = _axis_counts(x.builder, x.dtype, dim, along, counted[axis], widths[axis])
        tables.append(reshape(counts, (*counts.shape, *(1 for _ in spatial[axis + 1 :]))))
    if not tables:
        return x.builder.scalar(constant, x.dtype)
    every = reduce(multiply, tables)
    return every if constant == 1 else multiply(every, constant)


def _axis_counts(builder: Builder, dtype: DType, dim: Dim, over: Window, counted: Pair, widths: Pair) -> Tensor:
    """The number of counted elements in each window of one axis: a table if static, else a pooling of ones."""
    countable = add(dim, *counted)
    around = (sub(widths[0], counted[0]), sub(widths[1], counted[1]))
    before, after = around
    if (
        not (isinstance(countable, int) and isinstance(before, int) and isinstance(after, int))
        or (countable + before + after) * over.size[0] > _MOST_COUNTED
    ):
        return sum_(plain_windows(pad(ones(builder, [countable], dtype), [around]), over), 1)
    line = np.pad(np.ones(countable, np.int64), [(before, after)])
    starts = np.arange(0, len(line) - over.reach[0] + 1, over.stride[0])
    taps = np.arange(over.size[0]) * over.dilation[0]
    return builder.constant(line[starts[:, None] + taps].sum(axis=1).astype(dtype.numpy), dtype)


def max_pool2d(
    x: Tensor,
    size: PerAxis,
    stride: PerAxis | None = None,
    padding: SpatialPadding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """`max_pool` over the last two axes."""
    return max_pool(x, size, stride, padding, dilation, ceil_mode, rank=2)


def avg_pool2d(
    x: Tensor,
    size: PerAxis,
    stride: PerAxis | None = None,
    padding: SpatialPadding = 0,
    ceil_mode: bool = False,
    count_padding: bool = True,
) -> Tensor:
    """`avg_pool` over the last two axes."""
    return avg_pool(x, size, stride, padding, 1, ceil_mode, count_padding, rank=2)
