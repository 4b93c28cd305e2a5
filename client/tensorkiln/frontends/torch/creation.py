"""Creation of tensors from numbers."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, Expr, ceildiv, sub
from ..composed.resampling import MAX_TABLE
from .call import Call, Operator


def _full(call: Call, value: object) -> Tensor:
    """A tensor filled with one number, which may depend on symbols."""
    number = value if isinstance(value, Tensor | Expr | bool | int | float) else 0
    scalar = call.as_tensor(number, call.dtype)
    shape = call.result_shape()
    return scalar.reshape([1] * len(shape)).expand(shape) if shape else scalar


def _filled(call: Call) -> Tensor:
    return _full(call, call.operand("fill_value"))


def _fill(call: Call) -> Tensor:
    value = call.operand("value")
    return _full(call, value.reshape([]) if isinstance(value, Tensor) else value)


def _constant(value: int) -> Operator:
    return lambda call: _full(call, value)


def _scalar(call: Call) -> Tensor:
    return call.as_tensor(call.operand("s"), call.dtype)


def _range(call: Call) -> Tensor:
    """`start`, `start + step`, … below `end`; floats are computed as in torch, by one product and one sum each."""
    start = call.operand("start") if call.has("start") else 0
    end = call.operand("end")
    step = call.operand("step") if call.has("step") else 1
    if isinstance(start, Tensor) or isinstance(end, Tensor) or isinstance(step, Tensor | Expr):
        call.fail("the ends and the step of a range must be numbers or sizes, not values of a tensor")
    count = _count(call, start, end, step)
    whole = isinstance(start, int | Expr) and isinstance(step, int)
    if not whole and call.dtype.is_integer:
        start, step = math.trunc(float(_known(call, start))), math.trunc(step)
    wide = DType.INT64 if isinstance(start, int | Expr) and isinstance(step, int) else DType.FLOAT64
    numbers = build.arange(call.builder, count, wide)
    scaled = numbers if step == 1 else numbers * call.as_tensor(step, wide)
    return (scaled if start == 0 else scaled + call.as_tensor(start, wide)).cast(call.dtype)


def _known(call: Call, value: object) -> float:
    return (
        value
        if isinstance(value, int | float)
        else call.fail(f"{value} depends on a size; a range of fractions takes numbers")
    )


def _count(call: Call, start: object, end: object, step: float) -> Dim:
    if step == 0:
        call.invalid("the step of a range is 0")
    if isinstance(step, int) and isinstance(start, int | Expr) and isinstance(end, int | Expr):
        span = sub(end, start) if step > 0 else sub(start, end)
        return ceildiv(span, abs(step))
    return max(math.ceil((_known(call, end) - _known(call, start)) / step), 0)


def _eye(call: Call) -> Tensor:
    rows, columns = call.result_shape()
    numbers = [build.arange(call.builder, dim) for dim in (rows, columns)]
    return build.equal(numbers[0].unsqueeze(1), numbers[1]).cast(call.dtype)


def _iota(call: Call) -> Tensor:
    numbers = build.arange(call.builder, call.dim("length"))
    return (numbers * call.integer("step", 1) + call.as_tensor(call.dim("start", 0), DType.INT64)).cast(call.dtype)


def _line(call: Call) -> Tensor:
    """`linspace`, computed from both ends to the middle, as in torch, so that both ends are exact.

    Both ends are first converted to the element type of the result; integers are computed in float64 and truncated.
    """
    steps = call.integer("steps")
    wide = call.dtype.accumulator if call.dtype.is_float else DType.FLOAT64
    first, last = (call.as_tensor(call.operand(name), call.dtype).cast(wide) for name in ("start", "end"))
    if steps == 1:
        return first.reshape([1]).cast(call.dtype)
    step = (last - first) / float(steps - 1)
    places = build.arange(call.builder, steps, wide)
    near, far = first + places * step, last - (float(steps - 1) - places) * step
    return build.where(places < float(steps // 2), near, far).cast(call.dtype)


def _one_hot(call: Call) -> Tensor:
    x, depth = call.tensor(), call.integer("num_classes", -1)
    if depth < 0:
        call.fail("num_classes must be given: without it the shape depends on values")
    return build.one_hot(x, depth, DType.INT64)


def _triangle_places(is_upper: bool) -> Operator:
    """Row and column indices of a triangle, in row-major order."""

    def apply(call: Call) -> Tensor:
        rows, columns, offset = call.integer("row"), call.integer("col"), call.integer("offset", 0)
        if rows * columns > MAX_TABLE:
            call.fail(f"the places of {rows} by {columns} elements are more than the {MAX_TABLE} that are listed")
        found = np.triu_indices(rows, offset, columns) if is_upper else np.tril_indices(rows, offset, columns)
        return call.parameter(np.stack(found).astype(np.int64)).cast(call.dtype)

    return apply


LINES: Final[dict[str, Operator]] = {
    "aten.linspace.Scalar_Tensor": _line,
    "aten.linspace.Tensor_Scalar": _line,
    "aten.linspace.Tensor_Tensor": _line,
    "aten.linspace.default": _line,
}
"""Operators whose decomposition in torch does not truncate the ends of lines of integers, which torch itself does."""
OPERATORS: dict[str, Operator] = {
    **LINES,
    "aten.arange.default": _range,
    "aten.arange.start": _range,
    "aten.arange.start_step": _range,
    "aten.empty.memory_format": _constant(0),
    "aten.empty_like.default": _constant(0),
    "aten.empty_permuted.default": _constant(0),
    "aten.empty_strided.default": _constant(0),
    "aten.eye.default": _eye,
    "aten.eye.m": _eye,
    "aten.fill.Scalar": _fill,
    "aten.fill.Tensor": _fill,
    "aten.full.default": _filled,
    "aten.full_like.default": _filled,
    "aten.new_empty.default": _constant(0),
    "aten.new_empty_strided.default": _constant(0),
    "aten.new_full.default": _filled,
    "aten.new_ones.default": _constant(1),
    "aten.new_zeros.default": _constant(0),
    "aten.one_hot.default": _one_hot,
    "aten.ones.default": _constant(1),
    "aten.ones_like.default": _constant(1),
    "aten.scalar_tensor.default": _scalar,
    "aten.tril_indices.default": _triangle_places(False),
    "aten.triu_indices.default": _triangle_places(True),
    "aten.zeros.default": _constant(0),
    "aten.zeros_like.default": _constant(0),
    "prims.iota.default": _iota,
}
