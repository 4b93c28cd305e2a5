"""Parser for torch's sizes, SymPy expressions written by `srepr`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Final

from ...errors import UnsupportedGraphError
from ...expr import Dim, ExprError, ceildiv, floordiv, floormod, maximum, minimum, mul, symbol
from ...expr import add as add_dims

MAX_TEXT: Final = 1 << 16
"""The most characters of one expression."""
_MAX_FACTOR: Final = 1 << 10
"""The limit of numerators and denominators of factors: a double holds their products with all sizes exactly."""


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or not 0 <= exponent <= 16:
        raise UnsupportedGraphError(
            f"the size ({base}) ** ({exponent}) is not supported; the exponent must be an integer from 0 to 16"
        )
    return reduce(mul, [base] * exponent, 1)


_CALLS: Final[Mapping[str, Callable[..., Dim]]] = {
    "Add": lambda *terms: add_dims(*terms),
    "Mul": lambda *factors: reduce(mul, factors, 1),
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": floordiv,
    "CleanDiv": floordiv,
    "CeilDiv": ceildiv,
    "Mod": floormod,
    "PythonMod": floormod,
    "Max": lambda *args: reduce(maximum, args),
    "Min": lambda *args: reduce(minimum, args),
}
_ROUNDED: Final = {"CeilToInt": ceildiv, "FloorToInt": floordiv, "TruncToInt": floordiv}


@lru_cache(maxsize=4096)
def size(text: str) -> Dim:
    """Parse an expression of `srepr`. UnsupportedGraphError for a fraction, an unknown function and the like."""
    if len(text) > MAX_TEXT:
        raise UnsupportedGraphError(f"a size of {len(text)} characters is longer than the {MAX_TEXT} that are read")
    try:
        parsed = ast.parse(text, mode="eval").body
        return _size(parsed)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError, ExprError) as error:
        raise UnsupportedGraphError(f"{text[:80]!r} is not a size that can be read: {error}") from error


def _size(node: ast.expr) -> Dim:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"there is no size in {ast.unparse(node)[:80]!r}")
    name = node.func.id
    if name in ("Integer", "Symbol"):
        return _leaf(name, node.args)
    if name in _ROUNDED and len(node.args) == 1 and (quotient := _quotient(node.args[0])):
        return _ROUNDED[name](*quotient)
    # A quotient alone is not an integer; it is valid only inside a rounding function.
    if name not in _CALLS:
        raise UnsupportedGraphError(f"a size that {name} computes is not supported")
    try:
        return _CALLS[name](*map(_size, node.args))
    except TypeError as error:
        raise ValueError(str(error)) from error


def _quotient(node: ast.expr) -> tuple[Dim, Dim] | None:
    """The dividend and divisor of a quotient of integers, or of an integer times a float that has few binary digits."""
    match node:
        case ast.Call(ast.Name("IntTrueDiv"), [dividend, divisor]):
            return _size(dividend), _size(divisor)
        case ast.Call(
            ast.Name("Mul"),
            [ast.Call(ast.Name("Float"), [ast.Constant(str(text)), *_]), ast.Call(ast.Name("ToFloat"), [integer])],
        ) if math.isfinite(factor := float(text)):
            ratio = Fraction(factor)
            # A double would round the product of a factor with more digits.
            is_short = 0 < ratio.numerator < _MAX_FACTOR and ratio.denominator < _MAX_FACTOR
            return (mul(ratio.numerator, _size(integer)), ratio.denominator) if is_short else None
        case _:
            return None


def _leaf(name: str, args: Sequence[ast.expr]) -> Dim:
    value = ast.literal_eval(args[0]) if args else None
    if name == "Integer" and isinstance(value, int):
        return value
    if name == "Symbol" and isinstance(value, str):
        return symbol(value)
    raise ValueError(f"{name} holds {value!r}")


def is_symbol(text: str) -> bool:
    """Whether a name is valid for a symbol."""
    return text.isidentifier() and text.isascii() and len(text) <= 64


def is_dense(sizes: Sequence[Dim], strides: Sequence[Dim], offset: Dim = 0) -> bool:
    """Whether the strides are provably row-major and contiguous, from the start of the memory."""
    step: Dim = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step = mul(step, size)
    return offset == 0
