"""Literal values: the JSON forms of an element of each dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..dtypes import DType
from .fields import Scalar

NON_FINITE: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

ROUNDS_TO_INFINITY: Final = {
    DType.FLOAT16: 65520.0,
    DType.BFLOAT16: (2.0 - 2.0**-8) * 2.0**127,
    DType.FLOAT32: (2.0 - 2.0**-24) * 2.0**127,
    DType.FLOAT64: math.inf,
}
"""The least magnitude that rounds (to nearest, ties to even) to infinity: halfway from the greatest to the next."""

_NON_FINITE_OF: Final = {
    DType.FLOAT8_E4M3FN: ("nan",),
    DType.FLOAT8_E4M3FNUZ: ("nan",),
    DType.FLOAT8_E5M2FNUZ: ("nan",),
    DType.FLOAT4_E2M1FN: (),
}
"""The non-finite values of narrow floats that lack some of them."""


class LiteralError(ValueError):
    """A literal that is not an element of its dtype."""


def parse_literal(value: Scalar, dtype: DType) -> bool | int | float | None:
    """Parse a literal to a bool for bool, an int for integers, a float for floats, None for unit.

    LiteralError for another JSON type, or a number that does not fit.
    """
    if dtype.wide.is_float:
        return _float(value, dtype)
    if dtype.wide.is_integer:
        if type(value) is not int:
            raise LiteralError(f"a value of {dtype} is an integer, not {_shown(value)}")
        if not dtype.min <= value <= dtype.max:
            raise LiteralError(f"{_shown(value)} is outside the range [{dtype.min}, {dtype.max}] of {dtype}")
        return value
    if dtype.is_bool:
        if type(value) is not bool:
            raise LiteralError(f"a value of bool is true or false, not {_shown(value)}")
        return value
    if value is not None:
        raise LiteralError(f"the value of unit is null, not {_shown(value)}")
    return None


def _float(value: Scalar, dtype: DType) -> float:
    if isinstance(value, str) and value in NON_FINITE:
        if value not in _NON_FINITE_OF.get(dtype, NON_FINITE):
            raise LiteralError(f"{dtype} has no {value}")
        return NON_FINITE[value]
    if type(value) is not float and type(value) is not int:
        raise LiteralError(f'a value of {dtype} is a number, "inf", "-inf" or "nan", not {_shown(value)}')
    try:
        number = float(value)
    except OverflowError:
        raise LiteralError(f"the integer is outside of {dtype}") from None
    if not math.isfinite(number):
        raise LiteralError(f'a non-finite {dtype} is spelled "inf", "-inf" or "nan"')
    if abs(number) > dtype.max if dtype.is_narrow else abs(number) >= ROUNDS_TO_INFINITY[dtype]:
        raise LiteralError(f"{number!r} is outside of {dtype}")
    return number


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 128 else "an integer of more than 128 bits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def parse_literals(values: Sequence[Scalar], dtype: DType) -> list[bool | int | float | None]:
    """`parse_literal` of each value. LiteralError as there, naming the position."""
    parsed: list[bool | int | float | None] = []
    for position, value in enumerate(values):
        try:
            parsed.append(parse_literal(value, dtype))
        except LiteralError as error:
            raise LiteralError(f"value {position}: {error}") from None
    return parsed


def canonical_literal(value: Scalar, dtype: DType) -> Scalar:
    """The canonical spelling of a legal literal: `1` and `1.0` are the same float."""
    if not dtype.wide.is_float or isinstance(value, str) or value is None:
        return value
    return float(value)
