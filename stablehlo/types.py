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


@dataclass(frozen=True, slots=True)
class Typed:
    """A tensor type; a dimension that is not static is None."""

    dtype: DType
    shape: tuple[int | None, ...]


def typed(kind: ir.Type) -> Typed | str:
    """The type of a value, or what is wrong with it."""
    if not isinstance(kind, ir.RankedTensorType):
        # Not the type itself: one of a few characters may spell another of any length.
        return f"a value of {type(kind).__name__} is not a ranked tensor"
    tensor = ir.RankedTensorType(kind)
    element = str(tensor.element_type)
    if element not in DTYPES:
        return f"the element type {_shown(tensor.element_type)} is not supported"
    shape = tuple(None if tensor.is_dynamic_dim(axis) else tensor.get_dim_size(axis) for axis in range(tensor.rank))
    return Typed(DTYPES[element], shape)


def _shown(kind: ir.Type) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(kind))[:100]
