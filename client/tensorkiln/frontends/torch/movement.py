"""Movement operators. Views are values here, because torch exports no writes into them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, mul, product, sub
from .call import Call, Operator, number_in

Width = TypeVar("Width")


def _reshape(call: Call) -> Tensor:
    """Reshape to torch's shape of the result, which resolves a -1."""
    return call.tensor().reshape(call.result_shape())


def _view_as(call: Call) -> Tensor:
    return build.bitcast(call.tensor(), call.dtype)


def _permute(call: Call) -> Tensor:
    x = call.tensor()
    return x.permute([axis % x.rank for axis in call.integers("dims")])


def _transpose(call: Call) -> Tensor:
    x = call.tensor()
    first, second = call.axis(x, "dim0"), call.axis(x, "dim1")
    return x.transpose(first, second) if x.shape else x


def _transposed(call: Call) -> Tensor:
    x = call.tensor()
    return x.transpose(0, 1) if x.rank > 1 else x


def _expand(call: Call) -> Tensor:
    return call.tensor().expand(call.result_shape())


def _squeeze(call: Call) -> Tensor:
    x = call.tensor()
    axes = call.axes(x, "dim") if call.has("dim") else list(range(x.rank))
    if call.has("dim") and call.value("dim") == ():
        axes = []
    return x.squeeze([axis for axis in axes if x.shape[axis] == 1])


def _unsqueeze(call: Call) -> Tensor:
    return call.tensor().unsqueeze(call.integer("dim"))


def _flip(call: Call) -> Tensor:
    x = call.tensor()
    axes = [axis % max(x.rank, 1) for axis in call.integers("dims")]
    return x.flip(axes) if x.shape else x


def _roll(call: Call) -> Tensor:
    x, shifts, axes = call.tensor(), call.integers("shifts"), call.integers("dims", [])
    flat = x.reshape(product(x.shape)) if not axes else x
    for shift, axis in zip(shifts, axes or [0], strict=True):
        flat = _rolled(call, flat, shift, axis % max(flat.rank, 1))
    return flat.reshape(x.shape)


def _rolled(call: Call, x: Tensor, shift: int, axis: int) -> Tensor:
    size = x.shape[axis]
    if not isinstance(size, int):
        if x.builder.bounds(size)[0] < abs(shift):
            call.fail(f"{size} elements may be fewer than the {shift} that they are rolled by")
        cut: Dim = sub(size, shift) if shift >= 0 else -shift
    elif size == 0:
        return x
    else:
        cut = (size - shift) % size
    first, second = build.split(x, [cut, sub(size, cut)], axis)
    return build.cat([second, first], axis)


def _repeat(call: Call) -> Tensor:
    """Tile: expand a new axis before each axis, and join the two."""
    x, counts = call.tensor(), call.dims("repeats")
    shape: list[Dim] = [*(1,) * (len(counts) - x.rank), *x.shape]
    aligned = x.reshape([each for dim in shape for each in (1, dim)])
    spread = aligned.expand([each for count, dim in zip(counts, shape, strict=True) for each in (count, dim)])
    return spread.reshape([mul(count, dim) for count, dim in zip(counts, shape, strict=True)])


def _diagonal(call: Call) -> Tensor:
    """The diagonal along a new last axis: a flat index with a step of one row and one column."""
    x, offset = call.tensor(), call.integer("offset", 0)
    first, second = call.axis(x, "dim1", 0), call.axis(x, "dim2", 1)
    if first == second:
        call.invalid(f"the axes of a diagonal are both {first}")
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    moved = x.permute([*rest, first, second])
    rows, columns = moved.shape[-2:]
    length = call.result_shape()[-1]
    flat = moved.reshape([*moved.shape[:-2], mul(rows, columns)])
    start = offset if offset >= 0 else mul(columns, -offset)
    places = build.arange(x.builder, length) * (build.dim_value(x.builder, columns) + 1) + build.dim_value(
        x.builder, start
    )
    return build.take(flat, places, flat.rank - 1)


