"""Short spellings of single nodes, for networks."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .movement import expand_to
from .reduction import reduced
from .sketch import Dims, Sketch, wire


def binop(sketch: Sketch, op: str, a: int, b: int, dtype: DType | None = None) -> int:
    """Of two tensors of one shape, or a tensor and a scalar."""
    dims = sketch.dims(a) or sketch.dims(b)
    return sketch.add("binop", dtype or sketch.dtype(a), dims, op=op, a_var=a, b_var=b)


def unary(sketch: Sketch, op: str, x: int) -> int:
    return sketch.like("unary", x, op=op, in_var=x)


def where(sketch: Sketch, condition: int, a: int, b: int) -> int:
    dims = sketch.dims(condition) or sketch.dims(a) or sketch.dims(b)
    return sketch.add("ternary", sketch.dtype(a), dims, op="where", a_var=condition, b_var=a, c_var=b)


def reshape(sketch: Sketch, x: int, dims: Dims) -> int:
    return sketch.add("reshape", sketch.dtype(x), dims, in_var=x, new_shape=wire(dims))


def permute(sketch: Sketch, x: int, axes: Sequence[int]) -> int:
    dims = [sketch.dims(x)[axis] for axis in axes]
    return sketch.add("permute", sketch.dtype(x), dims, in_var=x, axes_permutation=list(axes))


def repeated(sketch: Sketch, x: int, axis: int, size: Dim) -> int:
    """`x` with a new axis of that size."""
    dims = list(sketch.dims(x))
    inserted = reshape(sketch, x, [*dims[:axis], 1, *dims[axis:]])
    return expand_to(sketch, inserted, [*dims[:axis], size, *dims[axis:]])


def over_last(sketch: Sketch, kind: str, x: int) -> int:
    """A reduction of the last axis, spread over it again."""
    return expand_to(sketch, reduced(sketch, kind, x, [len(sketch.dims(x)) - 1], keep=True), sketch.dims(x))
