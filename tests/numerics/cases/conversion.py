"""Cast and bitcast: the dtype of a case is the source's, the op is the target's name."""

from __future__ import annotations

from tensorkiln.dtypes import DType
from tensorkiln.expr import floordiv, mul

from .family import NARROW, STORED, VALUES, Family
from .shapes import shape
from .sketch import Sketch

_FROM_NARROW = (DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.UINT64, DType.BOOL, DType.FLOAT8_E4M3FN, DType.INT4)
_TO_NARROW = (*_FROM_NARROW, DType.FLOAT16, DType.BFLOAT16, DType.INT32)
"""Code for all pairs is compared with the reference in `tests/scalar`."""


def _cast_targets(dtype: DType) -> tuple[str, ...]:
    if dtype.is_narrow:
        return tuple(map(str, _FROM_NARROW))
    return tuple(map(str, (*VALUES, *NARROW) if dtype in _TO_NARROW else VALUES))


def draw_cast(sketch: Sketch, dtype: DType, target: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    sketch.output(cast(sketch, x, DType(target)))


def cast(sketch: Sketch, x: int, target: DType) -> int:
    return sketch.add("cast", target, sketch.dims(x), in_var=x, target_dtype=target)


def _bitcast_targets(dtype: DType) -> tuple[str, ...]:
    return tuple(str(target) for target in STORED if is_whole(dtype, target) or target.itemsize == dtype.itemsize)


def is_whole(dtype: DType, target: DType) -> bool:
    """Whether neither has elements of less than 8 bits, which have a byte for themselves."""
    return dtype is target or not any(each.is_narrow and each.bits < 8 for each in (dtype, target))


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
    "cast": Family((*VALUES, *NARROW), draw_cast, _cast_targets),
    "bitcast": Family(STORED, draw_bitcast, _bitcast_targets),
}
