"""Nodes about other nodes: sink, multi, kernel; and the two with an algorithm of their own, threefry and custom."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.expr import add

from .family import STORED, VALUES, Family
from .memory import combined
from .movement import maximum_extent
from .shapes import extent, shape
from .sketch import Sketch


def draw_sink(sketch: Sketch, _dtype: DType, _op: str) -> None:
    x = sketch.input(DType.FLOAT32, shape(sketch))
    y = combined(sketch, x, x)
    sketch.write({"node": "sink", "deps": sketch.pick([(), (x,), (y, x)]), "dtype": DType.UNIT})
    sketch.output(y)


def draw_multi(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = shape(sketch, low_rank=1, limit=40)
    if sketch.flag():
        replicas = [sketch.input(dtype, dims) for _ in range(sketch.integer(1, 3))]
        mask = [sketch.flag() for _ in replicas]
        sketch.output(sketch.add("multi", dtype, dims, device_vars=replicas, axis=None, real_mask=mask))
        return
    axis = sketch.integer(0, len(dims) - 1)
    longest = maximum_extent(sketch, dims, axis)
    lengths = [dims[axis], *(extent(sketch, longest) for _ in range(sketch.integer(0, 2)))]
    shards = [sketch.input(dtype, (*dims[:axis], length, *dims[axis + 1 :])) for length in lengths]
    real = [True, *(sketch.flag() for _ in shards[1:])]
    total = add(*(length for length, is_real in zip(lengths, real, strict=True) if is_real))
    result = (*dims[:axis], total, *dims[axis + 1 :])
    sketch.output(sketch.add("multi", dtype, result, device_vars=shards, axis=axis, real_mask=real))


def draw_kernel(sketch: Sketch, dtype: DType, _op: str) -> None:
    sketch.pick([_kernel_of_binop, _kernel_of_reduction, _kernel_of_sink])(sketch, dtype)


def _kernel_of_binop(sketch: Sketch, dtype: DType) -> None:
    """Sometimes wrapped again."""
    x = sketch.input(dtype, shape(sketch))
    y = sketch.input(dtype, sketch.dims(x))
    out = _result_like(sketch, x)
    node: dict[str, Any] = {"node": "binop", "op": "max", "a_var": x, "b_var": y, "out_var": out, "dtype": dtype}
    for _ in range(sketch.integer(1, 3)):
        node = _wrapped(node, [x, y], [out], dtype)
    sketch.write(node)
    sketch.output(out, combined(sketch, out, x))


def _kernel_of_reduction(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1))
    out = sketch.fresh()
    sketch.define(out, dtype, (1, *sketch.dims(x)[1:]))
    node = {"node": "reduce_axis", "in_var": x, "reduce_op_kind": "max", "axes": [0], "out_var": out, "dtype": dtype}
    sketch.write(_wrapped(node, [x], [out], dtype))
    sketch.output(out)


def _kernel_of_sink(sketch: Sketch, dtype: DType) -> None:
    x, y = sketch.input(dtype, shape(sketch)), sketch.input(sketch.pick(VALUES), shape(sketch))
    first, second = _result_like(sketch, x), _result_like(sketch, y)
    node = {"node": "sink", "deps": [x, y], "dtype": DType.UNIT}
    sketch.write(_wrapped(node, [x, y], [first, second], dtype))
    sketch.output(second, combined(sketch, first, x))


def _result_like(sketch: Sketch, var: int) -> int:
    out = sketch.fresh()
    sketch.define(out, sketch.dtype(var), sketch.dims(var))
    return out


def _wrapped(node: dict[str, Any], inputs: list[int], outputs: list[int], dtype: DType) -> dict[str, Any]:
    hints = {"name": "wrapped", "local_dims": 0, "upcasted": 0, "dont_use_locals": False}
    head = {"node": "kernel", "ast": node, "input_vars": inputs, "output_vars": outputs, "metadata": hints}
    return {**head, "out_var": outputs[0], "dtype": dtype}


def draw_threefry(sketch: Sketch, dtype: DType, _op: str) -> None:
    dims = shape(sketch, limit=100)
    if dtype is DType.INT32:
        counter, key = sketch.input(dtype, (*dims, 2)), sketch.input(dtype, (*dims, 2))
    else:
        sizes = sketch.values(dims)
        counted = np.arange(prod(sizes), dtype=np.uint64).reshape(sizes)
        counter = sketch.input(dtype, dims) if sketch.flag() else sketch.input_of(counted, dims)
        key = sketch.input(dtype, sketch.pick([dims, ()]))
    sketch.output(sketch.like("threefry", counter, ctr_var=counter, key_var=key))


def draw_custom(sketch: Sketch, dtype: DType, _op: str) -> None:
    """`sort`, of an input or of something computed."""
    x = sketch.input(dtype, shape(sketch, low_rank=1))
    x = combined(sketch, x, x) if sketch.flag() else x
    rank = len(sketch.dims(x))
    attributes = [{"name": "axis", "kind": "int", "value": sketch.integer(-rank, rank - 1)}]
    if sketch.flag():
        attributes.append({"name": "descending", "kind": "int", "value": sketch.integer(0, 1)})
    ordered = sketch.like("custom", x, op_name="sort", in_vars=[x], attributes=attributes)
    sketch.output(ordered, combined(sketch, ordered, x))


FAMILIES = {
    "sink": Family((DType.UNIT,), draw_sink),
    "multi": Family(STORED, draw_multi),
    "kernel": Family(VALUES, draw_kernel),
    "threefry": Family((DType.UINT64, DType.INT32), draw_threefry),
    "custom": Family(STORED, draw_custom),
}
