"""Loops whose turns update rows of what they carry: in place, from one another, and in loops inside of loops.

Sums are of integers, products of signs, and floats are scaled, shifted and compared, so that every result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, while_loop
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .composer import Composer

_DTYPES = (*[DType.INT32] * 2, *[DType.FLOAT32] * 2, DType.INT64, DType.BOOL, DType.INT8, DType.FLOAT16, DType.FLOAT64)
_ROWS = (3, 4, 1, 2, 5, 8)
_WIDTHS = (4, 3, 1, 8, 17, 20)
_TURNS = (3, 1, 2, 4, 5, 0)
_REDUCTIONS = ("none", "none", "none", "max", "min", "add")
_INDEX = DType.INT32


def repeated(composer: Composer) -> Sequence[Tensor]:
    """One loop or two behind one another, what they read, and what is made of their results."""
    rows, width = composer.dim(_ROWS, 8), composer.pick(_WIDTHS)
    shapes: list[tuple[Dim, ...]] = [(rows, width), (rows, width), (width,), (rows,), (), (2, rows, width), (4, 4)]
    shapes.append((width, width))
    dtypes = [composer.pick(_DTYPES) for _ in range(2)]
    pool = [composer.input(composer.pick(dtypes), composer.pick(shapes)) for _ in range(composer.pick([2, 1, 3, 4]))]
    pool.append(composer.input(_INDEX, ()))
    made: list[Tensor] = []
    for _ in range(composer.pick([1, 1, 2])):
        carried = [composer.pick([*pool, *made]) for _ in range(composer.pick([2, 1, 3, 4]))]
        reads = [composer.pick([*pool, *made]) for _ in range(composer.pick([1, 0, 2]))]
        made += _loop(composer, carried, reads, depth=0)
    if composer.flag():
        made.append(_changed(composer, composer.pick(made)))
    return [composer.pick(pool), *made]


def _loop(composer: Composer, carried: Sequence[Tensor], reads: Sequence[Tensor], depth: int) -> list[Tensor]:
    """A few turns; the results in the order of `carried`."""
    builder, count = carried[0].builder, len(carried)
    first, limit = builder.constant(composer.pick([0, 0, 1])), builder.constant(composer.pick(_TURNS))
    steps = composer.pick([3, 1, 2, 4, 6])

    def goes_on(turn: Tensor, *values: Tensor) -> Tensor:
        return turn < values[-1]

    def body(turn: Tensor, *values: Tensor) -> list[Tensor]:
        pool = [*values[:-1], turn]
        for _ in range(steps):
            pool.append(_step(composer, pool, turn, depth))
        return [turn + 1, *(composer.pick(_alike(each, pool)) for each in values[:count])]

    return list(while_loop(goes_on, body, [first, *carried], [*reads, limit]))[1:]


def _alike(x: Tensor, pool: Sequence[Tensor]) -> list[Tensor]:
    """Those of its shape and dtype, the newest first."""
    return [each for each in reversed(pool) if (each.shape, each.dtype) == (x.shape, x.dtype)]


def _step(composer: Composer, pool: Sequence[Tensor], turn: Tensor, depth: int) -> Tensor:
    x = composer.pick(pool)
    if not x.shape:
        return _changed(composer, x)
    if depth == 0 and composer.integer(0, 9) == 9:
        return _loop(composer, [x], [composer.pick(pool)], depth + 1)[0]
    return composer.pick(_STEPS)(composer, x, pool, turn)


def _changed(composer: Composer, x: Tensor) -> Tensor:
    if x.dtype.is_bool:
        return ~x
    if x.dtype.is_float:
        return composer.pick([lambda y: y * 0.5 + 1.0, lambda y: kiln.where(y < 0.5, y * 2.0, -y)])(x)
    return composer.pick([lambda y: y * 3 + 1, lambda y: kiln.where(y < 3, y + 5, -y)])(x)


def _place(composer: Composer, pool: Sequence[Tensor], turn: Tensor) -> Tensor:
    """Which row: the turn's or one beside it, the same in each turn, or what has been computed; perhaps none."""
    computed = [each for each in pool if not each.shape and each.dtype is _INDEX]
    return composer.pick([turn, turn, turn + 1, turn - 1, turn * 2, 3 - turn, turn * 0 + 1, composer.pick(computed)])


