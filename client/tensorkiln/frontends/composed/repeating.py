"""Steps that a loop repeats over the columns of matrices, and the columns and rows that a step reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ... import build
from ...build import Builder, Tensor
from ...dtypes import DType
from ...expr import Dim, minimum, product
from .placing import put

ROWS: Final = 1
COLUMNS: Final = 2
"""The axes of a batch of matrices."""

Step = Callable[..., Sequence[Tensor]]


def repeated(count: Dim, step: Step, carried: Sequence[Tensor], reads: Sequence[Tensor] = ()) -> list[Tensor]:
    """The carried tensors after `step(turn, *carried, *reads)` for each turn from 0 to `count`, an int64 of rank 0."""
    builder = carried[0].builder
    first = build.zeros(builder, (), DType.INT64)

    def goes_on(turn: Tensor, *_: Tensor) -> Tensor:
        return turn < build.dim_value(turn.builder, count)

    def once(turn: Tensor, *given: Tensor) -> list[Tensor]:
        return [turn + 1, *step(turn, *given)]

    most = max(1, builder.bounds(count)[1])
    _, *found = build.while_loop(goes_on, once, [first, *carried], reads, most=most)
    return found


def as_batch(x: Tensor) -> Tensor:
    """(..., rows, columns) to (batch, rows, columns)."""
    return x.reshape([product(x.shape[:-2]), *x.shape[-2:]])


def counted(builder: Builder, extent: Dim, axis: int) -> Tensor:
    """The places along an axis of a batch of matrices: (1, extent, 1) or (1, 1, extent), int64."""
    return build.arange(builder, extent).reshape([1, extent, 1] if axis == ROWS else [1, 1, extent])


def part(x: Tensor, turn: Tensor, axis: int) -> Tensor:
    """The row or column of each matrix at a place, which keeps the axis with the extent 1."""
    return build.take(x, turn.reshape([1]), axis)


def with_part(x: Tensor, turn: Tensor, update: Tensor, axis: int) -> Tensor:
    """The matrices with another row or column at a place."""
    return put(x, turn.reshape([1, 1, 1]).expand(update.shape), update, axis)


def diagonal(x: Tensor) -> Tensor:
    """The elements on the diagonal of each matrix: (..., rows, columns) to (..., least of both)."""
    rows, columns = x.shape[-2:]
    by_column = build.where(on_diagonal(x.builder, rows, columns), x, 0).sum([-2])
    return by_column if rows == columns else by_column[..., : minimum(rows, columns)]


def on_diagonal(builder: Builder, rows: Dim, columns: Dim) -> Tensor:
    """Whether an element is on the diagonal: (rows, columns), bool."""
    return build.equal(build.arange(builder, rows).unsqueeze([-1]), build.arange(builder, columns))


def unit(builder: Builder, shape: Sequence[Dim], dtype: DType) -> Tensor:
    """Matrices (..., rows, columns) with ones on the diagonal and zeros elsewhere."""
    return on_diagonal(builder, *shape[-2:]).cast(dtype).expand(list(shape))


def first_true(x: Tensor) -> Tensor:
    """The number of the first true element along the last axis, from 1 on, as an int32; 0 if none is true."""
    place = build.argmax(x.cast(DType.INT32), -1).cast(DType.INT32)
    return build.where(x.any([-1]), place + 1, 0)
