"""Elementwise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.build.bits import bit_and, bit_or, bit_xor, invert
from tensorkiln.dtypes import DType
from tensorkiln.frontends.composed import trigonometry

from .op import Op
from .table import Translator
from .value import Known, Value


def _unary(function: Callable[[Tensor], Tensor]) -> Translator:
    return lambda op: function(op.tensor(0))


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Translator:
    def apply(op: Op) -> Value:
        left, right = op.elements()
        return spread_over(op, function(left, right))

    return apply


def spread_over(op: Op, result: Tensor) -> Tensor:
    """Expand `result`, which may have rank 0, to the shape of the operands."""
    if op.mode.is_lifted:
        return result
    shapes = [value.shape for value in op.operands if value.shape]
    return op.whole(result, shapes[0] if shapes else ())


def _subtract(left: Tensor, right: Tensor) -> Tensor:
    return left - right


def _divide(left: Tensor, right: Tensor) -> Tensor:
    """Divide. Integers truncate; division by zero gives all bits set, as in XLA."""
    if left.dtype.is_float:
        return left / right
    quotient = build.truncating_divide(left, right)
    everything = -1 if left.dtype.is_signed else int(left.dtype.max)
    return build.where(build.equal(right, 0), everything, quotient)


def _power(left: Tensor, right: Tensor) -> Tensor:
    return build.power(left, right)


def _negate(x: Tensor) -> Tensor:
    return -x


def _absolute(x: Tensor) -> Tensor:
    return build.absolute(x)


def _is_finite(x: Tensor) -> Tensor:
    return build.absolute(x) < float("inf")


def _round_away(x: Tensor) -> Tensor:
    """Round to nearest, ties away from zero."""
    whole = build.trunc(x)
    step = build.where(x < 0.0, x.builder.scalar(-1.0, x.dtype), 1.0)
    return build.where(build.absolute(x - whole) >= 0.5, whole + step, whole)


def _cube_root(x: Tensor) -> Tensor:
    """The cube root, by exp2 and log2 in float64 and one step of Newton's method."""
    wide = x.cast(DType.FLOAT64)
    size = build.absolute(wide)
    root = (size.log2() / 3.0).exp2()
    # Zero, infinity and NaN are their own cube roots; the Newton step would give NaN.
    is_usual = (size > 0.0) & (size < float("inf"))
    better = root - (root - size / (root * root)) / 3.0
    root = build.where(is_usual, better, size)
    return build.where(wide < 0.0, -root, build.where(is_usual, root, wide)).cast(x.dtype)


def _shift_left(left: Tensor, right: Tensor) -> Tensor:
    return as_unsigned(left, lambda value: value << right.bitcast(value.dtype))


def _shift_right_logical(left: Tensor, right: Tensor) -> Tensor:
    return as_unsigned(left, lambda value: value >> right.bitcast(value.dtype))


def _shift_right_arithmetic(left: Tensor, right: Tensor) -> Tensor:
    signed = DType(f"int{left.dtype.bits}")
    # Amounts are unsigned: a negative one is a large one.
    amount = right.bitcast(signed)
    amount = build.where(amount < 0, left.dtype.bits, amount)
    return (left.bitcast(signed) >> amount).bitcast(left.dtype)


def as_unsigned(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply `function` to the bits of an integer as an unsigned type."""
    return function(x.bitcast(DType(f"uint{x.dtype.bits}"))).bitcast(x.dtype)


def _population(x: Tensor) -> Tensor:
    """Count the set bits: sum neighbouring bits, then neighbouring pairs, and so on."""
    bits = x.dtype.bits
    for width in (1, 2, 4, 8, 16, 32):
        if width < bits:
            mask = sum(((1 << width) - 1) << at for at in range(0, bits, 2 * width))
            x = (x & mask) + ((x >> width) & mask)
    return x


def _leading_zeros(x: Tensor) -> Tensor:
    for width in (1, 2, 4, 8, 16, 32):
        if width < x.dtype.bits:
            x = x | (x >> width)
    return _population(~x)


def _arctangent(op: Op) -> Value:
    left, right = op.elements()
    kind = left.dtype
    if kind.is_half:
        left, right = left.cast(DType.FLOAT32), right.cast(DType.FLOAT32)
    return spread_over(op, trigonometry.atan2(left, right).cast(kind))


def _clamp(op: Op) -> Value:
    """Clamp. If the bounds cross, the upper one wins."""
    low, x, high = op.elements()
    found = build.minimum(build.maximum(x, low), high)
    return found if op.mode.is_lifted else op.whole(found, op.operands[1].shape)


def _select(op: Op) -> Value:
    condition = op.operands[0]
    if isinstance(condition, Known) and not op.mode.is_lifted and condition.splat is not None:
        return op.operands[1 if condition.splat else 2]
    found = build.where(*op.elements())
    return found if op.mode.is_lifted else op.whole(found, op.operands[1].shape)


def _map(op: Op) -> Value:
    (found,) = op.lifted(0, op.tensors())
    return op.whole(found, op.operands[0].shape)


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.abs": _unary(_absolute),
    "stablehlo.add": _binary(lambda a, b: a + b),
    "stablehlo.and": _binary(bit_and),
    "stablehlo.atan2": _arctangent,
    "stablehlo.cbrt": _unary(_cube_root),
    "stablehlo.ceil": _unary(build.ceil),
    "stablehlo.clamp": _clamp,
    "stablehlo.cosine": _unary(build.cos),
    "stablehlo.count_leading_zeros": _unary(lambda x: as_unsigned(x, _leading_zeros)),
    "stablehlo.divide": _binary(_divide),
    "stablehlo.exponential": _unary(build.exp),
    "stablehlo.exponential_minus_one": _unary(build.expm1),
    "stablehlo.floor": _unary(build.floor),
    "stablehlo.is_finite": _unary(_is_finite),
    "stablehlo.log": _unary(build.log),
    "stablehlo.log_plus_one": _unary(build.log1p),
    "stablehlo.logistic": _unary(build.sigmoid),
    "stablehlo.maximum": _binary(build.maximum),
    "stablehlo.minimum": _binary(build.minimum),
    "stablehlo.multiply": _binary(lambda a, b: a * b),
    "stablehlo.negate": _unary(_negate),
    "stablehlo.not": _unary(invert),
    "stablehlo.or": _binary(bit_or),
    "stablehlo.popcnt": _unary(lambda x: as_unsigned(x, _population)),
    "stablehlo.power": _binary(_power),
    "stablehlo.remainder": _binary(build.truncating_remainder),
    "stablehlo.round_nearest_afz": _unary(_round_away),
    "stablehlo.round_nearest_even": _unary(build.rint),
    "stablehlo.rsqrt": _unary(build.rsqrt),
    "stablehlo.select": _select,
    "stablehlo.shift_left": _binary(_shift_left),
    "stablehlo.shift_right_arithmetic": _binary(_shift_right_arithmetic),
    "stablehlo.shift_right_logical": _binary(_shift_right_logical),
    "stablehlo.sign": _unary(build.sign),
    "stablehlo.sine": _unary(build.sin),
    "stablehlo.sqrt": _unary(build.sqrt),
    "stablehlo.subtract": _binary(_subtract),
    "stablehlo.tan": _unary(build.tan),
    "stablehlo.tanh": _unary(build.tanh),
    "stablehlo.xor": _binary(bit_xor),
}
"""Operations on any shape, also valid in regions on scalars."""

WHOLE: Final[dict[str, Translator]] = {"stablehlo.map": _map}
"""Operations with a region."""
