"""Reshape, permute, expand, pad, shrink, flip, cat: each a step that chains reuse."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hypothesis import strategies as st

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, mul, sub

from .family import STORED, Family
from .shapes import LIMIT, extent, shape
from .sketch import Dims, Sketch, wire

GROWN = 500
"""Elements that padding may lead to."""


def reshaped(sketch: Sketch, x: int) -> int:
    """The same number of elements in other axes: merged, split, with or without axes of 1, or factored anew."""
    dims = list(sketch.dims(x))
    if all(isinstance(dim, int) for dim in dims) and sketch.flag():
        dims = _factored(sketch, prod(sketch.shape(x)))
    for _ in range(sketch.integer(0, 2)):
        position = sketch.integer(0, max(len(dims) - 1, 0))
        choice = sketch.integer(0, 2)
        if choice == 0 and len(dims) < 6:
            dims.insert(position, 1)
        elif choice == 1 and len(dims) > 1:
            position = min(position, len(dims) - 2)
            dims[position : position + 2] = [mul(dims[position], dims[position + 1])]
        elif choice == 2 and 1 in dims:
            dims.remove(1)
    return sketch.add("reshape", sketch.dtype(x), dims, in_var=x, new_shape=wire(dims))


def _factored(sketch: Sketch, size: int) -> list[Dim]:
    if size == 0:
        return list(sketch.pick([(0,), (0, 3), (2, 0), (1, 0, 5)]))
    factors: list[Dim] = []
    while size > 1 and len(factors) < 4:
        factor = sketch.pick([divisor for divisor in range(2, size + 1) if size % divisor == 0])
        factors.append(factor)
        size //= factor
    return factors if size == 1 else [*factors, size]


def permuted(sketch: Sketch, x: int) -> int:
    axes = sketch.draw(st.permutations(range(len(sketch.dims(x)))))
    dims = [sketch.dims(x)[axis] for axis in axes]
    return sketch.add("permute", sketch.dtype(x), dims, in_var=x, axes_permutation=axes)


def expanded(sketch: Sketch, x: int) -> int:
    """Some axes of 1 become longer, or empty; without any, one is put in front."""
    if 1 not in sketch.dims(x):
        dims = (1, *sketch.dims(x))
        x = sketch.add("reshape", sketch.dtype(x), dims, in_var=x, new_shape=wire(dims))
    room = LIMIT // max(prod(sketch.shape(x)), 1)
    target: list[Dim] = []
    for dim in sketch.dims(x):
        grows = dim == 1 and sketch.flag()
        target.append(extent(sketch, max(room, 1)) if grows else dim)
        room //= max(sketch.value(target[-1]), 1) if grows else 1
    return expand_to(sketch, x, target)


def expand_to(sketch: Sketch, x: int, target: Dims) -> int:
    return sketch.add("expand", sketch.dtype(x), target, in_var=x, new_target_shape=wire(target))


def padded(sketch: Sketch, x: int) -> int:
    sizes = list(sketch.shape(x))
    pairs: list[tuple[Dim, Dim]] = []
    for axis, dim in enumerate(sketch.dims(x)):
        pair = (_width(sketch), _width(sketch))
        grown = sketch.value(add(dim, *pair))
        fits = prod([*sizes[:axis], grown, *sizes[axis + 1 :]]) <= GROWN
        pairs.append(pair if fits else (0, 0))
        sizes[axis] = grown if fits else sizes[axis]
    return pad_by(sketch, x, pairs)


def _width(sketch: Sketch) -> Dim:
    if sketch.symbolic and sketch.integer(0, 3) == 0:
        return extent(sketch, 5, must_be_symbolic=True)
    return sketch.pick([0, 0, 0, 1, 2, 5])


def pad_by(sketch: Sketch, x: int, pairs: list[tuple[Dim, Dim]]) -> int:
    dims = [add(before, dim, after) for dim, (before, after) in zip(sketch.dims(x), pairs, strict=True)]
    return sketch.add("pad", sketch.dtype(x), dims, in_var=x, pad_width=[wire(pair) for pair in pairs])


def shrunk(sketch: Sketch, x: int) -> int:
    """A box, sometimes empty; the end of a symbolic axis is often counted from its end."""
    limits: list[tuple[Dim, Dim]] = []
    for dim in sketch.dims(x):
        size = sketch.value(dim)
        begin = sketch.pick([0, 0, sketch.integer(0, size)])
        end = sketch.integer(begin, size) if sketch.integer(0, 2) == 0 else size
        limits.append((begin, end if isinstance(dim, int) else sub(dim, size - end)))
    return shrink_to(sketch, x, limits)


def shrink_to(sketch: Sketch, x: int, limits: list[tuple[Dim, Dim]]) -> int:
    dims = [sub(end, begin) for begin, end in limits]
    return sketch.add("shrink", sketch.dtype(x), dims, in_var=x, limits=[wire(pair) for pair in limits])


def flipped(sketch: Sketch, x: int) -> int:
    rank = len(sketch.dims(x))
    axes = sketch.draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=rank)) if rank else []
    return sketch.like("flip", x, in_var=x, axes=axes)


STEPS: dict[str, Callable[[Sketch, int], int]] = {
    "reshape": reshaped,
    "permute": permuted,
    "expand": expanded,
    "pad": padded,
    "shrink": shrunk,
    "flip": flipped,
}


def moved(sketch: Sketch, x: int, most: int = 4) -> int:
    """Up to `most` steps, one after the other."""
    for _ in range(sketch.integer(0, most)):
        x = STEPS[sketch.pick(sorted(STEPS))](sketch, x)
    return x


def draw_step(kind: str) -> Callable[[Sketch, DType, str], None]:
    def draw(sketch: Sketch, dtype: DType, _op: str) -> None:
        x = sketch.input(dtype, _with_ones(sketch) if kind == "expand" else shape(sketch))
        sketch.output(STEPS[kind](sketch, x))

    return draw


def _with_ones(sketch: Sketch) -> tuple[Dim, ...]:
    return tuple(1 if sketch.flag() else dim for dim in shape(sketch, limit=30))


def draw_cat(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = shape(sketch, low_rank=1, limit=60)
    axis = sketch.integer(0, len(dims) - 1)
    parts = [sketch.input(dtype, dims)]
    for _ in range(sketch.integer(0, 3)):
        joined = extent(sketch, maximum_extent(sketch, dims, axis))
        parts.append(sketch.input(dtype, (*dims[:axis], joined, *dims[axis + 1 :])))
    if sketch.integer(0, 4) == 0:
        parts.append(parts[0])
    sketch.output(cat(sketch, parts, axis))


def maximum_extent(sketch: Sketch, dims: Dims, axis: int, limit: int = 60) -> int:
    """How long `axis` may be for the whole to stay within `limit` elements."""
    others = prod(sketch.value(dim) for place, dim in enumerate(dims) if place != axis)
    return max(limit // max(others, 1), 1)


def cat(sketch: Sketch, parts: list[int], axis: int) -> int:
    dims = sketch.dims(parts[0])
    total = add(*(sketch.dims(part)[axis] for part in parts))
    stated = axis - len(dims) if sketch.flag() else axis
    result = (*dims[:axis], total, *dims[axis + 1 :])
    return sketch.add("cat", sketch.dtype(parts[0]), result, in_vars=parts, axis=stated)


FAMILIES = {kind: Family(STORED, draw_step(kind)) for kind in STEPS} | {"cat": Family(STORED, draw_cat)}
