"""Complex operators. In a graph, complex numbers are pairs of real tensors, never inputs or outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ..composed import complex_functions, complex_numbers
from ..composed.complex_numbers import Complex
from ..composed.trigonometry import atan2
from . import casting, creation, indexing, joining, movement, reduction, slicing, spectra
from .call import Call, Operator, Value

Found: TypeAlias = "Tensor | Complex | list[Complex]"
ComplexOperator: TypeAlias = "Callable[[Call], Found]"


_PLACES: Final = frozenset({"condition", "index", "indices", "mask"})
"""Arguments that are not elements, and so are the same for both parts."""


def _by_parts(operator: Operator) -> ComplexOperator:
    """Apply an operator that moves elements or is linear to both parts; for a real result, to the real part."""

    def apply(call: Call) -> Found:
        if not call.is_complex():
            return operator(_of_part(call, is_real=True))  # pyright: ignore[reportReturnType]
        parts = [_listed(operator(_of_part(call, is_real))) for is_real in (True, False)]
        pairs = [Complex(real, imag) for real, imag in zip(*parts, strict=True)]
        return pairs[0] if len(pairs) == 1 else pairs

    return apply


def _listed(found: object) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else list(found)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


def _of_part(call: Call, is_real: bool) -> Call:
    def part(value: Value) -> Value:
        if isinstance(value, Complex | complex):
            return value.real if is_real else value.imag
        if isinstance(value, Tensor) and not is_real:
            return build.zeros(call.builder, value.shape, value.dtype)
        if isinstance(value, tuple):
            return tuple(map(part, value))  # pyright: ignore[reportReturnType]
        return value

    arguments = {name: value if name in _PLACES else part(value) for name, value in call.arguments.items()}
    return replace(call, arguments=arguments)


def _pad(call: Call) -> Found:
    if call.number("value", 0.0) != 0:
        call.fail("complex numbers can only be padded with 0")
    return _by_parts(movement.OPERATORS["aten.constant_pad_nd.default"])(call)


def _joined(operator: Operator) -> ComplexOperator:
    """Join tensors; real ones get an imaginary part of 0."""

    def apply(call: Call) -> Found:
        given = call.value("tensors")
        listed = given if isinstance(given, tuple) else call.fail("the argument tensors is not a list")
        pairs = tuple(call.as_pair(each, "tensors") for each in listed)
        return _by_parts(operator)(replace(call, arguments={**call.arguments, "tensors": pairs}))

    return apply


def _line(call: Call) -> Found:
    ends = {name: call.pair(name) for name in ("start", "end")}
    return _by_parts(creation.LINES["aten.linspace.default"])(replace(call, arguments={**call.arguments, **ends}))


def _made(operator: Operator) -> ComplexOperator:
    """A tensor made of a number, complex or real."""

    def apply(call: Call) -> Found:
        if any(isinstance(value, complex) for value in call.arguments.values()):
            return _by_parts(operator)(call)
        (real,) = _listed(operator(call))
        if not call.is_complex():
            return real
        return Complex(real, build.zeros(call.builder, real.shape, real.dtype))

    return apply


def _unary(function: Callable[[Complex], Complex]) -> ComplexOperator:
    return lambda call: function(call.pair())


def _binary(function: Callable[[Complex, Complex], Complex]) -> ComplexOperator:
    return lambda call: function(call.pair().cast(call.dtype), call.pair("other").cast(call.dtype))


def _power(call: Call) -> Complex:
    return complex_functions.power(call.pair().cast(call.dtype), call.pair("exponent").cast(call.dtype))


def _sum(sign: int) -> ComplexOperator:
    """`self + alpha * other`, or less that."""

    def apply(call: Call) -> Complex:
        left, right, alpha = call.pair().cast(call.dtype), call.pair("other").cast(call.dtype), call.number("alpha", 1)
        if alpha != 1:
            right = Complex(right.real * float(alpha), right.imag * float(alpha))
        return left + right if sign > 0 else left - right

    return apply


def _product(first: str, second: str) -> ComplexOperator:
    return lambda call: call.pair(first) @ call.pair(second)


def _conjugate(x: Complex) -> Complex:
    return Complex(x.real, -x.imag)


def _negative(x: Complex) -> Complex:
    return Complex(-x.real, -x.imag)


def _reciprocal(x: Complex) -> Complex:
    ones, zeros = (make(x.real.builder, x.real.shape, x.dtype) for make in (build.ones, build.zeros))
    return complex_numbers.divide(Complex(ones, zeros), x)


def _same(x: Complex) -> Complex:
    return x


def _angle(call: Call) -> Tensor:
    x = call.pair().cast(DType.FLOAT64)
    return atan2(x.imag, x.real).cast(call.dtype)


def _compared(is_equal: bool) -> ComplexOperator:
    def apply(call: Call) -> Tensor:
        dtype = _wider(call, "self", "other")
        found = complex_numbers.equal(call.pair().cast(dtype), call.pair("other").cast(dtype))
        return found if is_equal else ~found

    return apply


def _wider(call: Call, *names: str) -> DType:
    """The common type of the parts for a comparison; numbers and integers adopt the other operand's."""
    values = [call.value(name) for name in names]
    floats = [
        each.dtype for each in values if isinstance(each, Complex) or (isinstance(each, Tensor) and each.dtype.is_float)
    ]
    return DType.FLOAT64 if DType.FLOAT64 in floats else DType.FLOAT32


