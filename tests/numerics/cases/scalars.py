"""Constants, symbols as values, identifiers."""

from __future__ import annotations

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .family import INTEGERS, STORED, Family
from .markers import ANY, mask_of_unit
from .memory import combined
from .movement import moved
from .shapes import shape
from .sketch import Sketch, literals
from .values import array


def draw_const_scalar(sketch: Sketch, dtype: DType, _op: str) -> None:
    if dtype is DType.UNIT:
        sketch.output(mask_of_unit(sketch, sketch.add("const_scalar", dtype, (), value=None)))
        return
    (value,) = literals(array(sketch.rng, dtype, ()))
    scalar = sketch.add("const_scalar", dtype, (), value=value)
    x = sketch.input(dtype, shape(sketch))
    sketch.output(scalar, combined(sketch, x, scalar))


def draw_vconst(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = sketch.values(shape(sketch, limit=60))
    contents = array(sketch.rng, dtype, dims)
    table = sketch.add("vconst", dtype, dims, must_state=len(dims) != 1, values=literals(contents))
    sketch.output(moved(sketch, table, most=2), table)


def draw_define_var(sketch: Sketch, dtype: DType, _op: str) -> None:
    _use_scalar(sketch, dtype, _defined(sketch, dtype, sketch.integer(0, 9)))


def draw_bind(sketch: Sketch, dtype: DType, _op: str) -> None:
    value = sketch.integer(0, 9)
    defined = _defined(sketch, dtype, value)
    bound = sketch.add("bind", dtype, (), sym_var=defined, value=value)
    _use_scalar(sketch, dtype, sketch.pick([bound, defined]))
    sketch.output(bound)


def _defined(sketch: Sketch, dtype: DType, value: int) -> int:
    """The symbol `k`, with that value in the call, as a scalar."""
    low, high = sketch.integer(0, value), value + sketch.integer(0, 9)
    sketch.declare("k", value, low, high)
    return sketch.add("define_var", dtype, (), sym_var={"name": "k", "min_val": low, "max_val": high})


def _use_scalar(sketch: Sketch, dtype: DType, scalar: int) -> None:
    dims: tuple[Dim, ...] = (symbol("k"), 2) if sketch.symbolic else shape(sketch)
    x = sketch.input(dtype, dims)
    sketch.output(scalar, sketch.like("binop", x, op="add", a_var=x, b_var=scalar))


def draw_unique(sketch: Sketch, dtype: DType, _op: str) -> None:
    identifier = sketch.integer(-(2**31), 2**31 - 1)
    _use_marker(sketch, sketch.add("unique", dtype, (), id=identifier))


def draw_device(sketch: Sketch, dtype: DType, _op: str) -> None:
    _use_marker(sketch, sketch.add("device", dtype, (), device_name=sketch.pick(["CPU", "cuda:1", "ROCM"])))


def _use_marker(sketch: Sketch, marker: int) -> None:
    if sketch.dtype(marker) is DType.UNIT:
        sketch.output(mask_of_unit(sketch, marker))
        return
    x = sketch.input(DType.INT32, shape(sketch))
    sketch.output(marker, combined(sketch, x, marker))


FAMILIES = {
    "const_scalar": Family(ANY, draw_const_scalar),
    "vconst": Family(STORED, draw_vconst),
    "define_var": Family(INTEGERS, draw_define_var),
    "bind": Family(INTEGERS, draw_bind),
    "unique": Family((DType.INT32, DType.UNIT), draw_unique),
    "device": Family((DType.INT32, DType.UNIT), draw_device),
}
