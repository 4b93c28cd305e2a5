"""Comparisons, logic, bits, selection and limits. Operands of a comparison are cast to their common type."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes

from ... import build
from ...build import Tensor
from .call import Call, Operator
from .promotion import alike


def _compared(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda call: function(*alike(call, call.operand("self"), call.operand("other")))


def truth(x: Tensor) -> Tensor:
    """Convert to bool: anything but zero is true, NaN too."""
    return x if x.dtype.is_bool else build.not_equal(x, 0)


def _logical(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda call: function(truth(call.tensor()), truth(call.tensor("other")))


def _bitwise(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    def apply(call: Call) -> Tensor:
        return function(*(call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other")))

    return apply


def _where(call: Call) -> Tensor:
    left, right = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other"))
    return build.where(truth(call.tensor("condition")), left, right)


def _clamp(call: Call) -> Tensor:
    """Clamp. If the limits cross, the upper one wins; NaN stays, and a NaN limit gives NaN."""
    low, high = (call.as_tensor(call.operand(name), call.dtype) if call.has(name) else None for name in ("min", "max"))
    return call.tensor().cast(call.dtype).clip(low, high)


def _is_infinite(call: Call) -> Tensor:
    x = call.tensor()
    if not x.dtype.is_float:
        return build.zeros(x.builder, x.shape, "bool")
    return build.equal(build.absolute(x), float("inf"))


def _is_nan(call: Call) -> Tensor:
    x = call.tensor()
    return build.is_nan(x) if x.dtype.is_float else build.zeros(x.builder, x.shape, "bool")


def _masked_fill(call: Call) -> Tensor:
    x = call.tensor()
    return build.where(call.tensor("mask"), call.as_tensor(call.operand("value"), x.dtype), x)


def _nan_to_num(call: Call) -> Tensor:
    x = call.tensor()
    if not x.dtype.is_float:
        return x
    most = _greatest(x)
    high = call.number("posinf") if call.has("posinf") else most
    low = call.number("neginf") if call.has("neginf") else -most
    fixed = build.where(build.is_nan(x), call.as_tensor(call.number("nan", 0.0), x.dtype), x)
    fixed = build.where(build.equal(x, float("inf")), call.as_tensor(high, x.dtype), fixed)
    return build.where(build.equal(x, float("-inf")), call.as_tensor(low, x.dtype), fixed)


def _greatest(x: Tensor) -> float:
    return float(ml_dtypes.finfo(x.dtype.numpy).max)


OPERATORS: dict[str, Operator] = {
    **{f"aten.__lshift__.{kind}": _bitwise(lambda a, b: a << b) for kind in ("Scalar", "Tensor")},
    **{f"aten.__rshift__.{kind}": _bitwise(lambda a, b: a >> b) for kind in ("Scalar", "Tensor")},
    "aten.bitwise_and.Scalar": _bitwise(lambda a, b: a & b),
    "aten.bitwise_and.Tensor": _bitwise(lambda a, b: a & b),
    "aten.bitwise_left_shift.Tensor": _bitwise(lambda a, b: a << b),
    "aten.bitwise_left_shift.Tensor_Scalar": _bitwise(lambda a, b: a << b),
    "aten.bitwise_not.default": lambda call: ~call.tensor(),
    "aten.bitwise_or.Scalar": _bitwise(lambda a, b: a | b),
    "aten.bitwise_or.Tensor": _bitwise(lambda a, b: a | b),
    "aten.bitwise_right_shift.Tensor": _bitwise(lambda a, b: a >> b),
    "aten.bitwise_right_shift.Tensor_Scalar": _bitwise(lambda a, b: a >> b),
    "aten.bitwise_xor.Scalar": _bitwise(lambda a, b: a ^ b),
    "aten.bitwise_xor.Tensor": _bitwise(lambda a, b: a ^ b),
    "aten.clamp.Tensor": _clamp,
    "aten.clamp.default": _clamp,
    "aten.clamp_max.Tensor": _clamp,
    "aten.clamp_max.default": _clamp,
    "aten.clamp_min.Tensor": _clamp,
    "aten.clamp_min.default": _clamp,
    "aten.eq.Scalar": _compared(build.equal),
    "aten.eq.Tensor": _compared(build.equal),
    "aten.ge.Scalar": _compared(lambda a, b: a >= b),
    "aten.ge.Tensor": _compared(lambda a, b: a >= b),
    "aten.gt.Scalar": _compared(lambda a, b: a > b),
    "aten.gt.Tensor": _compared(lambda a, b: a > b),
    "aten.isinf.default": _is_infinite,
    "aten.isnan.default": _is_nan,
    "aten.le.Scalar": _compared(lambda a, b: a <= b),
    "aten.le.Tensor": _compared(lambda a, b: a <= b),
    "aten.logical_and.default": _logical(lambda a, b: a & b),
    "aten.logical_not.default": lambda call: ~truth(call.tensor()),
    "aten.logical_or.default": _logical(lambda a, b: a | b),
    "aten.logical_xor.default": _logical(lambda a, b: a ^ b),
    "aten.lt.Scalar": _compared(build.less),
    "aten.lt.Tensor": _compared(build.less),
    "aten.masked_fill.Scalar": _masked_fill,
    "aten.masked_fill.Tensor": _masked_fill,
    "aten.nan_to_num.default": _nan_to_num,
    "aten.ne.Scalar": _compared(build.not_equal),
    "aten.ne.Tensor": _compared(build.not_equal),
    "aten.where.ScalarOther": _where,
    "aten.where.ScalarSelf": _where,
    "aten.where.self": _where,
}
