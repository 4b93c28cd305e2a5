"""`x[…]`: integers, slices with steps, None, an ellipsis; or one integer tensor, which takes along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias

from ..expr import Dim, Expr, add, ceildiv, mul, sub
from .indexing import take
from .movement import flip, reshape, shrink, view
from .shape import at_least, at_most, row_major_strides

if TYPE_CHECKING:
    from .tensor import Tensor

Index: TypeAlias = "int | Expr | slice | EllipsisType | None"


@dataclass(frozen=True, slots=True)
class _Range:
    """`count` positions of one axis from `start` on, `step` apart; an integer index drops the axis."""

    start: Dim
    count: Dim
    step: int
    is_dropped: bool = False


def getitem(x: Tensor, key: Index | Tensor | tuple[Index, ...]) -> Tensor:
    """The elements that `key` names, by NumPy's rules for basic indexing.

    Bounds of a slice may be expressions, then taken to lie within the axis. InvalidGraphError for an integer outside
    its axis, for too many indices, and for a mask: the shape of a result cannot depend on values.
    """
    from .tensor import Tensor

    if isinstance(key, Tensor):
        if key.dtype.is_bool:
            raise x.builder.error(
                "the number of elements that a mask selects depends on the data, and a shape cannot; "
                "use where(mask, x, other)"
            )
        return take(x, key)
    keys = list(key) if isinstance(key, tuple) else [key]
    named = sum(entry is not None and entry is not Ellipsis for entry in keys)
    if named > len(x.shape) or sum(entry is Ellipsis for entry in keys) > 1:
        raise x.builder.error(f"{len(keys)} indices do not fit a tensor of rank {len(x.shape)}")
    rest: list[Index] = [slice(None)] * (len(x.shape) - named)
    place = next((i for i, entry in enumerate(keys) if entry is Ellipsis), len(keys))
    keys[place : place + 1] = rest
    ranges = [_range(x, axis, entry) for axis, entry in enumerate(entry for entry in keys if entry is not None)]
    shape: list[Dim] = []
    remaining = iter(ranges)
    for entry in keys:
        if entry is None:
            shape.append(1)
        elif not (found := next(remaining)).is_dropped:
            shape.append(found.count)
    return reshape(_select(x, ranges), shape)


def _select(x: Tensor, ranges: Sequence[_Range]) -> Tensor:
    if all(r.step in (1, -1) for r in ranges):
        limits = [(r.start, r.start + r.count) if r.step == 1 else (r.start + 1 - r.count, r.start + 1) for r in ranges]
        return flip(shrink(x, limits), [axis for axis, r in enumerate(ranges) if r.step == -1])
    strides = row_major_strides(x.shape)
    offset = add(*(mul(r.start, stride) for r, stride in zip(ranges, strides, strict=True)))
    steps = [mul(r.step, stride) for r, stride in zip(ranges, strides, strict=True)]
    return view(x, [r.count for r in ranges], steps, offset)


def _range(x: Tensor, axis: int, entry: object) -> _Range:
    dim = x.shape[axis]
    if isinstance(entry, slice):
        return _static(entry, dim) if _is_static(entry, dim) else _symbolic(x, entry, dim)
    if not isinstance(entry, int | Expr) or isinstance(entry, bool):
        raise x.builder.error(
            f"{entry!r} is not an index; use integers, slices, None, an ellipsis or one integer tensor"
        )
    position = add(dim, entry) if isinstance(entry, int) and entry < 0 else entry
    if x.builder.bounds(position)[1] < 0 or x.builder.bounds(sub(position, dim))[0] >= 0:
        raise x.builder.error(f"the index {entry} is outside axis {axis} of size {dim}")
    return _Range(position, 1, 1, is_dropped=True)


def _is_static(entry: slice, dim: Dim) -> bool:
    return isinstance(dim, int) and all(part is None or isinstance(part, int) for part in (entry.start, entry.stop))


def _static(entry: slice, dim: Dim) -> _Range:
    assert isinstance(dim, int), "the caller asked"
    positions = range(*entry.indices(dim))
    return _Range(positions.start if positions else 0, len(positions), positions.step if positions else 1)


def _symbolic(x: Tensor, entry: slice, dim: Dim) -> _Range:
    step = 1 if entry.step is None else entry.step
    if not isinstance(step, int) or step == 0:
        raise x.builder.error(f"the step {step!r} of a slice is not a nonzero integer")
    first, last = (0, dim) if step > 0 else (-1, sub(dim, 1))
    start = _bound(x, entry.start, dim, first, last, first if step > 0 else last)
    stop = _bound(x, entry.stop, dim, first, last, last if step > 0 else first)
    span = sub(stop, start) if step > 0 else sub(start, stop)
    return _Range(start, ceildiv(at_least(x.builder, span, 0), abs(step)), step)


def _bound(x: Tensor, given: object, dim: Dim, first: Dim, last: Dim, default: Dim) -> Dim:
    """The position of a slice bound: a negative integer counts from the end, an integer is clipped to [first, last]."""
    if given is None:
        return default
    if isinstance(given, Expr):
        return given
    if not isinstance(given, int):
        raise x.builder.error(f"the bound {given!r} of a slice is neither an integer nor a dimension")
    position = add(dim, given) if given < 0 else given
    return at_most(x.builder, at_least(x.builder, position, first), last)
