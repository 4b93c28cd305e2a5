"""Cast and bitcast: the dtype of a case is the source's, the op is the target's name."""

from __future__ import annotations

from tensorkiln.dtypes import DType
from tensorkiln.expr import floordiv, mul

from .family import VALUES, Family
from .shapes import shape
from .sketch import Sketch

_TARGETS = tuple(str(dtype) for dtype in VALUES)


def draw_cast(sketch: Sketch, dtype: DType, target: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    sketch.output(cast(sketch, x, DType(target)))


def cast(sketch: Sketch, x: int, target: DType) -> int:
    return sketch.add("cast", target, sketch.dims(x), in_var=x, target_dtype=target)


def draw_bitcast(sketch: Sketch, dtype: DType, name: str) -> None:
    target = DType(name)
    dims = shape(sketch, low_rank=0 if target.itemsize == dtype.itemsize else 1, limit=60)
    if target.itemsize > dtype.itemsize:
        dims = (*dims[:-1], mul(dims[-1], target.itemsize // dtype.itemsize))
    sketch.output(bitcast(sketch, sketch.input(dtype, dims), target))


def bitcast(sketch: Sketch, x: int, target: DType) -> int:
    before, dims = sketch.dtype(x).itemsize, sketch.dims(x)
    if before != target.itemsize:
        dims = (*dims[:-1], floordiv(mul(dims[-1], before), target.itemsize))
    return sketch.add("bitcast", target, dims, in_var=x, target_dtype=target)


FAMILIES = {
    "cast": Family(VALUES, draw_cast, lambda _: _TARGETS),
    "bitcast": Family(VALUES, draw_bitcast, lambda _: _TARGETS),
}