def _masked_fill(call: Call) -> Complex:
    x, mask, value = call.pair().cast(call.dtype), call.tensor("mask"), call.pair("value").cast(call.dtype)
    return Complex(build.where(mask, value.real, x.real), build.where(mask, value.imag, x.imag))


def _where(call: Call) -> Complex:
    condition, a, b = call.tensor("condition"), call.pair().cast(call.dtype), call.pair("other").cast(call.dtype)
    return Complex(build.where(condition, a.real, b.real), build.where(condition, a.imag, b.imag))


def _converted(call: Call) -> Found:
    """Convert between complex types and from real ones; to a real type, drop the imaginary part, as torch does.

    As bool, a number is true if a part is not 0.
    """
    x = call.pair()
    if call.is_complex():
        return x.cast(call.dtype)
    if call.dtype is DType.BOOL:
        return ~(build.equal(x.real, 0.0) & build.equal(x.imag, 0.0))
    return x.real.cast(call.dtype)


def _of_parts(call: Call) -> Complex:
    return Complex(*(call.tensor(name).cast(call.dtype) for name in ("real", "imag")))


def _of_size_and_angle(call: Call) -> Complex:
    size, angle = (call.tensor(name).cast(call.dtype) for name in ("abs", "angle"))
    return Complex(size * angle.cos(), size * angle.sin())


_MOVED = {
    **{name: operator for name, operator in movement.OPERATORS.items() if name != "aten.view.dtype"},
    **slicing.OPERATORS,
    **indexing.MOVING,
    **{
        name: operator for name, operator in reduction.OPERATORS.items() if name.startswith(("aten.sum.", "aten.mean."))
    },
}
_FILLED = ("aten.zeros", "aten.ones", "aten.full", "aten.new_zeros", "aten.empty", "aten.scalar_tensor")

COMPLEX: Final[Mapping[str, ComplexOperator]] = MappingProxyType(
    {
        **{name: _by_parts(operator) for name, operator in _MOVED.items()},
        **{name: _joined(operator) for name, operator in joining.OPERATORS.items()},
        **{name: _made(operator) for name, operator in creation.OPERATORS.items() if name.startswith(_FILLED)},
        **dict.fromkeys(casting.OPERATORS, _converted),
        **dict.fromkeys(creation.LINES, _line),
        "aten._assert_tensor_metadata.default": lambda call: [],
        "aten._conj.default": _unary(_conjugate),
        "aten._conj_physical.default": _unary(_conjugate),
        "aten._fft_c2c.default": spectra.of_complex,
        "aten._fft_c2r.default": spectra.to_real,
        "aten._fft_r2c.default": spectra.of_real,
        "aten.abs.default": lambda call: complex_numbers.absolute(call.pair()),
        "aten.add.Scalar": _sum(1),
        "aten.add.Tensor": _sum(1),
        "aten.angle.default": _angle,
        "aten.bmm.default": _product("self", "mat2"),
        "aten.complex.default": _of_parts,
        "aten.conj_physical.default": _unary(_conjugate),
        "aten.constant_pad_nd.default": _pad,
        "aten.cos.default": _unary(complex_functions.cos),
        "aten.div.Scalar": _binary(complex_numbers.divide),
        "aten.div.Tensor": _binary(complex_numbers.divide),
        "aten.eq.Scalar": _compared(True),
        "aten.eq.Tensor": _compared(True),
        "aten.exp.default": _unary(complex_functions.exp),
        "aten.imag.default": lambda call: call.pair().imag,
        "aten.log.default": _unary(complex_functions.log),
        "aten.masked_fill.Scalar": _masked_fill,
        "aten.masked_fill.Tensor": _masked_fill,
        "aten.mm.default": _product("self", "mat2"),
        "aten.mul.Scalar": _binary(lambda a, b: a * b),
        "aten.mul.Tensor": _binary(lambda a, b: a * b),
        "aten.ne.Scalar": _compared(False),
        "aten.ne.Tensor": _compared(False),
        "aten.neg.default": _unary(_negative),
        "aten.polar.default": _of_size_and_angle,
        "aten.pow.Scalar": _power,
        "aten.pow.Tensor_Scalar": _power,
        "aten.pow.Tensor_Tensor": _power,
        "aten.real.default": lambda call: call.pair().real,
        "aten.reciprocal.default": _unary(_reciprocal),
        "aten.resolve_conj.default": _unary(_same),
        "aten.rsqrt.default": _unary(complex_functions.rsqrt),
        "aten.sgn.default": _unary(complex_numbers.sign),
        "aten.sin.default": _unary(complex_functions.sin),
        "aten.sqrt.default": _unary(complex_functions.sqrt),
        "aten.sub.Scalar": _sum(-1),
        "aten.sub.Tensor": _sum(-1),
        "aten.view_as_complex.default": lambda call: complex_numbers.from_pairs(call.tensor()),
        "aten.view_as_real.default": lambda call: complex_numbers.pairs(call.pair()),
        "aten.where.self": _where,
    }
)
"""By the operator's name. Operators that move elements or are linear apply the real operator to both parts."""
