"""What a family of node kinds provides: which dtypes and operations are legal, and how to sketch one case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkiln.dtypes import DType

from .sketch import Sketch

NARROW = tuple(dtype for dtype in DType if dtype.is_narrow)
VALUES = tuple(dtype for dtype in DType if dtype is not DType.UNIT and not dtype.is_narrow)
STORED = (*VALUES, DType.FLOAT8_E5M2, DType.FLOAT4_E2M1FN, DType.INT4)
"""What is moved, whatever it means: of the narrow dtypes, a few."""
FLOATS = tuple(dtype for dtype in DType if dtype.is_float)
INTEGERS = tuple(dtype for dtype in DType if dtype.is_integer)
NUMBERS = FLOATS + INTEGERS
CONDITIONS = (DType.BOOL, DType.UINT8)


@dataclass(frozen=True, slots=True)
class Family:
    """`draw(sketch, dtype, op)` writes the nodes of one case. `ops(dtype)` names the variants of a kind that is many in
    one (the `op` of a binop, the target of a cast); a kind without variants has the one op \"\"."""

    dtypes: Sequence[DType]
    draw: Callable[[Sketch, DType, str], None]
    ops: Callable[[DType], Sequence[str]] = lambda _: ("",)
