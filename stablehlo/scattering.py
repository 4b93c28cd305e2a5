"""scatter and dynamic_update_slice: windows written at computed positions, or combined with the old elements."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, product
from tensorkiln.frontends.composed.placing import put

from .gathering import clamped, known_start
from .op import Op
from .positions import Windows, components, linear, to_int64
from .regions import is_second_argument, single_operation
from .table import Translator
from .value import Known, Value

_COMBINED: Final = {
    "stablehlo.add": "add",
    "stablehlo.and": "min",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "mul",
    "stablehlo.or": "max",
}
"""The reduction of a scatter, by the operation of its region; `and` and `or` only for bools."""
LARGE_PART: Final = 4
"""A loop stores the updates alone if they are less than one in so many of all elements."""
_OF_BOOLS_ALONE: Final = frozenset({"stablehlo.and", "stablehlo.or"})


def scatter(op: Op) -> Value:
    """Write or combine windows of updates. UnsupportedGraphError for a region that is neither, and not unique."""
    if op.result_count != 1:
        op.fail(f"a scatter into {op.result_count} tensors at once is not supported; scatter into each")
    x, indices, updates = op.tensors()
    numbers = stablehlo.ScatterDimensionNumbers(op.attribute("scatter_dimension_numbers"))
    indexed = list(numbers.scattered_dims_to_operand_dims)
    starts = components(indices, numbers.index_vector_dim)
    in_updates = list(numbers.update_window_dims)
    batching = list(numbers.input_batching_dims)
    dropped = {*numbers.inserted_window_dims, *batching}
    extended = [axis for axis in range(x.rank) if axis not in dropped]
    listed = [axis for axis in range(updates.rank) if axis not in in_updates]
    if 0 in updates.shape or 0 in x.shape:
        return x
    window = dict(zip(extended, in_updates, strict=True))
    begins = None if batching else _known_begins(op.operands[1], x, updates, indexed, window)
    if begins is not None and (not op.builder.is_inside or _is_large_part(updates, x)):
        return _on_a_part(op, x, updates, begins, window)
    if not batching and _are_rows(x, updates, indexed, dropped, window):
        return _by_rows(op, x, starts, updates, indexed, listed, in_updates)
    vector_axis = numbers.index_vector_dim
    shared = [listed[axis if axis < vector_axis else axis - 1] for axis in numbers.scatter_indices_batching_dims]
    windows = Windows(
        op.builder,
        x.shape,
        updates.shape,
        listed,
        starts,
        indexed,
        window=window,
        batch=dict(zip(batching, shared, strict=True)),
    )
    places = linear(windows, is_dropped=True).reshape([product(updates.shape)])
    flat = x.reshape([product(x.shape)])
    return _placed(op, flat, places, updates.reshape([product(updates.shape)])).reshape(list(x.shape))


def _known_begins(
    indices: Value, x: Tensor, updates: Tensor, indexed: Sequence[int], window: dict[int, int]
) -> list[int] | None:
    """Where the only window begins along each axis, if that is known and the window lies inside; else None."""
    is_one = product(size for axis, size in enumerate(updates.shape) if axis not in window.values()) == 1
    if not is_one or not isinstance(indices, Known) or indices.array.size != len(indexed):
        return None
    known = dict(zip(indexed, indices.array.reshape(-1).tolist(), strict=True))
    begins = [known.get(axis, 0) for axis in range(x.rank)]
    for axis, begin in enumerate(begins):
        size, whole = updates.shape[window[axis]] if axis in window else 1, x.shape[axis]
        if size == whole and begin == 0:
            continue
        if not (isinstance(begin, int) and isinstance(size, int) and isinstance(whole, int)):
            return None
        if not 0 <= begin <= whole - size:
            return None
    return begins


def _is_large_part(updates: Tensor, x: Tensor) -> bool:
    """Whether a loop may store all elements in each turn, and not the updates alone."""
    part, whole = product(updates.shape), product(x.shape)
    return isinstance(part, int) and isinstance(whole, int) and LARGE_PART * part >= whole


def _on_a_part(op: Op, x: Tensor, updates: Tensor, begins: Sequence[int], window: dict[int, int]) -> Tensor:
    """Write or combine the only window, whose place is known: all elements are read and written in order."""
    sizes = [updates.shape[window[axis]] if axis in window else 1 for axis in range(x.rank)]
    update = updates.reshape(sizes)
    if not is_second_argument(op.region(0)):
        part = build.shrink(x, [(begin, add(begin, size)) for begin, size in zip(begins, sizes, strict=True)])
        (combined,) = op.lifted(0, [part, update])
        update = op.whole(combined, tuple(sizes))
    return _within(op, x, update, begins, set(), None)


def _are_rows(x: Tensor, updates: Tensor, indexed: Sequence[int], dropped: set[int], window: dict[int, int]) -> bool:
    """Whether each window has one position along the indexed axes, and the whole of all other axes."""
    return dropped == {*indexed} and all(updates.shape[other] == x.shape[axis] for axis, other in window.items())


def _by_rows(
    op: Op,
    x: Tensor,
    starts: Sequence[Tensor],
    updates: Tensor,
    indexed: Sequence[int],
    listed: Sequence[int],
    in_updates: Sequence[int],
) -> Tensor:
    """Scatter rows: the indexed axes are flattened to one axis, the others to another."""
    rest = [axis for axis in range(x.rank) if axis not in indexed]
    moved = x.permute([*indexed, *rest])
    rows, width = [x.shape[axis] for axis in indexed], product(x.shape[axis] for axis in rest)
    dims = [updates.shape[axis] for axis in listed]
    every = list(range(len(listed)))
    windows = Windows(op.builder, rows, dims, every, starts, range(len(rows)), window={}, batch={})
    count = product(dims)
    places = linear(windows, is_dropped=True).reshape([count, 1]).expand([count, width])
    flat = moved.reshape([product(rows), width])
    given = updates.permute([*listed, *in_updates]).reshape([count, width])
    back = [0] * x.rank
    for place, axis in enumerate([*indexed, *rest]):
        back[axis] = place
    return _placed(op, flat, places, given).reshape(list(moved.shape)).permute(back)


def _placed(op: Op, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    """Write or combine the updates at their positions along the first axis; -1 drops an update."""
    region = op.region(0)
    if is_second_argument(region):
        return put(x, places, updates, 0)
    name = single_operation(region)
    if name in _COMBINED and (x.dtype.is_bool or name not in _OF_BOOLS_ALONE):
        return put(x, places, updates, 0, _COMBINED[name])
    if op.flag("unique_indices"):
        (combined,) = op.lifted(0, [build.gather(x, places, 0), updates])
        return put(x, places, op.whole(combined, updates.shape), 0)
    op.fail("its region is not a sum, product, maximum or minimum, and its indices are not said to be unique")


def _dynamic_update_slice(op: Op) -> Value:
    x, update = op.tensor(0), op.tensor(1)
    sizes = update.shape
    begins: list[Dim] = [0] * x.rank
    moving: list[tuple[int, Tensor]] = []
    for axis, start in enumerate(op.operands[2:]):
        if sizes[axis] == x.shape[axis]:
            continue
        begin = known_start(op, start, x.shape[axis], sizes[axis])
        if begin is None:
            moving.append((axis, clamped(to_int64(op.as_tensor(start)), x.shape[axis], sizes[axis])))
        else:
            begins[axis] = begin
    if sizes == x.shape:
        return update
    if op.builder.is_inside and moving and 0 not in sizes:
        return _written_in_place(op, x, update, {**dict(enumerate(begins)), **dict(moving)})
    is_inside: Tensor | None = None
    moves = {axis for axis, _ in moving}
    for axis, start in moving:
        place = build.arange(op.builder, x.shape[axis]) - start
        # A row is broadcast, because reads at computed positions are not in vectors.
        is_row = sizes[axis] == 1
        fits = build.equal(place, 0) if is_row else (place >= 0) & (place < build.dim_value(op.builder, sizes[axis]))
        fits = fits.reshape([x.shape[axis], *(1,) * (x.rank - 1 - axis)])
        is_inside = fits if is_inside is None else is_inside & fits
        whole = [dim if at == axis else own for at, (dim, own) in enumerate(zip(x.shape, update.shape, strict=True))]
        update = build.expand(update, whole) if is_row else build.take(update, place, axis)
    return _within(op, x, update, begins, moves, is_inside)


def _within(
    op: Op, x: Tensor, update: Tensor, begins: Sequence[Dim], moves: Set[int], is_inside: Tensor | None
) -> Tensor:
    """`x` with an update that begins at `begins`, and is as long as `x` along the axes `moves`: there, and where
    `is_inside`, which is None if it is everywhere, holds.
    """
    widths = [
        (0, 0) if axis in moves else (begins[axis], x.shape[axis] - begins[axis] - update.shape[axis])
        for axis in range(x.rank)
    ]
    if any(pair != (0, 0) for pair in widths):
        within = build.pad(build.ones(op.builder, update.shape, DType.BOOL), widths)
        is_inside = within if is_inside is None else is_inside & within
        update = build.pad(update, widths)
    return update if is_inside is None else build.where(is_inside, update, x)


def _written_in_place(op: Op, x: Tensor, update: Tensor, begins: dict[int, Dim | Tensor]) -> Tensor:
    """The update as a scatter, of which a turn of a loop stores only the updates, in place of `x`.

    The axes from the first to the last one that are not taken whole become one axis.
    """
    cut = [axis for axis in range(x.rank) if update.shape[axis] != x.shape[axis]]
    first, last = cut[0], cut[-1] + 1
    places: Tensor = build.zeros(op.builder, (1,) * (last - first), DType.INT64)
    for axis in range(first, last):
        begin = begins[axis]
        own = build.arange(op.builder, update.shape[axis]).cast(DType.INT64)
        own = own + (begin if isinstance(begin, Tensor) else build.dim_value(op.builder, begin))
        stride = build.dim_value(op.builder, product(x.shape[axis + 1 : last]))
        places = places + (own * stride).reshape([1 if at != axis else -1 for at in range(first, last)])
    before, behind = product(x.shape[:first]), product(x.shape[last:])
    count = product(update.shape[first:last])
    indices = places.reshape([1, count, 1]).expand([before, count, behind])
    flat = x.reshape([before, product(x.shape[first:last]), behind])
    return put(flat, indices, update.reshape([before, count, behind]), 1).reshape(list(x.shape))


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.scatter": scatter,
}
