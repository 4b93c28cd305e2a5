"""Movement of elements: one movement node per function, none if nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..expr import Dim, add, floordiv, mul, neg, product
from .operands import axes_of, axis_of, require_tensor
from .shape import text, wire

if TYPE_CHECKING:
    from .tensor import Tensor


def reshape(x: Tensor, *shape: Dim | str | Sequence[Dim | str]) -> Tensor:
    """`x` in row-major order with another shape of the same size; one dim may be -1 if an exact division gives it."""
    require_tensor(x, "reshape")
    dims = _reshaped(x, _flat(shape))
    if dims == x.shape:
        return x
    if isinstance(given := product(dims), int) and isinstance(size := product(x.shape), int) and given != size:
        raise x.builder.error(f"a tensor of {size} elements does not reshape to {text(dims)}")
    return x.builder.append("reshape", x.dtype, dims, in_var=x.var, new_shape=wire(dims))


def _flat(shape: Sequence[Dim | str | Sequence[Dim | str]]) -> list[Dim | str]:
    dims: list[Dim | str] = []
    for entry in shape:
        # Test for int and str first: the test for Sequence is slow.
        if isinstance(entry, int | str) or not isinstance(entry, Sequence):
            dims.append(entry)
        else:
            dims.extend(entry)
    return dims


def _reshaped(x: Tensor, dims: list[Dim | str]) -> tuple[Dim, ...]:
    if -1 not in dims:
        return x.builder.shape(dims)
    open_at = dims.index(-1)
    known = x.builder.shape([*dims[:open_at], *dims[open_at + 1 :]])
    size, divisor = product(x.shape), product(known)
    if divisor != 0 and mul(quotient := floordiv(size, divisor), divisor) == size:
        return (*known[:open_at], quotient, *known[open_at:])
    raise x.builder.error(f"the dimension -1 is not {size} / {divisor} exactly; write the dimension out")


def permute(x: Tensor, *axes: int | Sequence[int]) -> Tensor:
    """`x.transpose(axes)` of NumPy: axis i of the result is axis `axes[i]` of `x`."""
    require_tensor(x, "permute")
    order = tuple(axis_of(x, axis) for entry in axes for axis in ([entry] if isinstance(entry, int) else entry))
    if sorted(order) != list(range(len(x.shape))):
        raise x.builder.error(f"{order} does not permute the axes of a tensor of rank {len(x.shape)}")
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[axis] for axis in order)
    return x.builder.append("permute", x.dtype, shape, in_var=x.var, axes_permutation=list(order))


def transpose(x: Tensor, first: int = -2, second: int = -1) -> Tensor:
    """`x` with two axes exchanged: the last two unless told otherwise."""
    order = list(range(len(x.shape)))
    first, second = axis_of(x, first), axis_of(x, second)
    order[first], order[second] = order[second], order[first]
    return permute(x, order)


def moveaxis(x: Tensor, source: int, destination: int) -> Tensor:
    """`x` with one axis moved to another position, the order of the rest kept."""
    source, destination = axis_of(x, source), axis_of(x, destination)
    order = [axis for axis in range(len(x.shape)) if axis != source]
    order.insert(destination, source)
    return permute(x, order)


def expand(x: Tensor, *shape: Dim | str | Sequence[Dim | str]) -> Tensor:
    """`numpy.broadcast_to`: dims of 1 are repeated; -1 keeps a dim; missing leading dims are added."""
    require_tensor(x, "expand")
    wanted = _flat(shape)
    missing = len(wanted) - len(x.shape)
    if missing < 0:
        raise x.builder.error(f"a tensor of rank {len(x.shape)} does not expand to rank {len(wanted)}")
    aligned = (1,) * missing + x.shape
    target = x.builder.shape([own if dim == -1 else dim for own, dim in zip(aligned, wanted, strict=True)])
    for own, dim in zip(aligned, target, strict=True):
        if own not in (1, dim) and isinstance(own, int) and isinstance(dim, int):
            raise x.builder.error(f"the dimension {own} does not expand to {dim}; only 1 does")
    x = reshape(x, aligned)
    if target == x.shape:
        return x
    return x.builder.append("expand", x.dtype, target, in_var=x.var, new_target_shape=wire(target))


def flip(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` reversed along the axes: all of them unless told otherwise."""
    axes = axes_of(x, axis)
    return x.builder.append("flip", x.dtype, x.shape, in_var=x.var, axes=list(axes)) if axes else x


def shrink(x: Tensor, limits: Sequence[tuple[Dim, Dim]]) -> Tensor:
    """`x[b0:e0, b1:e1, …]` for `limits` (b, e), one pair an axis, with 0 <= b <= e <= dim."""
    require_tensor(x, "shrink")
    if len(limits) != len(x.shape):
        raise x.builder.error(f"{len(limits)} limits do not fit a tensor of rank {len(x.shape)}")
    if all(begin == 0 and end == dim for (begin, end), dim in zip(limits, x.shape, strict=True)):
        return x
    shape = tuple(add(end, neg(begin)) for begin, end in limits)
    return x.builder.append("shrink", x.dtype, shape, in_var=x.var, limits=[wire(pair) for pair in limits])


def squeeze(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` without the given dims of 1, or without every static 1. InvalidGraphError for a given dim that is not 1."""
    require_tensor(x, "squeeze")
    axes = [i for i, dim in enumerate(x.shape) if dim == 1] if axis is None else axes_of(x, axis)
    if any(x.shape[i] != 1 for i in axes):
        raise x.builder.error(f"the axes {tuple(axes)} of {text(x.shape)} are not all of size 1")
    return reshape(x, [dim for i, dim in enumerate(x.shape) if i not in axes])


def unsqueeze(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """`numpy.expand_dims`: dims of 1 inserted where `axis` says, counted in the result."""
    require_tensor(x, "unsqueeze")
    given = [axis] if isinstance(axis, int) else list(axis)
    rank = len(x.shape) + len(given)
    places = {place % rank for place in given if -rank <= place < rank}
    if len(places) != len(given):
        raise x.builder.error(f"the axes {tuple(given)} are not distinct axes of a tensor of rank {rank}")
    dims = iter(x.shape)
    return reshape(x, [1 if place in places else next(dims) for place in range(rank)])


def flatten(x: Tensor, start: int = 0, end: int = -1) -> Tensor:
    """`x` with the axes `start` to `end` joined into one; a tensor of rank 0 becomes rank 1."""
    if not x.shape:
        return reshape(x, 1)
    start, end = axis_of(x, start), axis_of(x, end)
    if end < start:
        raise x.builder.error(f"there are no axes from {start} to {end}")
    return reshape(x, [*x.shape[:start], product(x.shape[start : end + 1]), *x.shape[end + 1 :]])


def view(x: Tensor, shape: Sequence[Dim], strides: Sequence[Dim], offset: Dim = 0) -> Tensor:
    """Element i of the result is element `offset + sum(i * strides)` of `x` in row-major order; they may overlap."""
    require_tensor(x, "view")
    dims = x.builder.shape(shape)
    steps = [0 if dim == 1 else stride for dim, stride in zip(dims, strides, strict=True)]
    one = {"shape": wire(dims), "strides": wire(steps), "offset": wire([offset])[0], "mask": None}
    tracker = {"views": [one], "shape": wire(dims)}
    return x.builder.append("view", x.dtype, dims, in_var=x.var, shape_tracker=tracker)
