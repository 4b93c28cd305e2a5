"""Eigenvalues and singular values by Jacobi's rotations: each turn rotates all columns, in pairs.

The pairs change as in a tournament in which each column meets each other once.
"""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .ranking import first_in_order
from .reflections import orthogonal, reflected
from .refusal import Refusal, unsupported
from .repeating import COLUMNS, ROWS, as_batch, counted, diagonal, on_diagonal, unit

MOST_ROTATED: Final = 1 << 10
"""The most columns, since the time grows with their cube."""
SWEEPS: Final = 30
"""The most times that each column meets each other; ten are rarely exceeded."""


def eigenvectors(x: Tensor, *, refuse: Refusal = unsupported) -> tuple[Tensor, Tensor]:
    """The eigenvalues (..., n) of symmetric matrices (..., n, n), ascending, and eigenvectors in columns (..., n, n).

    The lower triangle is read. `refuse` is called unless n is static, and at most `MOST_ROTATED`.
    """
    outer, (size, _) = x.shape[:-2], _require_static(x, refuse)
    if size == 0:
        return build.zeros(x.builder, [*outer, 0], x.dtype), x
    lower = as_batch(x)
    rows, columns = counted(x.builder, size, ROWS), counted(x.builder, size, COLUMNS)
    matrices = _evened(build.where(rows >= columns, lower, build.transpose(lower, ROWS, COLUMNS)), size, ROWS)
    even = size + size % 2
    vectors = unit(x.builder, matrices.shape, x.dtype)
    smallest = _epsilon(x.dtype) ** 2

    def goes_on(turn: Tensor, left: Tensor, *_: Tensor) -> Tensor:
        squares = left * left
        off = build.where(on_diagonal(left.builder, even, even), 0, squares).sum([ROWS, COLUMNS])
        return (turn < SWEEPS * even) & (off > squares.sum([ROWS, COLUMNS]) * smallest).any()

    def step(turn: Tensor, left: Tensor, found: Tensor) -> list[Tensor]:
        other = _other(turn, even)
        own = diagonal(left).unsqueeze([ROWS])
        partner, row = other.reshape([1, 1, even]), counted(left.builder, even, ROWS)
        between = build.where(build.equal(row, partner), left, 0).sum([ROWS], keepdims=True)
        cosine, sine = _rotation(own, build.take(own, other, COLUMNS), between, other)
        turned = _turned(left, other, cosine, sine, COLUMNS)
        both = _turned(turned, other, build.transpose(cosine), build.transpose(sine), ROWS)
        # What a rotation removes is 0 but for rounding.
        cleared = build.where(build.equal(row, partner), 0, both)
        return [turn + 1, cleared, _turned(found, other, cosine, sine, COLUMNS)]

    first = build.zeros(x.builder, (), DType.INT64)
    _, left, found = build.while_loop(goes_on, step, [first, matrices, vectors], most=SWEEPS * even)
    values, places = first_in_order(diagonal(left)[..., :size], -1, size, False, refuse)
    chosen = places.unsqueeze([ROWS]).expand([found.shape[0], size, size])
    return values.reshape([*outer, size]), build.gather(found, chosen, COLUMNS).reshape([*outer, size, size])


