"""The types of a module's values as dtypes and shapes of a graph."""

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
"""The element types that are translated, by MLIR's name. Signless integers are signed."""

_COMPLEX: Final = {"complex<f32>": DType.FLOAT32, "complex<f64>": DType.FLOAT64}
"""Those whose values are pairs, and the type of each part."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A tensor type; a dimension that is not static is None. Of a complex one, `dtype` is that of each part."""

    dtype: DType
    shape: tuple[int | None, ...]
    is_complex: bool = False


def typed(kind: ir.Type) -> Typed | str:
    """The type of a value, or what is wrong with it."""
    if not isinstance(kind, ir.RankedTensorType):
        # Not the type itself: one of a few characters may spell another of any length.
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
