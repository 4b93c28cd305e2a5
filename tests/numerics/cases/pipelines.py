"""Movement into arithmetic into reductions, concatenation, gathers: exact in every order, so compared exactly."""

from __future__ import annotations

from collections.abc import Callable

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, mul

from .arithmetic import binop, over_last, repeated, reshape, unary, where
from .conversion import cast
from .family import INTEGERS, STORED, VALUES
from .indexing import gathered, scattered
from .movement import STEPS, cat, maximum_extent, moved, pad_by, shrink_to
from .reduction import reduced, some_axes
from .shapes import extent, shape
from .sketch import Sketch
from .views import viewed

_EXACT_OPS = {False: ("max", "min", "add", "mul"), True: ("max", "min", "add", "sub", "mul")}


def exact_op(sketch: Sketch, x: int, y: int) -> int:
    """An op that rounds nothing differently however it is scheduled."""
    return binop(sketch, sketch.pick(_EXACT_OPS[sketch.dtype(x).is_float]), x, y)


def movement_into_reduction(sketch: Sketch, dtype: DType) -> None:
    """Moved, combined with itself, reduced by max (exact in every order), combined again."""
    x = moved(sketch, sketch.input(dtype, shape(sketch, limit=100)))
    y = binop(sketch, "min", x, sketch.input(dtype, sketch.dims(x)))
    reduced_y = reduced(sketch, "max", y, some_axes(sketch, len(sketch.dims(y))), keep=sketch.flag())
    sketch.output(unary(sketch, "neg", reduced_y))


def grid_sum(sketch: Sketch, dtype: DType) -> None:
    """Sums of eighths: exact in float32 in any order, and rounded once in 16 bits."""
    x = moved(sketch, sketch.input(dtype, shape(sketch, limit=100), "grid"), most=3)
    total = reduced(sketch, "sum", x, some_axes(sketch, len(sketch.dims(x))), keep=sketch.flag())
    doubled = binop(sketch, "add", total, total)
    sketch.output(doubled, moved(sketch, doubled, most=2))


def reduction_spread_again(sketch: Sketch, dtype: DType) -> None:
    """Each row minus its greatest element."""
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=150))
    sketch.output(binop(sketch, "max" if dtype.is_bool else "sub", x, over_last(sketch, "max", x)))


def cat_of_movement(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1, high_rank=3, limit=40))
    parts = [x]
    for _ in range(sketch.integer(1, 2)):
        other = sketch.like("flip", x, in_var=x, axes=[sketch.integer(0, len(sketch.dims(x)) - 1)])
        parts.append(exact_op(sketch, other, x) if sketch.flag() else other)
    joined = cat(sketch, parts, sketch.integer(0, len(sketch.dims(x)) - 1))
    sketch.output(moved(sketch, unary(sketch, "neg", joined), most=2))


def gather_of_computed(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=100))
    computed = exact_op(sketch, x, sketch.input(dtype, sketch.dims(x)))
    taken = gathered(sketch, computed, sketch.integer(0, len(sketch.dims(x)) - 1))
    sketch.output(unary(sketch, "neg", taken))


def scatter_of_computed(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=80))
    updates = moved(sketch, exact_op(sketch, x, x), most=1)
    if not sketch.dims(updates):
        updates = reshape(sketch, updates, (1,))
    axis = sketch.integer(0, len(sketch.dims(updates)) - 1)
    whole = list(sketch.dims(updates))
    whole[axis] = extent(sketch, maximum_extent(sketch, whole, axis, 200))
    placed = scattered(sketch, updates, whole, axis)
    sketch.output(exact_op(sketch, placed, sketch.input(dtype, sketch.dims(placed))))


def pad_with_a_value(sketch: Sketch, dtype: DType) -> None:
    """A nonzero fill is spelled with a padded mask of ones."""
    x = sketch.input(dtype, shape(sketch, low_rank=1, high_rank=3, limit=40))
    is_nan = binop(sketch, "cmpne", x, x, DType.BOOL)
    inside = binop(sketch, "or", is_nan, unary(sketch, "neg", is_nan))
    pairs = [(sketch.integer(0, 2), sketch.integer(0, 2)) for _ in sketch.dims(x)]
    fill = sketch.input(dtype, ())
    filled = where(sketch, pad_by(sketch, inside, [*pairs]), pad_by(sketch, x, [*pairs]), fill)
    sketch.output(reduced(sketch, "max", filled, [0], keep=False), filled)


def view_into_arithmetic(sketch: Sketch, dtype: DType) -> None:
    x = viewed(sketch, dtype)
    y = exact_op(sketch, x, sketch.input(dtype, sketch.dims(x)))
    sketch.output(moved(sketch, y, most=2))