def edge_widths(widths: Sequence[Width], rank: int) -> Iterator[tuple[int, Width, Width]]:
    """Each axis with its widths before and after, which torch states from the last axis on."""
    for place in range(len(widths) // 2):
        yield rank - 1 - place, widths[2 * place], widths[2 * place + 1]


def _constant_pad(call: Call) -> Tensor:
    """Pad with a constant; widths start at the last axis, negative ones crop."""
    x, given = call.tensor(), call.dims("pad")
    widths: list[tuple[Dim, Dim]] = [(0, 0)] * x.rank
    for axis, before, after in edge_widths(given, x.rank):
        widths[axis] = before, after
    cut = build.shrink(x, [_kept(call, x, dim, pair) for dim, pair in zip(x.shape, widths, strict=True)])
    added = [(_at_least_none(before), _at_least_none(after)) for before, after in widths]
    return build.pad(cut, added, _fill(call, call.number("value", 0.0), x.dtype))


def _fill(call: Call, value: float, dtype: DType) -> bool | int | float:
    """The value in the tensor's element type. InvalidGraphError on overflow, as in torch."""
    found = number_in(value, dtype)
    if dtype.is_integer:
        overflows = not int(dtype.min) <= value <= int(dtype.max)
    else:
        overflows = math.isinf(found) and math.isfinite(value)
    if overflows:
        call.invalid(f"the value {value} overflows {dtype}")
    return found


def _kept(call: Call, x: Tensor, dim: Dim, widths: tuple[Dim, Dim]) -> tuple[Dim, Dim]:
    for width in widths:
        low, high = x.builder.bounds(width)
        if low < 0 < high:
            call.fail(f"the width {width} may add or cut")
    before, after = (-width if isinstance(width, int) and width < 0 else 0 for width in widths)
    return before, sub(dim, after)


def _at_least_none(width: Dim) -> Dim:
    return max(width, 0) if isinstance(width, int) else width


def _edge_pad(mode: str) -> Operator:
    """Padding of the last axes by reading from computed positions."""

    def apply(call: Call) -> Tensor:
        x, widths = call.tensor(), call.integers("padding")
        for axis, before, after in edge_widths(widths, x.rank):
            if before == after == 0:
                continue
            x = build.take(x, _read_places(call, x, axis, before, after, mode), axis)
        return x

    return apply


def _read_places(call: Call, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if mode == "reflect" and x.builder.bounds(size)[0] <= max(before, after):
        call.fail(f"{size} elements may be too few to reflect {before} and {after} of them")
    last = build.dim_value(x.builder, sub(size, 1))
    places = build.arange(x.builder, size + before + after) - before
    if mode == "replicate":
        return places.clip(0, last)
    return last - build.absolute(last - build.absolute(places))


def _same(call: Call) -> Tensor:
    return call.tensor()


def _copy(call: Call) -> Tensor:
    return call.tensor("src").cast(call.dtype).expand(call.result_shape())


def _rotate(call: Call) -> Tensor:
    """`rot90`: rotate by quarter turns from the first axis towards the second."""
    x, turns = call.tensor(), call.integer("k", 1) % 4
    first, second = (axis % x.rank for axis in call.integers("dims", [0, 1]))
    if turns == 0:
        return x
    if turns == 2:
        return x.flip([first, second])
    return x.flip(second).transpose(first, second) if turns == 1 else x.transpose(first, second).flip(second)


def _pixel_shuffle(call: Call) -> Tensor:
    x, factor = call.tensor(), call.integer("upscale_factor")
    *batch, channels, height, width = x.shape
    kept = _divided(call, channels, factor * factor)
    split = x.reshape([*batch, kept, factor, factor, height, width])
    lead = len(batch)
    order = [*range(lead), lead, lead + 3, lead + 1, lead + 4, lead + 2]
    return split.permute(order).reshape([*batch, kept, height * factor, width * factor])


def _pixel_unshuffle(call: Call) -> Tensor:
    x, factor = call.tensor(), call.integer("downscale_factor")
    *batch, channels, height, width = x.shape
    rows, columns = _divided(call, height, factor), _divided(call, width, factor)
    split = x.reshape([*batch, channels, rows, factor, columns, factor])
    lead = len(batch)
    order = [*range(lead), lead, lead + 2, lead + 4, lead + 1, lead + 3]
    return split.permute(order).reshape([*batch, mul(channels, factor * factor), rows, columns])


def _divided(call: Call, dim: Dim, factor: int) -> int:
    if not isinstance(dim, int) or dim % factor:
        call.fail(f"{dim} is not a known multiple of {factor}")
    return dim // factor


def _all_as(names: Sequence[str], operator: Operator) -> dict[str, Operator]:
    return dict.fromkeys(names, operator)


OPERATORS: dict[str, Operator] = {
    **_all_as(
        [
            *("aten.alias.default", "aten.clone.default", "aten.detach.default", "aten.lift_fresh_copy.default"),
            *("aten.contiguous.default", "aten.alias_copy.default", "aten.detach_copy.default"),
        ],
        _same,
    ),
    **_all_as(
        [
            *("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.flatten.using_ints"),
            *("aten.unflatten.int", "aten.view_copy.default", "aten._reshape_copy.default"),
        ],
        _reshape,
    ),
    "aten.constant_pad_nd.default": _constant_pad,
    "aten.copy.default": _copy,
    "aten.diagonal.default": _diagonal,
    "aten.diagonal_copy.default": _diagonal,
    "aten.expand.default": _expand,
    "aten.expand_copy.default": _expand,
    "aten.flip.default": _flip,
    "aten.permute.default": _permute,
    "aten.permute_copy.default": _permute,
    "aten.pixel_shuffle.default": _pixel_shuffle,
    "aten.pixel_unshuffle.default": _pixel_unshuffle,
    "aten.reflection_pad1d.default": _edge_pad("reflect"),
    "aten.reflection_pad2d.default": _edge_pad("reflect"),
    "aten.reflection_pad3d.default": _edge_pad("reflect"),
    "aten.repeat.default": _repeat,
    "aten.replication_pad1d.default": _edge_pad("replicate"),
    "aten.replication_pad2d.default": _edge_pad("replicate"),
    "aten.replication_pad3d.default": _edge_pad("replicate"),
    "aten.roll.default": _roll,
    "aten.rot90.default": _rotate,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.squeeze_copy.dims": _squeeze,
    "aten.t.default": _transposed,
    "aten.transpose.int": _transpose,
    "aten.unsqueeze.default": _unsqueeze,
    "aten.unsqueeze_copy.default": _unsqueeze,
    "aten.view.dtype": _view_as,
}