def _row(x: Tensor, place: Tensor) -> Tensor:
    index = place.reshape([1] * len(x.shape)).expand([1, *x.shape[1:]])
    return kiln.gather(x, index, 0).reshape(x.shape[1:])


def _updated(composer: Composer, x: Tensor, pool: Sequence[Tensor], turn: Tensor) -> Tensor:
    """One row is another one, perhaps changed, or combined with what is there."""
    rows = [each for each in pool if (each.shape, each.dtype) == (x.shape[1:], x.dtype)]
    row = composer.pick([_row(composer.pick(_alike(x, pool)), _place(composer, pool, turn)), *rows])
    row = _changed(composer, row) if composer.flag() else row
    # A row is combined with one update, which is exact.
    reduction = "none" if x.dtype.is_bool else composer.pick(_REDUCTIONS)
    index = _place(composer, pool, turn).reshape([1] * len(x.shape)).expand([1, *x.shape[1:]])
    return kiln.scatter(index, row.reshape([1, *x.shape[1:]]), 0, into=x, reduction=reduction)


def _column_updated(composer: Composer, x: Tensor, pool: Sequence[Tensor], turn: Tensor) -> Tensor:
    if len(x.shape) != 2:
        return _updated(composer, x, pool, turn)
    source, target = (_place(composer, pool, turn).reshape([1, 1]).expand([x.shape[0], 1]) for _ in range(2))
    column = kiln.gather(composer.pick(_alike(x, pool)), source, 1)
    return kiln.scatter(target, _changed(composer, column), 1, into=x)


def _read(composer: Composer, x: Tensor, pool: Sequence[Tensor], turn: Tensor) -> Tensor:
    return _row(x, _place(composer, pool, turn))


def _whole(composer: Composer, x: Tensor, pool: Sequence[Tensor], _turn: Tensor) -> Tensor:
    other = composer.pick(_alike(x, pool))
    if x.dtype.is_bool:
        return x ^ other
    return composer.pick([lambda: x + other, lambda: kiln.maximum(x, other), lambda: _changed(composer, x)])()


def _moved(composer: Composer, x: Tensor, _pool: Sequence[Tensor], _turn: Tensor) -> Tensor:
    if len(x.shape) == 2 and x.shape[0] == x.shape[1] and composer.flag():
        return kiln.transpose(x)
    if composer.b.bounds(x.shape[0])[0] > 1 and composer.flag():
        return kiln.cat([x[1:], x[:1]], 0)
    return kiln.flip(x, composer.integer(0, len(x.shape) - 1))


def _reduced(composer: Composer, x: Tensor, _pool: Sequence[Tensor], _turn: Tensor) -> Tensor:
    axis = composer.integer(0, len(x.shape) - 1)
    return x.sum(axis) if x.dtype.is_integer and composer.flag() else x.max(axis)


def _multiplied(composer: Composer, x: Tensor, pool: Sequence[Tensor], turn: Tensor) -> Tensor:
    """The signs of `x` by those of a square matrix."""
    wide = (x.shape[-1], x.shape[-1])
    squares = [each for each in pool if each.shape == wide]
    if len(x.shape) != 2 or x.dtype.is_bool or not squares:
        return _whole(composer, x, pool, turn)
    return _signs(x, x.dtype) @ _signs(composer.pick(squares), x.dtype)


def _signs(x: Tensor, dtype: DType) -> Tensor:
    is_positive = x if x.dtype.is_bool else kiln.less(0, x)
    return kiln.where(is_positive, x.builder.constant(1, dtype), -1)


_STEPS: Sequence[Callable[[Composer, Tensor, Sequence[Tensor], Tensor], Tensor]] = (
    *[_updated] * 4,
    _column_updated,
    _read,
    _whole,
    _moved,
    _reduced,
    *[_multiplied] * 2,
)
