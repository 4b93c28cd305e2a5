"""Index, gather, scatter, gep, vectorize: indices in, around and far outside the range."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.nodes import ScatterKind

from .family import CONDITIONS, INTEGERS, STORED, VALUES, Family
from .shapes import extent, shape
from .sketch import Dims, Sketch, wire
from .values import integer_edges


def indices(sketch: Sketch, dims: Dims, size: int) -> int:
    """An input of any integer dtype: mostly inside 0 .. size - 1, some just outside, some as far as the dtype goes."""
    dtype = sketch.pick(INTEGERS)
    sizes = sketch.values(dims)
    inside = sketch.rng.integers(0, max(size, 1), sizes)
    edges = np.array([-1, size, -size, size - 1, 0, *integer_edges(dtype)], object)
    outside = edges[sketch.rng.integers(0, len(edges), sizes)]
    chosen = np.where(sketch.rng.random(sizes) < 0.7, inside, outside)
    low, high = int(dtype.min), int(dtype.max)
    fitting = np.array([min(max(int(value), low), high) for value in chosen.reshape(-1)], dtype.numpy)
    return sketch.input_of(fitting.reshape(sizes), dims)


def draw_index(sketch: Sketch, dtype: DType, _op: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    dims = shape(sketch, high_rank=3, limit=100)
    places = indices(sketch, dims, prod(sketch.shape(x)))
    gate = sketch.input(sketch.pick(CONDITIONS), dims) if sketch.flag() else None
    sketch.output(sketch.add("index", dtype, dims, in_var=x, idx_var=places, valid_var=gate))


def draw_gather(sketch: Sketch, dtype: DType, _op: str) -> None:
    source = sketch.input(dtype, shape(sketch, low_rank=1, limit=150))
    axis = sketch.integer(0, len(sketch.dims(source)) - 1)
    sketch.output(gathered(sketch, source, axis))


def gathered(sketch: Sketch, source: int, axis: int) -> int:
    dims = _covered(sketch, sketch.dims(source), axis)
    places = indices(sketch, dims, sketch.shape(source)[axis])
    return sketch.add("gather", sketch.dtype(source), dims, src_var=source, indices_var=places, axis=axis)


def _covered(sketch: Sketch, whole: Dims, axis: int) -> list[Dim]:
    """A shape that fits in the corner of `whole`, and along `axis` is free."""
    dims = [_corner(sketch, dim) for dim in whole]
    others = prod(sketch.value(dim) for place, dim in enumerate(dims) if place != axis)
    dims[axis] = extent(sketch, max(150 // max(others, 1), 1))
    return dims


def _corner(sketch: Sketch, dim: Dim) -> Dim:
    return dim if sketch.integer(0, 2) else min(sketch.integer(0, 3), sketch.value(dim))


def draw_scatter(sketch: Sketch, dtype: DType, op: str) -> None:
    whole = shape(sketch, low_rank=1, limit=150)
    axis = sketch.integer(0, len(whole) - 1)
    dims = _covered(sketch, whole, axis)
    updates = sketch.input(dtype, dims)
    sketch.output(scattered(sketch, updates, whole, axis, op))


def scattered(sketch: Sketch, updates: int, whole: Dims, axis: int, reduction: str = "none") -> int:
    """Indices may be the same along any other axis, and there may be initial values."""
    dims = sketch.dims(updates)
    shared = [place != axis and sketch.flag() for place in range(len(dims))]
    narrow = [1 if is_shared else dim for dim, is_shared in zip(dims, shared, strict=True)]
    places = indices(sketch, narrow, sketch.value(whole[axis]))
    if any(shared):
        places = sketch.add("expand", sketch.dtype(places), dims, in_var=places, new_target_shape=wire(dims))
    dtype = sketch.dtype(updates)
    operands: dict[str, Any] = {"indices_var": places, "updates_var": updates}
    if sketch.flag():
        operands["init_var"] = sketch.input(dtype, whole)
    if reduction != "none":
        operands["reduction"] = reduction
    return sketch.add("scatter", dtype, whole, axis=axis, shape=wire(whole), **operands)


def draw_gep(sketch: Sketch, dtype: DType, _op: str) -> None:
    lanes = sketch.integer(1, 8)
    outer = shape(sketch, high_rank=3, limit=40)
    x = sketch.input(dtype, (*outer, lanes))
    chosen = [sketch.integer(0, lanes - 1) for _ in range(sketch.integer(1, 5))]
    result = outer if len(chosen) == 1 else (*outer, len(chosen))
    sketch.output(sketch.add("gep", dtype, result, in_var=x, indices=chosen))


def draw_vectorize(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = shape(sketch, high_rank=3, limit=60)
    parts = [sketch.input(dtype, dims) for _ in range(sketch.integer(1, 4))]
    parts.append(parts[0] if sketch.flag() else sketch.input(dtype, dims))
    sketch.output(sketch.add("vectorize", dtype, (*dims, len(parts)), in_vars=parts))


FAMILIES = {
    "index": Family(STORED, draw_index),
    "gather": Family(STORED, draw_gather),
    "scatter": Family(STORED, draw_scatter, lambda dtype: tuple(ScatterKind) if dtype in VALUES else ("none",)),
    "gep": Family(STORED, draw_gep),
    "vectorize": Family(STORED, draw_vectorize),
}
