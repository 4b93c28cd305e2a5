"""The element types that nodes accept."""

from __future__ import annotations

from typing import Final

from ..dtypes import DType

FLOATS: Final = frozenset(dtype for dtype in DType if dtype.is_float)
INTEGERS: Final = frozenset(dtype for dtype in DType if dtype.is_integer)
BOOLS: Final = frozenset({DType.BOOL})
NUMBERS: Final = FLOATS | INTEGERS
BITS: Final = INTEGERS | BOOLS
VALUES: Final = NUMBERS | BOOLS
"""Types with arithmetic: all data types except the narrow ones."""
NARROW: Final = frozenset(dtype for dtype in DType if dtype.is_narrow)
STORED: Final = VALUES | NARROW
"""All data types: all but unit."""

CONDITIONS: Final = frozenset({DType.BOOL, DType.UINT8})
"""Gates, conditions and the results of comparisons."""

MARKERS: Final = frozenset({DType.INT32, DType.UNIT})
"""The value of `device` and `unique`."""


def advice(dtype: DType) -> str:
    """Advice for a node that does not accept a narrow dtype; empty for another dtype."""
    return f" (cast it to {dtype.wide}, or wider, and the result back)" if dtype.is_narrow else ""
