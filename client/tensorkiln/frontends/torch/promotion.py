"""torch's type promotion, for operators whose result does not show the dtype that they compute in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...build import Tensor
from ...dtypes import DType
from .call import Call, Operand


def promoted(call: Call, first: DType, second: DType) -> DType:
    """`torch.promote_types`. UnsupportedGraphError for uint16, uint32 or uint64 with a signed type, as in torch."""
    if first is second:
        return first
    low, high = sorted((first, second), key=_category)
    if _category(low) != _category(high) or low.is_bool:
        return high
    if low.is_float:
        if low.bits == high.bits:
            return DType.FLOAT32
        return max(low, high, key=lambda dtype: dtype.bits)
    if low.is_signed == high.is_signed:
        return max(low, high, key=lambda dtype: dtype.bits)
    signed, unsigned = (low, high) if low.is_signed else (high, low)
    if unsigned.bits > 8:
        call.fail(f"torch has no common type of {signed} and {unsigned}; cast one of them")
    return signed if signed.bits > 8 else DType.INT16


def common_dtype(call: Call, operands: Sequence[Operand]) -> DType:
    """`torch.result_type` of all operands: rank-0 tensors, then numbers, count only if their category is higher."""
    groups: list[list[DType]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, Tensor):
            groups[0 if operand.shape else 1].append(operand.dtype)
        else:
            groups[2].append(_natural(operand))
    found: DType | None = None
    for group in groups:
        if group:
            own = reduce(lambda a, b: promoted(call, a, b), group)
            found = own if found is None or _category(own) > _category(found) else found
    return found if found is not None else call.fail("there is no operand")


def _natural(number: object) -> DType:
    if isinstance(number, bool):
        return DType.BOOL
    return DType.FLOAT32 if isinstance(number, float) else DType.INT64


def _category(dtype: DType) -> int:
    return 2 if dtype.is_float else 0 if dtype.is_bool else 1


def alike(call: Call, *operands: Operand) -> list[Tensor]:
    """The operands converted to the element type that torch computes in."""
    dtype = common_dtype(call, operands)
    return [call.as_tensor(operand, dtype) for operand in operands]