def singular_values(
    x: Tensor, *, is_full: bool = False, refuse: Refusal = unsupported
) -> tuple[Tensor, Tensor, Tensor]:
    """U (..., m, k), the k singular values (..., k), descending, and the transpose of V (..., k, n), of (..., m, n).

    k is the least of m and n. With `is_full`, U is (..., m, m), and the last (..., n, n). `refuse` is called unless m
    and n are static, and at most `MOST_ROTATED`.
    """
    outer, (height, width) = x.shape[:-2], _require_static(x, refuse)
    if height < width:
        left, values, right = singular_values(build.transpose(x), is_full=is_full, refuse=refuse)
        return build.transpose(right), values, build.transpose(left)
    matrices = _evened(as_batch(x), width, COLUMNS)
    even = width + width % 2
    batch = matrices.shape[0]
    smallest = _epsilon(x.dtype)

    def goes_on(turn: Tensor, _: Tensor, __: Tensor, worst: Tensor) -> Tensor:
        # Only after a whole sweep is what it met the worst of all pairs.
        is_within = ~build.equal(turn % (even - 1), 0) if even > 2 else build.equal(turn, 0)
        return (turn < SWEEPS * even) & (is_within | (worst > smallest).any() | build.equal(turn, 0))

    def step(turn: Tensor, left: Tensor, found: Tensor, worst: Tensor) -> list[Tensor]:
        other = _other(turn, even)
        squares = (left * left).sum([ROWS], keepdims=True)
        others = build.take(squares, other, COLUMNS)
        between = (left * build.take(left, other, COLUMNS)).sum([ROWS], keepdims=True)
        sizes = build.sqrt(squares) * build.sqrt(others)
        angle = build.where(sizes > 0, build.absolute(between) / sizes, 0).max([COLUMNS], keepdims=True)
        is_first = build.equal(turn % (even - 1), 0)
        cosine, sine = _rotation(squares, others, between, other)
        moved = [_turned(each, other, cosine, sine, COLUMNS) for each in (left, found)]
        return [turn + 1, *moved, build.maximum(build.where(is_first, 0, worst), angle)]

    first, none = build.zeros(x.builder, (), DType.INT64), build.zeros(x.builder, [batch, 1, 1], x.dtype)
    vectors = unit(x.builder, [batch, even, even], x.dtype)
    most = SWEEPS * even
    _, left, found, _ = build.while_loop(goes_on, step, [first, matrices, vectors, none], most=most)
    sizes = build.sqrt((left * left).sum([ROWS]))[..., :width]
    values, places = first_in_order(sizes, -1, width, True, refuse)

    def ordered(each: Tensor) -> Tensor:
        rows = each.shape[ROWS]
        return build.gather(each, places.unsqueeze([ROWS]).expand([batch, rows, width]), COLUMNS)

    # Columns of size 0 have no direction of their own: reflections give them one at right angles to the others.
    scaled = ordered(left) / build.where(build.equal(values, 0), 1, values).unsqueeze([ROWS])
    reflections, factors = reflected(scaled)
    wide = height if is_full else width
    signs = 1 - (diagonal(reflections) < 0).cast(x.dtype) * 2
    signs = build.pad(signs, [(0, 0), (0, wide - width)], 1)
    directions = orthogonal(reflections, factors, wide) * signs.unsqueeze([ROWS])
    right = build.transpose(ordered(found[:, :width]), ROWS, COLUMNS)
    return (
        directions.reshape([*outer, height, wide]),
        values.reshape([*outer, width]),
        right.reshape([*outer, width, width]),
    )


def _rotation(own: Tensor, other: Tensor, between: Tensor, partner: Tensor) -> tuple[Tensor, Tensor]:
    """The cosine and sine of each column's rotation with its partner, which has the same with the opposite sine.

    It makes the element between both 0 (Golub and Van Loan, Matrix Computations, section 8.5).
    """
    is_zero = build.equal(between, 0)
    ratio = (other - own) / build.where(is_zero, 1, 2 * between)
    is_first = counted(own.builder, own.shape[COLUMNS], COLUMNS) < partner.reshape([1, 1, -1])
    is_forward = (ratio > 0) | (build.equal(ratio, 0) & is_first)
    sign = is_forward.cast(own.dtype) * 2 - 1
    size = build.absolute(ratio)
    # Of a large ratio the square overflows, and the root is the ratio itself.
    root = build.where(size > 1e15, size, build.sqrt(1 + build.minimum(size, 1e15) * build.minimum(size, 1e15)))
    tangent = build.where(is_zero, 0, sign / (size + root))
    cosine = 1 / build.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine


def _turned(x: Tensor, other: Tensor, cosine: Tensor, sine: Tensor, axis: int) -> Tensor:
    return cosine * x - sine * build.take(x, other, axis)


def _other(turn: Tensor, even: int) -> Tensor:
    """The partner of each of an even number of columns in a turn of the tournament, (even,)."""
    builder, rest = turn.builder, even - 1
    places, now = build.arange(builder, even), turn % rest if rest > 1 else turn * 0
    met = (now - places + 2 * rest) % rest
    last = (now * (even // 2)) % rest
    return build.where(build.equal(places, rest), last, build.where(build.equal(met, places), rest, met))


def _evened(x: Tensor, size: int, axis: int) -> Tensor:
    """With one more column of zeros if their number is odd, and with `axis` rows, also one more row."""
    more = (0, size % 2)
    return build.pad(x, [(0, 0), more if axis == ROWS else (0, 0), more])


def _epsilon(dtype: DType) -> float:
    return 2.0**-52 if dtype is DType.FLOAT64 else 2.0**-23


def _require_static(x: Tensor, refuse: Refusal) -> tuple[int, int]:
    """The numbers of rows and columns."""
    height, width = x.shape[-2:]
    if isinstance(height, int) and isinstance(width, int) and max(height, width) <= MOST_ROTATED:
        return height, width
    refuse(
        f"matrices of ({height}, {width}) are not rotated, only static ones, of up to {MOST_ROTATED} rows and columns"
    )
