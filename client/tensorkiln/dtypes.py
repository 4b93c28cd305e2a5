"""Element types: the five of the original format and the extensions of the wire format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np


class DType(StrEnum):
    """An element type; the value is its name on the wire."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    UNIT = "unit"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @property
    def bits(self) -> int:
        """Bits of the value: 1 for bool, 0 for unit."""
        return _TRAITS[self].bits

    @property
    def itemsize(self) -> int:
        """Bytes of one element in a buffer: bool and types below 8 bits take 1, unit takes 0."""
        return (_TRAITS[self].bits + 7) // 8

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bfloat16 and the narrow dtypes are those of ml_dtypes, unit is the empty void `V0`."""
        return _TRAITS[self].numpy

    @property
    def is_narrow(self) -> bool:
        """True for types without arithmetic, only stored, moved and cast: floats of 8 and 4 bits, integers of 4 and 2.

        For these, `is_float`, `is_integer`, `is_signed` and `is_unsigned` are false; use those of `wide`.
        """
        return self in _WIDE

    @property
    def wide(self) -> DType:
        """The dtype in which a narrow one is computed, exactly: float32, int8 or uint8; any other dtype itself."""
        return _WIDE.get(self, self)

    @property
    def is_float(self) -> bool:
        return _TRAITS[self].kind == "f"

    @property
    def is_half(self) -> bool:
        """True for the 16-bit floats: arithmetic on them is carried out in float32 and rounded once at the end."""
        return self.is_float and self.bits == 16

    @property
    def accumulator(self) -> DType:
        """The dtype in which values are computed before they are rounded once: float32 for halves; else itself."""
        return DType.FLOAT32 if self.is_half else self

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return _TRAITS[self].kind in "iu"

    @property
    def is_signed(self) -> bool:
        return _TRAITS[self].kind == "i"

    @property
    def is_unsigned(self) -> bool:
        return _TRAITS[self].kind == "u"

    @property
    def is_bool(self) -> bool:
        return self is DType.BOOL

    @property
    def min(self) -> int | float | bool:
        """The identity of max: -inf, the least integer, or False; of a narrow float, the least finite value."""
        return _TRAITS[self].min

    @property
    def max(self) -> int | float | bool:
        """The greatest value: inf, the greatest integer, or True; of a narrow float, the greatest finite value."""
        return _TRAITS[self].max

    @staticmethod
    def from_numpy(dtype: np.dtype[Any]) -> DType:
        """The element type of a NumPy dtype in native byte order; KeyError when there is none."""
        return _BY_NUMPY[dtype]


@dataclass(frozen=True, slots=True)
class _Traits:
    kind: str
    bits: int
    numpy: np.dtype[Any]
    min: int | float | bool
    max: int | float | bool


def _integer(kind: str, bits: int) -> _Traits:
    low = -(1 << (bits - 1)) if kind == "i" else 0
    return _Traits(kind, bits, np.dtype(f"{kind}{bits // 8}"), low, low + (1 << bits) - 1)


def _narrow_float(dtype: DType, bits: int) -> _Traits:
    numpy = np.dtype(getattr(ml_dtypes, dtype))
    known = ml_dtypes.finfo(numpy)
    return _Traits("n", bits, numpy, float(known.min), float(known.max))


def _narrow_integer(dtype: DType, bits: int) -> _Traits:
    low = -(1 << (bits - 1)) if dtype.startswith("int") else 0
    return _Traits("n", bits, np.dtype(getattr(ml_dtypes, dtype)), low, low + (1 << bits) - 1)


def _float(bits: int, numpy: np.dtype[Any]) -> _Traits:
    return _Traits("f", bits, numpy, float("-inf"), float("inf"))


_NARROW_FLOATS = {
    DType.FLOAT8_E4M3FN: 8,
    DType.FLOAT8_E4M3FNUZ: 8,
    DType.FLOAT8_E5M2: 8,
    DType.FLOAT8_E5M2FNUZ: 8,
    DType.FLOAT4_E2M1FN: 4,
}
_NARROW_INTEGERS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2, DType.UINT2: 2}
_WIDE = {
    **dict.fromkeys(_NARROW_FLOATS, DType.FLOAT32),
    **dict.fromkeys((DType.INT4, DType.INT2), DType.INT8),
    **dict.fromkeys((DType.UINT4, DType.UINT2), DType.UINT8),
}
_TRAITS = {
    DType.FLOAT16: _float(16, np.dtype(np.float16)),
    DType.BFLOAT16: _float(16, np.dtype(ml_dtypes.bfloat16)),
    DType.FLOAT32: _float(32, np.dtype(np.float32)),
    DType.FLOAT64: _float(64, np.dtype(np.float64)),
    **{DType(f"int{bits}"): _integer("i", bits) for bits in (8, 16, 32, 64)},
    **{DType(f"uint{bits}"): _integer("u", bits) for bits in (8, 16, 32, 64)},
    DType.BOOL: _Traits("b", 1, np.dtype(np.bool_), False, True),
    DType.UNIT: _Traits("V", 0, np.dtype("V0"), 0, 0),
    **{dtype: _narrow_float(dtype, bits) for dtype, bits in _NARROW_FLOATS.items()},
    **{dtype: _narrow_integer(dtype, bits) for dtype, bits in _NARROW_INTEGERS.items()},
}
_BY_NUMPY = {traits.numpy: dtype for dtype, traits in _TRAITS.items()}
