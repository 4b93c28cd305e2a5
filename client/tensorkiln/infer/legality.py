"""Which element types a node takes."""

from __future__ import annotations

from typing import Final

from ..dtypes import DType

FLOATS: Final = frozenset(dtype for dtype in DType if dtype.is_float)
INTEGERS: Final = frozenset(dtype for dtype in DType if dtype.is_integer)
BOOLS: Final = frozenset({DType.BOOL})
NUMBERS: Final = FLOATS | INTEGERS
BITS: Final = INTEGERS | BOOLS
VALUES: Final = NUMBERS | BOOLS
"""What is computed with: all that carries data but the narrow dtypes."""
NARROW: Final = frozenset(dtype for dtype in DType if dtype.is_narrow)
STORED: Final = VALUES | NARROW
"""Everything that carries data: all but unit."""

CONDITIONS: Final = frozenset({DType.BOOL, DType.UINT8})
"""Gates, conditions and the results of comparisons."""

MARKERS: Final = frozenset({DType.INT32, DType.UNIT})
"""The value of `device` and `unique`."""


def advice(dtype: DType) -> str:
    """What to do where a narrow dtype is not taken; nothing for another."""
    return f" (cast it to {dtype.wide}, or wider, and the result back)" if dtype.is_narrow else ""
