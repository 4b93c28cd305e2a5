"""LU factors with partial pivoting: a loop eliminates one column per turn."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import minimum
from .repeating import COLUMNS, ROWS, as_batch, counted, part, repeated, with_part


def lu(x: Tensor) -> tuple[Tensor, Tensor]:
    """The LU factors of matrices (..., n, m) in one matrix, and the int64 row exchanges (..., least of n and m).

    U is on and above the diagonal, L below it; L has ones on the diagonal. Row k was exchanged with the row of the k-th
    exchange, one after the other. A column without a number other than 0 stays as it is.
    """
    *outer, height, width = x.shape
    matrices = as_batch(x)
    count = minimum(height, width)

    def step(turn: Tensor, left: Tensor, exchanges: Tensor) -> list[Tensor]:
        rows, columns = (counted(left.builder, dim, axis) for dim, axis in ((height, ROWS), (width, COLUMNS)))
        sizes = build.where(rows >= turn, build.absolute(part(left, turn, COLUMNS)), -1)
        chosen = build.argmax(sizes, ROWS, keepdims=True).cast(DType.INT64)
        top = build.gather(left, chosen.expand([left.shape[0], 1, width]), ROWS)
        exchanged = build.where(
            build.equal(rows, turn), top, build.where(build.equal(rows, chosen), part(left, turn, ROWS), left)
        )
        pivot = part(top, turn, COLUMNS)
        factors = part(exchanged, turn, COLUMNS) / build.where(build.equal(pivot, 0), 1, pivot)
        below = build.where(build.equal(columns, turn), factors, exchanged - factors * top)
        after = build.where((rows > turn) & (columns >= turn), below, exchanged)
        return [after, with_part(exchanges, turn, chosen, COLUMNS)]

    none = build.zeros(x.builder, [matrices.shape[0], 1, count], DType.INT64)
    factors, exchanges = repeated(count, step, [matrices, none])
    return factors.reshape(x.shape), exchanges.reshape([*outer, count])


def exchanged(x: Tensor, exchanges: Tensor, *, is_undone: bool = False) -> Tensor:
    """The rows of matrices (..., n, m) after the exchanges of `lu`, (..., k), or in the order before these."""
    count = exchanges.shape[-1]

    def step(turn: Tensor, left: Tensor, exchanges: Tensor) -> list[Tensor]:
        at = build.dim_value(turn.builder, count) - 1 - turn if is_undone else turn
        other = part(exchanges, at, COLUMNS)
        rows = counted(left.builder, left.shape[ROWS], ROWS)
        taken = build.gather(left, other.expand([left.shape[0], 1, left.shape[COLUMNS]]), ROWS)
        moved = build.where(build.equal(rows, other), part(left, at, ROWS), left)
        return [build.where(build.equal(rows, at), taken, moved)]

    (found,) = repeated(count, step, [as_batch(x)], [as_batch(exchanges.unsqueeze([-2]))])
    return found.reshape(x.shape)
