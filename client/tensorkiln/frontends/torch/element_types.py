"""Element types by their number in the archive and by torch's name."""

from __future__ import annotations

from typing import Final

from ...dtypes import DType

BY_NUMBER: Final = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
"""torch's names by the numbers of `ScalarType` in the schema of `torch.export`."""

_BY_NAME: Final = {dtype.value: dtype for dtype in DType if dtype is not DType.UNIT and not dtype.is_narrow}


def dtype_named(name: str) -> DType | None:
    """The DType of torch's name, with or without the prefix `torch.`; None when it is not supported.

    Narrow types, such as float8, are not supported: no operator of this importer computes with them.
    """
    return _BY_NAME.get(name.removeprefix("torch."))
