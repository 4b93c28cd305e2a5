"""Conversion of values from one dtype to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dtypes import DType
from .operands import need

if TYPE_CHECKING:
    from .tensor import Tensor


def cast(x: Tensor, dtype: DType | str) -> Tensor:
    """`x.astype(dtype)`: floats truncate to integers and NaN becomes 0; anything but zero is true."""
    target = DType(dtype)
    if target is x.dtype:
        return x
    if DType.UNIT in (target, x.dtype):
        raise x.builder.error(f"there is no cast from {x.dtype} to {target}")
    return x.builder.append("cast", target, x.shape, in_var=x.var, target_dtype=target.value)


def in_float32(operation: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
    """A float operation of one operand; float16 and bfloat16 go through float32 and are rounded once."""
    need(x, name, floats=True)
    return cast(operation(cast(x, DType.FLOAT32)), x.dtype) if x.dtype.is_half else operation(x)
