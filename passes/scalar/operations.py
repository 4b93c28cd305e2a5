"""The elementwise nodes on one element: tables of functions by kind and sort of dtype."""

from __future__ import annotations

from collections.abc import Callable

from dialect.mlir import ir
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError

from .arithmetic import add, extreme_beside, less, maximum, minimum, multiply
from .division import divide_integers, remainder_of_integers
from .exp2 import exp2
from .form import BF16, F16, I16, form_of
from .integer_power import power_of_integers
from .log2 import log2
from .number import Number, choose, constant_of
from .polynomial import multiply_add
from .power import power_of_constant, power_of_floats
from .remainder import remainder_of_floats
from .shift import shift_left, shift_right
from .sine import sin
from .traits import PORTABLE, Traits
from .working import held, load, store

Binary = Callable[[DType, Number, Number], Number]


def _truncated(traits: Traits, x: Number) -> Number:
    """x toward zero; signed zeros, infinities, NaN and whole numbers stay as they are."""
    if traits.has_rounding:
        return x.toward_zero()
    size = x.absolute()
    # From 2**fraction on there is no fraction; below it, adding that much rounds to the nearest whole number.
    limit = float(1 << x.form.fraction)
    nearest = (size + limit) - limit
    whole = choose(size.less(nearest), nearest - 1.0, nearest)
    truncated = choose(size.less(limit), whole, size)
    sign = x.bits() & (1 << (x.form.bits - 1))
    return (truncated.bits() | sign).reinterpreted(x.form)


_COMPARED: dict[str, Binary] = {"cmplt": less, "cmpne": lambda _, a, b: a.differs(b)}
_BITWISE: dict[str, Binary] = {
    "xor": lambda _, a, b: a ^ b,
    "or": lambda _, a, b: a | b,
    "and": lambda _, a, b: a & b,
}
_NUMBERS: dict[str, Binary] = {
    "add": add,
    "mul": multiply,
    "sub": lambda _, a, b: a - b,
    "max": maximum,
    "min": minimum,
    **_COMPARED,
}
FLOAT: dict[str, Binary] = {
    **_NUMBERS,
    # By IEEE 754: x/0 is an infinity, 0/0 NaN.
    **dict.fromkeys(("div", "fdiv"), lambda _, a, b: a / b),
    "mod": remainder_of_floats,
}
INTEGER: dict[str, Binary] = {
    **_NUMBERS,
    **dict.fromkeys(("div", "idiv"), divide_integers),
    "mod": remainder_of_integers,
    "pow": power_of_integers,
    **_BITWISE,
    "shl": shift_left,
    "shr": shift_right,
}
BOOL: dict[str, Binary] = {
    "add": add,
    "mul": multiply,
    "max": _BITWISE["or"],
    "min": _BITWISE["and"],
    **_COMPARED,
    **_BITWISE,
}


def binop(
    kind: str,
    dtype: DType,
    a: ir.Value,
    b: ir.Value,
    result_dtype: DType | None = None,
    *,
    amount_dtype: DType | None = None,
    traits: Traits = PORTABLE,
) -> ir.Value:
    """One of the 17 binary kinds on operands of `dtype`; the amount of a shift may be of `amount_dtype`.

    A comparison gives `result_dtype`, bool (the default) or uint8; everything else gives `dtype`. Raises
    UnsupportedGraphError for a kind that the dtype does not have.
    """
    left = load(traits, dtype, a)
    right = load(traits, amount_dtype or dtype, b) if kind in ("shl", "shr") else load(traits, dtype, b)
    if kind == "pow" and dtype.is_float:
        known = constant_of(b)
        shortcut = None if known is None else power_of_constant(left, known)
        return store(traits, dtype, power_of_floats(traits, left, right) if shortcut is None else shortcut)
    if kind in ("max", "min") and dtype.is_float and not traits.has_maximum:
        beside = ((number, constant_of(other)) for number, other in ((left, b), (right, a)))
        known = next(((number, known) for number, known in beside if known is not None), None)
        if known is not None and (extreme := extreme_beside(kind, *known)) is not None:
            return store(traits, dtype, extreme)
    table = FLOAT if dtype.is_float else BOOL if dtype.is_bool else INTEGER
    operation = table.get(kind)
    if operation is None:
        raise UnsupportedGraphError(f"binop {kind} is not defined for {dtype}: cast the operands")
    result = operation(dtype, left, right)
    if kind not in _COMPARED:
        return store(traits, dtype, result)
    return result.zero_extended(form_of(result_dtype or DType.BOOL)).value


def unary(kind: str, dtype: DType, x: ir.Value, *, traits: Traits = PORTABLE) -> ir.Value:
    """neg, log2, exp2, sin, sqrt, recip or trunc; only neg is defined for integers and bool.

    Raises UnsupportedGraphError for a kind that the dtype does not have.
    """
    if kind == "neg":
        return _negated(dtype, held(dtype, x)).value
    if not dtype.is_float or kind not in UNARY:
        raise UnsupportedGraphError(f"unary {kind} is not defined for {dtype}: cast the operand to a float")
    return store(traits, dtype, UNARY[kind](traits, load(traits, dtype, x)))


def _negated(dtype: DType, x: Number) -> Number:
    if dtype.is_bool:
        return ~x
    # Flip the sign bit: some targets would negate a 16-bit float in float32, by calls.
    return (x.reinterpreted(I16) ^ 0x8000).reinterpreted(x.form) if x.form.over(0) in (F16, BF16) else -x


UNARY: dict[str, Callable[[Traits, Number], Number]] = {
    "log2": log2,
    "exp2": exp2,
    "sin": sin,
    "sqrt": lambda _, x: x.square_root(),
    "recip": lambda _, x: 1.0 / x,
    "trunc": _truncated,
}


def ternary(
    kind: str,
    dtype: DType,
    a: ir.Value,
    b: ir.Value,
    c: ir.Value,
    *,
    condition_dtype: DType = DType.BOOL,
    traits: Traits = PORTABLE,
) -> ir.Value:
    """where(a, b, c) with a of `condition_dtype`, both branches computed; or mulacc, a * b + c of `dtype`.

    The product of a mulacc is rounded to `dtype` before the sum, unless the traits let it contract.
    Raises UnsupportedGraphError for any other kind.
    """
    if kind == "where":
        condition = load(traits, condition_dtype, a).differs(0)
        # Select bits, since LLVM may move a 16-bit float by converting it back and forth, with calls.
        form = form_of(dtype)
        first, second = (held(dtype, value).reinterpreted(form.integer) for value in (b, c))
        return choose(condition, first, second).reinterpreted(form).value
    if kind != "mulacc":
        raise UnsupportedGraphError(f"ternary {kind} is not known")
    if traits.fast_math and dtype.is_float:
        left, right, addend = (load(traits, dtype, value) for value in (a, b, c))
        return store(traits, dtype, multiply_add(traits, left, right, addend))
    product = binop("mul", dtype, a, b, traits=traits)
    return binop("add", dtype, product, c, traits=traits)
