"""Dimensions as values: an expression over symbols computed in the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..expr import Dim, to_wire
from .arithmetic import add, maximum, minimum, mul, negate, sub
from .builder_argument import require_builder
from .conversion import cast
from .division import floor_divide, floor_remainder, truncating_divide, truncating_remainder
from .element_type import DTypeLike, element_type

if TYPE_CHECKING:
    from .builder import Builder
    from .tensor import Tensor

_CALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": add,
    "mul": mul,
    "sub": sub,
    "max": maximum,
    "min": minimum,
    "idiv": truncating_divide,
    "mod": truncating_remainder,
    "floordiv": floor_divide,
    "floormod": floor_remainder,
}


def dim_value(builder: Builder, dim: Dim, dtype: DTypeLike = DType.INT64) -> Tensor:
    """The value of `dim` at the call as a rank-0 tensor, computed in int64 and cast to `dtype`."""
    require_builder(builder, "dim_value")
    kind = element_type(dtype, builder.error)
    return builder.scalar(dim, kind) if isinstance(dim, int) else cast(_value(builder, to_wire(dim)), kind)


def _value(builder: Builder, spelled: Any) -> Tensor:
    if isinstance(spelled, int):
        return builder.scalar(spelled, DType.INT64)
    if isinstance(spelled, str):
        return builder.symbol_value(spelled)
    args = [_value(builder, arg) for arg in spelled["args"]]
    if spelled["op"] == "neg":
        return negate(*args)
    return reduce(_CALLS[spelled["op"]], args)
