"""Elementwise arithmetic. Operands are first cast to torch's element type of the result."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from ..composed.trigonometry import acos, acosh, asin, asinh, atan, atanh, cosh, in_wide_float, sinh
from .call import Call, Operator


def unary(function: Callable[[Tensor], Tensor]) -> Operator:
    """A unary float function; integers are first cast to torch's element type of the result."""
    return lambda call: function(call.tensor().cast(call.dtype))


def _wide(function: Callable[[Tensor], Tensor]) -> Operator:
    return unary(lambda x: in_wide_float(function, x))


def binary(function: Callable[[Tensor, Tensor], Tensor], second: str = "other") -> Operator:
    def apply(call: Call) -> Tensor:
        dtype = call.dtype
        return function(call.as_tensor(call.operand("self"), dtype), call.as_tensor(call.operand(second), dtype))

    return apply


def _scaled(call: Call) -> Tensor:
    """`alpha * other`."""
    return call.times(call.as_tensor(call.operand("other"), call.dtype), "alpha")


def _add(call: Call) -> Tensor:
    return call.as_tensor(call.operand("self"), call.dtype) + _scaled(call)


def _subtract(call: Call) -> Tensor:
    return call.as_tensor(call.operand("self"), call.dtype) - _scaled(call)


def _subtract_from(call: Call) -> Tensor:
    """`other - alpha * self`, which torch calls rsub."""
    scaled = call.times(call.as_tensor(call.operand("self"), call.dtype), "alpha")
    return call.as_tensor(call.operand("other"), call.dtype) - scaled


def _rounding_divide(call: Call) -> Tensor:
    left, right = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other"))
    mode = call.text("rounding_mode", "none")
    if mode == "floor":
        return left // right
    if mode == "trunc":
        return build.trunc(left / right) if left.dtype.is_float else build.truncating_divide(left, right)
    if mode != "none":
        call.invalid(f"the rounding mode {mode!r} is neither floor nor trunc")
    return left / right


def _power(call: Call) -> Tensor:
    exponent = call.value("exponent")
    base = call.as_tensor(call.operand("self"), call.dtype)
    if isinstance(exponent, int | float) and not isinstance(exponent, bool):
        return _known_power(call, base, exponent)
    return base ** call.as_tensor(call.operand("exponent"), call.dtype)


def _known_power(call: Call, base: Tensor, exponent: float) -> Tensor:
    """Use square roots and products for common exponents, which are more exact than a general power."""
    if base.dtype.is_integer:
        if exponent < 0:
            call.invalid(f"integers have no power {exponent}")
        return base ** call.as_tensor(exponent, base.dtype)
    named: dict[float, Callable[[Tensor], Tensor]] = {
        0.5: build.sqrt,
        -0.5: build.rsqrt,
        1.0: lambda x: x,
        2.0: lambda x: x * x,
        3.0: lambda x: x * x * x,
        -1.0: build.reciprocal,
        -2.0: lambda x: build.reciprocal(x * x),
    }
    if exponent in named:
        return in_wide_float(named[float(exponent)], base)
    return base ** call.as_tensor(exponent, base.dtype)


def _absolute(call: Call) -> Tensor:
    x = call.tensor()
    return x if x.dtype.is_bool else build.absolute(x)


def _rounded(function: Callable[[Tensor], Tensor]) -> Operator:
    """A rounding function; integers are returned unchanged."""
    return lambda call: function(call.tensor()) if call.tensor().dtype.is_float else call.tensor()


def _round_to(call: Call) -> Tensor:
    x, decimals = call.tensor(), call.integer("decimals", 0)
    if not x.dtype.is_float or decimals == 0:
        return build.rint(x) if x.dtype.is_float else x
    factor = 10.0 ** abs(decimals)
    return build.rint(x * factor) / factor if decimals > 0 else build.rint(x / factor) * factor


def _sign(call: Call) -> Tensor:
    """The sign; 0 for NaN and for both zeros, as in torch."""
    x = call.tensor()
    if x.dtype.is_bool:
        return x
    zero, one = call.as_tensor(0, x.dtype), call.as_tensor(1, x.dtype)
    rest = zero if x.dtype.is_unsigned else build.where(x < zero, call.as_tensor(-1, x.dtype), zero)
    return build.where(x > zero, one, rest)


