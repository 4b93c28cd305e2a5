"""The 17 binary operations: one table for floats, one for integers, one for bool."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtypes import DType
from ..nodes import Binop, BinopKind
from .precision import Array, arithmetic, rounded
from .scope import Evaluator, Scope


def evaluate_binop(node: Binop, scope: Scope) -> Array:
    """`op(a, b)`; a comparison's `dtype` is that of its result, so the operands' own dtype chooses the table."""
    return apply_binop(node.op, scope.read(node.a_var), scope.read(node.b_var), scope.dtype(node.a_var))


def apply_binop(op: BinopKind, a: Array, b: Array, dtype: DType) -> Array:
    """`op` on operands of `dtype` (a shift's amount may have another): one rounding for floats, wrapping integers."""
    if dtype.is_bool:
        return LOGICAL[op](a, b)
    if dtype.is_integer:
        return INTEGER[op](a, b)
    if op is BinopKind.POW:
        return rounded(power_of_floats(a.astype(np.longdouble), b.astype(np.longdouble)), dtype)
    result = FLOAT[op](a.astype(arithmetic(dtype)), b.astype(arithmetic(dtype)))
    return result if result.dtype == np.bool_ else rounded(result, dtype)


def maximum(a: Array, b: Array) -> Array:
    """NaN when either is NaN, and +0 above -0: a sum of two zeros is -0 only when both are."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    return -maximum(-a, -b)


def divide_integers(a: Array, b: Array) -> Array:
    """Truncating; x / 0 is 0, and the least integer divided by -1 wraps to itself."""
    divisor = np.where((b == 0) | _is_minus_one(b), 1, b)
    # The remainder is removed first, so the floor division is exact and rounds nowhere.
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(b == 0, 0, np.where(_is_minus_one(b), 0 - a, quotient))


def remainder_of_integers(a: Array, b: Array) -> Array:
    """The sign of the dividend; x mod 0 is x, and x mod -1 is 0."""
    remainder = np.fmod(a, np.where((b == 0) | _is_minus_one(b), 1, b))
    return np.where(b == 0, a, remainder)


def _is_minus_one(b: Array) -> Array:
    return np.zeros(b.shape, np.bool_) if np.issubdtype(b.dtype, np.unsignedinteger) else b == -1


def power_of_floats(base: Array, exponent: Array) -> Array:
    """C's pow (C17, annex F.10.4.4), whatever the shapes: NumPy may take the square root for a scalar exponent of 0.5.

    A power of zero or infinity is one of them; it has the sign of the base where the exponent is odd. Some C libraries
    take large even exponents of long doubles for odd ones.
    """
    base, exponent = np.broadcast_arrays(base, exponent)
    is_odd = np.abs(np.fmod(exponent, 2)) == 1
    is_infinite = (exponent > 0) == np.isinf(base)
    extreme = np.copysign(np.where(is_infinite, np.inf, 0.0), np.where(is_odd, base, 1.0))
    is_extreme = ((base == 0) | np.isinf(base)) & (exponent != 0) & ~np.isnan(exponent)
    return np.where(is_extreme, extreme, np.power(base, exponent))


def power_of_integers(base: Array, exponent: Array) -> Array:
    """Repeated wrapping multiplication; a negative exponent gives 0 unless the base is 1 or -1."""
    power = np.power(base, np.maximum(exponent, 0))
    of_minus_one = np.where((exponent & 1) == 0, 1, -1).astype(base.dtype)
    reciprocal = np.where(base == 1, 1, np.where(_is_minus_one(base), of_minus_one, 0))
    return np.where(exponent >= 0, power, reciprocal)


def shift_left(a: Array, amount: Array) -> Array:
    """An amount that is negative or not below the width shifts everything out: 0."""
    fits = _fits(a, amount)
    return np.where(fits, a << np.where(fits, amount, 0).astype(a.dtype), 0)


def shift_right(a: Array, amount: Array) -> Array:
    """Arithmetic for signed, logical for unsigned; an oversized amount leaves only copies of the sign."""
    fits = _fits(a, amount)
    sign = np.where(a < 0, -1, 0).astype(a.dtype) if np.issubdtype(a.dtype, np.signedinteger) else np.zeros_like(a)
    return np.where(fits, a >> np.where(fits, amount, 0).astype(a.dtype), sign)


def _fits(a: Array, amount: Array) -> Array:
    return (amount >= 0) & (amount < 8 * a.dtype.itemsize)


Table = dict[BinopKind, Callable[[Array, Array], Array]]

FLOAT: Table = {
    BinopKind.ADD: np.add,
    BinopKind.MUL: np.multiply,
    BinopKind.SUB: np.subtract,
    BinopKind.DIV: np.divide,
    BinopKind.FDIV: np.divide,
    BinopKind.MOD: np.fmod,
    BinopKind.MAX: maximum,
    BinopKind.MIN: minimum,
    BinopKind.CMPLT: np.less,
    BinopKind.CMPNE: np.not_equal,
}

INTEGER: Table = {
    BinopKind.ADD: np.add,
    BinopKind.MUL: np.multiply,
    BinopKind.SUB: np.subtract,
    BinopKind.DIV: divide_integers,
    BinopKind.IDIV: divide_integers,
    BinopKind.MOD: remainder_of_integers,
    BinopKind.POW: power_of_integers,
    BinopKind.MAX: np.maximum,
    BinopKind.MIN: np.minimum,
    BinopKind.CMPLT: np.less,
    BinopKind.CMPNE: np.not_equal,
    BinopKind.XOR: np.bitwise_xor,
    BinopKind.OR: np.bitwise_or,
    BinopKind.AND: np.bitwise_and,
    BinopKind.SHL: shift_left,
    BinopKind.SHR: shift_right,
}

LOGICAL: Table = {
    BinopKind.ADD: np.logical_or,
    BinopKind.MUL: np.logical_and,
    BinopKind.MAX: np.logical_or,
    BinopKind.MIN: np.logical_and,
    BinopKind.CMPLT: np.less,
    BinopKind.CMPNE: np.not_equal,
    BinopKind.XOR: np.logical_xor,
    BinopKind.OR: np.logical_or,
    BinopKind.AND: np.logical_and,
}

EVALUATORS: dict[type, Evaluator] = {Binop: evaluate_binop}
