"""Choosing between values elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from .arithmetic import maximum, minimum
from .broadcast import broadcast, broadcast_shape
from .operands import Operand, alike, require_tensor

if TYPE_CHECKING:
    from .tensor import Tensor


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """`a` where the condition holds and `b` elsewhere; the condition is bool, or uint8 with anything but 0 for true."""
    require_tensor(condition, "where")
    if condition.dtype not in (DType.BOOL, DType.UINT8):
        raise condition.builder.error(f"a condition is bool or uint8, not {condition.dtype}; compare it with something")
    left, right = alike(a, b)
    condition.builder.own(left)
    shape = broadcast_shape(condition.builder, [condition.shape, left.shape, right.shape])
    condition, left, right = broadcast(condition, left, right)
    fields = {"op": "where", "a_var": condition.var, "b_var": left.var, "c_var": right.var}
    return condition.builder.append("ternary", left.dtype, shape, **fields)


def clip(x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Tensor:
    """`x` limited to [low, high]; a limit left out does not limit. NaN stays NaN."""
    require_tensor(x, "clip")
    raised = x if low is None else maximum(x, low)
    return raised if high is None else minimum(raised, high)