def _angle(call: Call) -> Tensor:
    """The angle of a real number: 0 or pi."""
    x = call.tensor().cast(call.dtype)
    return build.where(x < 0.0, math.pi, build.where(build.is_nan(x), x, 0.0))


def _atan2(call: Call) -> Tensor:
    """The angle of (x, y), in the quadrant of both signs, including signed zeros."""
    y, x = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other"))

    def angle(y: Tensor, x: Tensor) -> Tensor:
        infinite = float("inf")
        both = build.equal(build.absolute(y), infinite) & build.equal(build.absolute(x), infinite)
        quotient = build.where(both, 1.0, build.absolute(y) / build.absolute(x))
        neither = build.equal(y, 0.0) & build.equal(x, 0.0)
        acute = build.where(neither, 0.0, atan(quotient))
        turned = build.where(_is_negative(x), math.pi - acute, acute)
        signed = build.where(_is_negative(y), -turned, turned)
        return build.where(build.is_nan(x) | build.is_nan(y), float("nan"), signed)

    return _pairwise(angle, y, x)


def _pairwise(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Apply a binary function, in float32 for 16-bit floats."""
    if not a.dtype.is_half:
        return function(a, b)
    return function(a.cast("float32"), b.cast("float32")).cast(a.dtype)


def _is_negative(x: Tensor) -> Tensor:
    """Whether the sign bit is set, also for -0.0."""
    return build.bitcast(x, "int64" if x.dtype.bits == 64 else "int32") < 0


def _sign_bit(call: Call) -> Tensor:
    x = call.tensor()
    if x.dtype.is_float:
        return _is_negative(widened(x))
    return x < call.as_tensor(0, x.dtype) if x.dtype.is_signed else build.zeros(x.builder, x.shape, "bool")


def _copy_sign(call: Call) -> Tensor:
    size, sign = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other"))
    away = build.absolute(size)
    negative = _is_negative(widened(sign))
    return build.where(negative, -away, away)


def _hypotenuse(call: Call) -> Tensor:
    """`hypot`, scaled by the greater operand so that no square overflows."""
    a, b = (build.absolute(call.as_tensor(call.operand(name), call.dtype)) for name in ("self", "other"))

    def length(a: Tensor, b: Tensor) -> Tensor:
        most, least = build.maximum(a, b), build.minimum(a, b)
        ratio = build.where(build.equal(most, least), 1.0, least / most)
        found = build.where(build.equal(most, 0.0), 0.0, most * (ratio * ratio + 1.0).sqrt())
        # An infinite operand gives infinity, even if the other is NaN.
        endless = build.equal(a, float("inf")) | build.equal(b, float("inf"))
        return build.where(endless, float("inf"), found)

    return _pairwise(length, a, b)


def _ignoring_nan(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    """A binary function that returns the other operand where one is NaN."""

    def apply(call: Call) -> Tensor:
        a, b = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "other"))
        if not a.dtype.is_float:
            return function(a, b)
        return build.where(build.is_nan(a), b, build.where(build.is_nan(b), a, function(a, b)))

    return apply


ERFC = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196),
    *(1.00002368, -1.26551223),
)
"""Coefficients in t = 1 / (1 + |x| / 2), highest power first, of ln(erfc(x) / t) + x²: error 1.2e-7 (Press 1992)."""


def _complement(call: Call) -> Tensor:
    """`1 - erf(x)` without cancellation, computed in float64."""
    if call.dtype is DType.FLOAT64:
        call.fail("erfc of float64 is not supported")
    x = call.tensor().cast(DType.FLOAT64)
    size = build.absolute(x)
    t = 1.0 / (size * 0.5 + 1.0)
    total = build.zeros(x.builder, x.shape, DType.FLOAT64)
    for coefficient in ERFC:
        total = total * t + coefficient
    upper = t * (total - size * size).exp()
    return build.where(x < 0.0, 2.0 - upper, upper).cast(call.dtype)


def _fused(sign: str) -> Operator:
    """`self + value * a * b`, or `a / b`."""

    def apply(call: Call) -> Tensor:
        x, a, b = (call.tensor(name).cast(call.dtype) for name in ("self", "tensor1", "tensor2"))
        return x + (call.times(a, "value") * b if sign == "*" else call.times(a / b, "value"))

    return apply


def _lerp(call: Call) -> Tensor:
    start, end, weight = (call.as_tensor(call.operand(name), call.dtype) for name in ("self", "end", "weight"))
    near = build.absolute(weight) < 0.5
    return build.where(near, start + weight * (end - start), end - (end - start) * (1.0 - weight))


def _by_power(call: Call) -> Tensor:
    """`x * 2 ** n`; infinite where the power is."""
    return call.tensor().cast(call.dtype) * build.exp2(call.tensor("other").cast(call.dtype))


OPERATORS: dict[str, Operator] = {
    "aten.abs.default": _absolute,
    "aten.acos.default": _wide(acos),
    "aten.acosh.default": _wide(acosh),
    "aten.add.Scalar": _add,
    "aten.add.Tensor": _add,
    "aten.addcdiv.default": _fused("/"),
    "aten.addcmul.default": _fused("*"),
    "aten.angle.default": _angle,
    "aten.asin.default": _wide(asin),
    "aten.asinh.default": _wide(asinh),
    "aten.atan.default": _wide(atan),
    "aten.atan2.default": _atan2,
    "aten.atanh.default": _wide(atanh),
    "aten.ceil.default": _rounded(build.ceil),
    "aten.copysign.Scalar": _copy_sign,
    "aten.copysign.Tensor": _copy_sign,
    "aten.cos.default": unary(build.cos),
    "aten.cosh.default": _wide(cosh),
    "aten.div.Scalar": _rounding_divide,
    "aten.div.Scalar_mode": _rounding_divide,
    "aten.div.Tensor": _rounding_divide,
    "aten.div.Tensor_mode": _rounding_divide,
    "aten.erf.default": unary(build.erf),
    "aten.erfc.default": _complement,
    "aten.exp.default": unary(build.exp),
    "aten.exp2.default": unary(build.exp2),
    "aten.expm1.default": unary(build.expm1),
    "aten.floor.default": _rounded(build.floor),
    "aten.floor_divide.default": binary(lambda a, b: a // b),
    "aten.fmax.default": _ignoring_nan(build.maximum),
    "aten.fmin.default": _ignoring_nan(build.minimum),
    "aten.fmod.Scalar": binary(build.truncating_remainder),
    "aten.fmod.Tensor": binary(build.truncating_remainder),
    "aten.hypot.default": _hypotenuse,
    "aten.ldexp.Tensor": _by_power,
    "aten.lerp.Scalar": _lerp,
    "aten.lerp.Tensor": _lerp,
    "aten.log.default": unary(build.log),
    "aten.log10.default": unary(build.log10),
    "aten.log1p.default": unary(build.log1p),
    "aten.log2.default": unary(build.log2),
    "aten.maximum.default": binary(build.maximum),
    "aten.minimum.default": binary(build.minimum),
    "aten.mul.Scalar": binary(lambda a, b: a * b),
    "aten.mul.Tensor": binary(lambda a, b: a * b),
    "aten.neg.default": unary(lambda x: -x),
    "aten.pow.Scalar": _power,
    "aten.pow.Tensor_Scalar": _power,
    "aten.pow.Tensor_Tensor": _power,
    "aten.reciprocal.default": unary(build.reciprocal),
    "aten.remainder.Scalar": binary(lambda a, b: a % b),
    "aten.remainder.Scalar_Tensor": binary(lambda a, b: a % b),
    "aten.remainder.Tensor": binary(lambda a, b: a % b),
    "aten.round.decimals": _round_to,
    "aten.round.default": _rounded(build.rint),
    "aten.rsqrt.default": unary(build.rsqrt),
    "aten.rsub.Scalar": _subtract_from,
    "aten.rsub.Tensor": _subtract_from,
    "aten.sign.default": _sign,
    "aten.signbit.default": _sign_bit,
    "aten.sin.default": unary(build.sin),
    "aten.sinh.default": _wide(sinh),
    "aten.sqrt.default": unary(build.sqrt),
    "aten.square.default": unary(lambda x: x * x),
    "aten.sub.Scalar": _subtract,
    "aten.sub.Tensor": _subtract,
    "aten.tan.default": unary(build.tan),
    "aten.true_divide.Scalar": _rounding_divide,
    "aten.true_divide.Tensor": _rounding_divide,
    "aten.trunc.default": _rounded(build.trunc),
}
