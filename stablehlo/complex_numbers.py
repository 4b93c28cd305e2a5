"""Complex numbers as pairs of real values; most operations apply to each part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Final

import numpy as np

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.build.constant import MAX_TABLE_ELEMENTS
from tensorkiln.dtypes import DType
from tensorkiln.frontends.composed import complex_functions as functions
from tensorkiln.frontends.composed import complex_numbers as arithmetic
from tensorkiln.frontends.composed.complex_numbers import Complex

from .constants import too_large
from .contraction import subscripts
from .conversion import convert
from .folding import folded
from .op import Op
from .regions import is_second_argument, single_operation
from .scattering import scatter
from .table import Translator
from .value import Host, Known, Pair, Real, Value
from .windows import reduce_window

_NUMBER: Final = re.compile(r"0x[0-9A-Fa-f]+|-?[0-9][0-9.eE+-]*")

BY_PARTS: Final = (
    *("stablehlo.add", "stablehlo.negate", "stablehlo.subtract", "stablehlo.select"),
    *("stablehlo.broadcast_in_dim", "stablehlo.concatenate", "stablehlo.pad", "stablehlo.reshape"),
    *("stablehlo.reverse", "stablehlo.slice", "stablehlo.transpose"),
    *("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice", "stablehlo.gather"),
    *("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_gather", "stablehlo.dynamic_pad"),
    *("stablehlo.dynamic_reshape", "stablehlo.real_dynamic_slice"),
)
"""Operations that treat real and imaginary parts alike."""


def by_parts(translator: Translator) -> Translator:
    """Apply a real operation to both parts; real operands are passed to both."""

    def apply(op: Op) -> Value:
        real, imag = (
            _part(translator, op.with_operands([parts(value)[at] for value in op.operands])) for at in range(2)
        )
        return Pair(real, imag)

    return apply


def parts(value: Value) -> tuple[Real, Real]:
    """The operand for the real parts and that for the imaginary parts; a real value is both."""
    return (value.real, value.imag) if isinstance(value, Pair) else (value, value)


def _part(translator: Translator, op: Op) -> Real:
    known = folded(op)
    found = translator(op) if known is None else known[0]
    if isinstance(found, Tensor | Known):
        return found
    op.fail("complex numbers are not supported by this operation")


def complex_operand(op: Op, position: int) -> Complex:
    """An operand as a pair of tensors; a real one gets an imaginary part of 0."""
    value = op.operands[position]
    if isinstance(value, Pair):
        return Complex(op.as_tensor(value.real), op.as_tensor(value.imag))
    real = op.as_tensor(value)
    return Complex(real, build.zeros(op.builder, real.shape, real.dtype))


def as_pair(x: Complex) -> Pair:
    """Convert a computed complex number to a value."""
    return Pair(x.real, x.imag)


def _unary(function: Callable[[Complex], Complex]) -> Translator:
    return lambda op: as_pair(function(complex_operand(op, 0)))


def _binary(function: Callable[[Complex, Complex], Complex]) -> Translator:
    return lambda op: as_pair(function(complex_operand(op, 0), complex_operand(op, 1)))


def _complex(op: Op) -> Value:
    real, imag = (value for value in op.operands if not isinstance(value, Pair))
    return Pair(real, imag)


def _real(op: Op) -> Value:
    return parts(op.operands[0])[0]


def _imag(op: Op) -> Value:
    value = op.operands[0]
    return value.imag if isinstance(value, Pair) else build.zeros(op.builder, value.shape, value.dtype)


def _absolute(op: Op) -> Value:
    return arithmetic.absolute(complex_operand(op, 0))


def _compare(op: Op) -> Value:
    direction = op.choice("comparison_direction", stablehlo.ComparisonDirectionAttr, ("EQ", "NE"))
    found = arithmetic.equal(complex_operand(op, 0), complex_operand(op, 1))
    return found if direction == "EQ" else ~found


def _convert(op: Op) -> Value:
    """Convert: to a real type, drop the imaginary part; from one, add an imaginary part of 0."""
    x, wanted = complex_operand(op, 0), op.result()
    real = convert(x.real, wanted.dtype)
    if not wanted.is_complex:
        return real
    return Pair(real, convert(x.imag, wanted.dtype))


def _constant(op: Op) -> Value:
    """A constant, parsed from its text, since the bindings cannot read complex elements."""
    wanted, shape = op.result(), op.static_shape()
    size = prod(shape)
    if size == 0:
        nothing = np.zeros(shape, wanted.dtype.numpy)
        return Pair(Known(nothing, wanted.dtype), Known(nothing, wanted.dtype))
    # The generic form prints the operation's own attributes first; other attributes, of any content, come after them.
    spelled = op.raw.get_asm(print_generic_op_form=True, enable_debug_info=False)
    text = spelled.partition("<{value = dense<")[2].partition(">")[0]
    if text.startswith('"'):
        found = np.frombuffer(bytes.fromhex(text.strip('"')[2:]), wanted.dtype.numpy)
    else:
        found = np.array([_number(each, wanted.dtype) for each in _NUMBER.findall(text)], wanted.dtype.numpy)
    if len(found) == 2:
        # Not expanded: a short text may denote any number of elements.
        return Pair(*(Known(np.broadcast_to(part, shape), wanted.dtype) for part in found))
    if size > MAX_TABLE_ELEMENTS:
        op.over(too_large(size), "constant_elements", MAX_TABLE_ELEMENTS, size)
    if len(found) != 2 * size:
        op.fail("its value is not dense elements")
    both = found.reshape([*shape, 2])
    return Pair(*(Known(np.ascontiguousarray(both[..., at]), wanted.dtype) for at in range(2)))


def _number(text: str, dtype: DType) -> Host:
    """Parse a number; infinities and NaN are written as hexadecimal bits."""
    if text.startswith("0x"):
        return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype.numpy)
    return np.array(float(text), dtype.numpy)


def _dot_general(op: Op) -> Value:
    left, right = complex_operand(op, 0), complex_operand(op, 1)
    if op.has("algorithm"):
        op.fail("an algorithm for complex numbers is not supported")
    return as_pair(arithmetic.einsum(subscripts(op, left.real.rank, right.real.rank), left, right))


def _reduce(op: Op) -> Sequence[Value]:
    if op.result_count != 1 or single_operation(op.region(0)) != "stablehlo.add":
        op.fail("complex numbers can only be reduced by a sum")
    x, initial = complex_operand(op, 0), complex_operand(op, 1)
    axes = op.integers("dimensions")
    return [Pair(x.real.sum(axes) + initial.real, x.imag.sum(axes) + initial.imag)]


def _reduce_window(op: Op) -> Value | Sequence[Value]:
    zero = parts(op.operands[-1])
    is_from_zero = all(isinstance(each, Known) and each.splat == 0 for each in zero)
    if op.result_count != 1 or single_operation(op.region(0)) != "stablehlo.add" or not is_from_zero:
        op.fail("complex numbers in windows can only be summed up, from 0")
    return by_parts(lambda part: reduce_window(part)[0])(op)


def _scatter(op: Op) -> Value | Sequence[Value]:
    region = op.region(0)
    if not is_second_argument(region) and single_operation(region) != "stablehlo.add":
        op.fail("complex numbers can only be scattered as they are, or added")
    return by_parts(scatter)(op)


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.abs": _absolute,
    "stablehlo.cbrt": _unary(functions.cbrt),
    "stablehlo.compare": _compare,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.cosine": _unary(functions.cos),
    "stablehlo.divide": _binary(arithmetic.divide),
    "stablehlo.dot_general": _dot_general,
    "stablehlo.exponential": _unary(functions.exp),
    "stablehlo.exponential_minus_one": _unary(functions.expm1),
    "stablehlo.log": _unary(functions.log),
    "stablehlo.log_plus_one": _unary(functions.log1p),
    "stablehlo.logistic": _unary(functions.logistic),
    "stablehlo.multiply": _binary(lambda a, b: a * b),
    "stablehlo.power": _binary(functions.power),
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rsqrt": _unary(functions.rsqrt),
    "stablehlo.scatter": _scatter,
    "stablehlo.sign": _unary(arithmetic.sign),
    "stablehlo.sine": _unary(functions.sin),
    "stablehlo.sqrt": _unary(functions.sqrt),
    "stablehlo.tan": _unary(functions.tan),
    "stablehlo.tanh": _unary(functions.tanh),
}
"""Translators for complex operands or results."""

ANYWHERE: Final[dict[str, Translator]] = {
    "stablehlo.complex": _complex,
    "stablehlo.imag": _imag,
    "stablehlo.real": _real,
}
"""Conversions between real and complex numbers."""