def shared_intermediate(sketch: Sketch, dtype: DType) -> None:
    """One value used as it is, moved, reduced and returned."""
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=80))
    y = exact_op(sketch, x, sketch.input(dtype, sketch.dims(x)))
    greatest = reduced(sketch, "max", y, [0], keep=True)
    sketch.output(y, greatest, moved(sketch, y, most=2), binop(sketch, "max", x, y))


def running_maximum(sketch: Sketch, dtype: DType) -> None:
    """Of windows that end at each element, spelled without a view."""
    size, width = extent(sketch, 9, sketch.symbolic), sketch.integer(1, 4)
    x = sketch.input(dtype, (sketch.integer(1, 3), size))
    windows = sheared_windows(sketch, pad_by(sketch, x, [(0, 0), (width - 1, 0)]), width, size)
    sketch.output(reduced(sketch, "max", windows, [1], keep=False))


def sheared_windows(sketch: Sketch, x: int, width: int, count: Dim) -> int:
    """From [rows, count + width - 1] to [rows, width, count], where [r, k, j] is x[r, j + k].

    Repeated rows, laid out one element longer than they are, shear by one element a row.
    """
    rows, total = sketch.dims(x)
    flat = reshape(sketch, repeated(sketch, x, 1, width), (rows, mul(width, total)))
    sheared = reshape(sketch, pad_by(sketch, flat, [(0, 0), (0, width)]), (rows, width, add(total, 1)))
    return shrink_to(sketch, sheared, [(0, rows), (0, width), (0, count)])


def many_conversions(sketch: Sketch, dtype: DType) -> None:
    x = moved(sketch, sketch.input(dtype, shape(sketch, limit=60)), most=1)
    for _ in range(sketch.integer(1, 4)):
        x = cast(sketch, x, sketch.pick(STORED))
        x = exact_op(sketch, x, x) if sketch.flag() and not sketch.dtype(x).is_narrow else x
    sketch.output(x)


def random_program(sketch: Sketch, dtype: DType) -> None:
    """A dozen random exact nodes over what is there already; some of it dead."""
    pool = [sketch.input(dtype, shape(sketch, limit=40)) for _ in range(2)]
    for _ in range(sketch.integer(3, 10)):
        x = sketch.pick(pool)
        pool.append(sketch.pick(_GROWERS)(sketch, x, pool))
    sketch.output(*sketch.pick([[pool[-1]], pool[-3:], [pool[-1], pool[0]]]))


def _grow_moved(sketch: Sketch, x: int, _pool: list[int]) -> int:
    return STEPS[sketch.pick(sorted(STEPS))](sketch, x)


def _grow_binop(sketch: Sketch, x: int, pool: list[int]) -> int:
    fitting = [y for y in pool if sketch.dims(y) == sketch.dims(x) or not sketch.dims(y)]
    return exact_op(sketch, x, sketch.pick(fitting))


def _grow_selected(sketch: Sketch, x: int, pool: list[int]) -> int:
    fitting = [y for y in pool if sketch.dims(y) == sketch.dims(x)]
    y = sketch.pick(fitting)
    return where(sketch, binop(sketch, "cmplt", x, y, sketch.pick([DType.BOOL, DType.UINT8])), y, x)


def _grow_reduced(sketch: Sketch, x: int, _pool: list[int]) -> int:
    return reduced(sketch, "max", x, some_axes(sketch, len(sketch.dims(x))), keep=sketch.flag())


def _grow_negated(sketch: Sketch, x: int, _pool: list[int]) -> int:
    return unary(sketch, "neg", x)


_GROWERS: list[Callable[[Sketch, int, list[int]], int]] = [
    _grow_moved,
    _grow_moved,
    _grow_binop,
    _grow_selected,
    _grow_reduced,
    _grow_negated,
]

NETWORKS = {
    "movement_into_reduction": (VALUES, movement_into_reduction),
    "grid_sum": (VALUES, grid_sum),
    "reduction_spread_again": (VALUES, reduction_spread_again),
    "cat_of_movement": (VALUES, cat_of_movement),
    "gather_of_computed": (VALUES, gather_of_computed),
    "scatter_of_computed": (VALUES, scatter_of_computed),
    "pad_with_a_value": (VALUES, pad_with_a_value),
    "view_into_arithmetic": (VALUES, view_into_arithmetic),
    "shared_intermediate": (VALUES, shared_intermediate),
    "running_maximum": (VALUES, running_maximum),
    "many_conversions": (STORED, many_conversions),
    "random_program": (VALUES, random_program),
    "random_integer_program": (INTEGERS, random_program),
}
