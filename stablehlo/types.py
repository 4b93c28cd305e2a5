"""Conversion of MLIR tensor types to dtypes and shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dialect.mlir import ir
from tensorkiln.dtypes import DType

DTYPES: Final = {
    "f16": DType.FLOAT16,
    "bf16": DType.BFLOAT16,
    "f32": DType.FLOAT32,
    "f64": DType.FLOAT64,
    "i1": DType.BOOL,
    **{f"i{bits}": DType(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": DType(f"uint{bits}") for bits in (8, 16, 32, 64)},
}
"""The supported element types, by MLIR name. Signless integers are signed."""

_COMPLEX: Final = {"complex<f32>": DType.FLOAT32, "complex<f64>": DType.FLOAT64}
"""The type of each part, by the MLIR name of a complex type."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A tensor type. A dynamic dimension is None; the `dtype` of a complex type is that of each part."""

    dtype: DType
    shape: tuple[int | None, ...]
    is_complex: bool = False


def typed(kind: ir.Type) -> Typed | str:
    """Convert a type; returns an error message for an unsupported one."""
    if not isinstance(kind, ir.RankedTensorType):
        # Do not print the type: an alias of a few characters may denote a type of any length.
        return f"a value of {type(kind).__name__} is not a ranked tensor"
    tensor = ir.RankedTensorType(kind)
    element = str(tensor.element_type)
    is_complex = element in _COMPLEX
    if element not in DTYPES and not is_complex:
        return f"the element type {_shown(tensor.element_type)} is not supported"
    shape = tuple(None if tensor.is_dynamic_dim(axis) else tensor.get_dim_size(axis) for axis in range(tensor.rank))
    return Typed(_COMPLEX[element] if is_complex else DTYPES[element], shape, is_complex)


def _shown(kind: ir.Type) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(kind))[:100]
