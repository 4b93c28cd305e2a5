"""QR factors by reflections, as LAPACK stores them: a loop reflects by one column per turn."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...expr import Dim, minimum
from .repeating import COLUMNS, ROWS, as_batch, counted, part, repeated, unit, with_part


def reflected(x: Tensor) -> tuple[Tensor, Tensor]:
    """R and the reflections of matrices (..., m, n), as `geqrf` of LAPACK gives them, and their factors (..., k).

    R is on and above the diagonal. Below it, column j has the vector v of the reflection `1 - factor * v @ v.T`, from
    the element after its 1 on. k is the least of m and n.
    """
    *outer, height, width = x.shape
    matrices = as_batch(x)
    count = minimum(height, width)

    def step(turn: Tensor, left: Tensor, factors: Tensor) -> list[Tensor]:
        rows, columns = (counted(left.builder, dim, axis) for dim, axis in ((height, ROWS), (width, COLUMNS)))
        column = part(left, turn, COLUMNS)
        head, below = part(column, turn, ROWS), build.where(rows > turn, column, 0)
        # By the greatest element, so that squares neither overflow nor vanish.
        greatest = build.maximum(build.absolute(below).max([ROWS], keepdims=True), build.absolute(head))
        scale = build.where(build.equal(greatest, 0), 1, greatest)
        squares = ((below / scale) * (below / scale)).sum([ROWS], keepdims=True)
        is_done = build.equal(squares, 0)
        size = scale * build.sqrt(squares + (head / scale) * (head / scale))
        turned = build.where(is_done, head, build.where(head < 0, size, -size))
        factor = build.where(is_done, 0, (turned - head) / build.where(is_done, 1, turned))
        vector = build.where(
            build.equal(rows, turn), 1, build.where(is_done, 0, below / build.where(is_done, 1, head - turned))
        )
        moved = left - factor * vector * (vector * left).sum([ROWS], keepdims=True)
        own = build.where(rows > turn, vector, build.where(build.equal(rows, turn), turned, left))
        after = build.where(columns > turn, moved, build.where(build.equal(columns, turn), own, left))
        return [after, with_part(factors, turn, factor, COLUMNS)]

    none = build.zeros(x.builder, [matrices.shape[0], 1, count], x.dtype)
    found, factors = repeated(count, step, [matrices, none])
    return found.reshape(x.shape), factors.reshape([*outer, count])


def orthogonal(x: Tensor, factors: Tensor, width: Dim) -> Tensor:
    """The first `width` columns of Q (..., m, width), for the reflections and factors of `reflected`."""
    *outer, height, _ = x.shape
    count = factors.shape[-1]
    matrices, taken = as_batch(x), as_batch(factors.unsqueeze([-2]))

    def step(turn: Tensor, found: Tensor, reflections: Tensor, factors: Tensor) -> list[Tensor]:
        at = build.dim_value(turn.builder, count) - 1 - turn
        rows = counted(found.builder, height, ROWS)
        vector = build.where(build.equal(rows, at), 1, build.where(rows > at, part(reflections, at, COLUMNS), 0))
        inner = (vector * found).sum([ROWS], keepdims=True)
        return [found - part(factors, at, COLUMNS) * vector * inner]

    ones = unit(x.builder, [matrices.shape[0], height, width], x.dtype)
    (found,) = repeated(count, step, [ones], [matrices, taken])
    return found.reshape([*outer, height, width])
