"""Tensors of one value, and of counting values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import DType
from ..expr import Dim, ceildiv
from .arithmetic import add
from .builder_argument import require_builder
from .element_type import DTypeLike, element_type
from .movement import expand, reshape, shrink

if TYPE_CHECKING:
    from .builder import Builder
    from .operands import Scalar
    from .shape import ShapeLike
    from .tensor import Tensor

_TABLE = 8192
"""Numbers of a table. Reads of one table are in vectors; a sum of two, at a quotient and a remainder, is not."""


def full(builder: Builder, shape: ShapeLike, value: Scalar, dtype: DTypeLike) -> Tensor:
    """A tensor of the shape with every element `value`: one constant, expanded."""
    require_builder(builder, "full")
    dims = builder.shape(shape)
    scalar = builder.scalar(value, element_type(dtype, builder.error))
    return expand(reshape(scalar, (1,) * len(dims)), dims) if dims else scalar


def zeros(builder: Builder, shape: ShapeLike, dtype: DTypeLike = DType.FLOAT32) -> Tensor:
    """A tensor of zeros, or of false."""
    require_builder(builder, "zeros")
    kind = element_type(dtype, builder.error)
    return full(builder, shape, False if kind.is_bool else 0, kind)


def ones(builder: Builder, shape: ShapeLike, dtype: DTypeLike = DType.FLOAT32) -> Tensor:
    """A tensor of ones, or of true."""
    require_builder(builder, "ones")
    kind = element_type(dtype, builder.error)
    return full(builder, shape, True if kind.is_bool else 1, kind)


def arange(builder: Builder, stop: Dim | str, dtype: DTypeLike = DType.INT64) -> Tensor:
    """0, 1, …, stop - 1 in `dtype`, for a static or symbolic `stop`.

    Counting has no node of its own: a table of 8192 numbers is added to the multiples of 8192, which are counted the
    same way, so that n numbers take n additions. InvalidGraphError when the dtype cannot hold them.
    """
    require_builder(builder, "arange")
    kind = element_type(dtype, builder.error)
    (length,) = builder.shape([stop])
    largest = builder.bounds(length)[1] - 1
    if not (kind.is_float or kind.is_integer) or (kind.is_integer and largest > kind.max):
        raise builder.error(f"{kind} does not hold the numbers up to {largest}")
    return _count(builder, length, kind, 1)


def _count(builder: Builder, length: Dim, dtype: DType, step: int) -> Tensor:
    most = builder.bounds(length)[1]
    if most <= _TABLE:
        return shrink(_table(builder, max(most, 1), dtype, step), [(0, length)])
    rows = ceildiv(length, _TABLE)
    starts = reshape(_count(builder, rows, dtype, step * _TABLE), rows, 1)
    numbers = add(starts, reshape(_table(builder, _TABLE, dtype, step), 1, _TABLE))
    return shrink(reshape(numbers, rows * _TABLE), [(0, length)])


def _table(builder: Builder, length: int, dtype: DType, step: int) -> Tensor:
    return builder.constant((np.arange(length) * step).astype(dtype.numpy), dtype)
