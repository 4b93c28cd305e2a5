"""Conversion of values from one dtype to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dtypes import DType
from .element_type import DTypeLike, element_type
from .operands import need, require_tensor
from .selection import clip

if TYPE_CHECKING:
    from .tensor import Tensor


def cast(x: Tensor, dtype: DTypeLike, *, saturate: bool = False) -> Tensor:
    """`x.astype(dtype)`: floats truncate to integers and NaN becomes 0; anything but zero is true.

    Overflow of a narrow float gives an infinity, or NaN if it has none. With `saturate`, overflow and infinities give
    the nearest finite number; NaN stays. `saturate` has no effect for other dtypes.
    """
    require_tensor(x, "cast")
    target = element_type(dtype, x.builder.error)
    if target is x.dtype:
        return x
    if saturate and target.is_narrow and target.wide.is_float and DType.UNIT is not x.dtype:
        number = x if x.dtype.is_float else cast(x, DType.FLOAT32)
        return cast(clip(number, float(target.min), float(target.max)), target)
    if DType.UNIT in (target, x.dtype):
        raise x.builder.error(f"there is no cast from {x.dtype} to {target}")
    return x.builder.append("cast", target, x.shape, in_var=x.var, target_dtype=target.value)


def widened(x: Tensor) -> Tensor:
    """The operand in the dtype in which it is computed: float32 for float16 and bfloat16, otherwise its own."""
    return cast(x, x.dtype.accumulator)


def in_float32(operation: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
    """A float operation of one operand; float16 and bfloat16 go through float32 and are rounded once."""
    need(x, name, floats=True)
    return cast(operation(widened(x)), x.dtype)
