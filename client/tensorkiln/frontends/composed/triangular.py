"""Factors of symmetric matrices, and linear systems of triangular ones: a loop finds one row of the result per turn."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from .repeating import COLUMNS, ROWS, as_batch, counted, part, repeated, with_part


def cholesky(x: Tensor) -> Tensor:
    """The lower factors L of symmetric positive definite matrices (..., n, n), of which the lower triangle is read.

    L has zeros above the diagonal. If a matrix is not positive definite, the first element of L's diagonal that shows
    it is not greater than 0, or NaN.
    """
    size = x.shape[-1]
    columns = build.transpose(as_batch(x), ROWS, COLUMNS)

    def step(turn: Tensor, upper: Tensor, matrices: Tensor) -> list[Tensor]:
        # Row `turn` of the upper factor, from the rows above it.
        known = (part(upper, turn, COLUMNS) * upper).sum([ROWS], keepdims=True)
        row = part(matrices, turn, ROWS) - known
        places = counted(row.builder, size, COLUMNS)
        found = row / build.sqrt(part(row, turn, COLUMNS))
        return [with_part(upper, turn, build.where(places >= turn, found, 0), ROWS)]

    (upper,) = repeated(size, step, [build.zeros(x.builder, columns.shape, x.dtype)], [columns])
    return build.transpose(upper, ROWS, COLUMNS).reshape(x.shape)


def triangular_solution(x: Tensor, right: Tensor, *, is_lower: bool, is_unit: bool) -> Tensor:
    """The solutions (..., n, m) of `x @ solution = right`, for triangular matrices x (..., n, n).

    The other triangle of x is not read, nor its diagonal with `is_unit`, where it counts as ones.
    """
    size = x.shape[-1]

    def step(turn: Tensor, found: Tensor, matrices: Tensor, rights: Tensor) -> list[Tensor]:
        at = turn if is_lower else build.dim_value(turn.builder, size) - 1 - turn
        row, places = part(matrices, at, ROWS), counted(found.builder, size, COLUMNS)
        before = build.where(places < at if is_lower else places > at, row, 0)
        known = (build.transpose(before, ROWS, COLUMNS) * found).sum([ROWS], keepdims=True)
        rest = part(rights, at, ROWS) - known
        return [with_part(found, at, rest if is_unit else rest / part(row, at, COLUMNS), ROWS)]

    matrices, rights = as_batch(x), as_batch(right)
    (found,) = repeated(size, step, [build.zeros(x.builder, rights.shape, x.dtype)], [matrices, rights])
    return found.reshape(right.shape)
