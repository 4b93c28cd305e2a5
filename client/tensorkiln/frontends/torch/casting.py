"""Conversions: floats are truncated towards zero, NaN becomes 0, and any nonzero value is true."""

from __future__ import annotations

from ...build import Tensor
from .call import Call, Operator


def _converted(call: Call) -> Tensor:
    return call.tensor().cast(call.dtype)


def _converted_prim(call: Call) -> Tensor:
    return call.tensor("a").cast(call.dtype)


OPERATORS: dict[str, Operator] = {
    "aten._to_copy.default": _converted,
    "aten.to.device": _converted,
    "aten.to.dtype": _converted,
    "aten.to.dtype_layout": _converted,
    "aten.type_as.default": _converted,
    "prims.convert_element_type.default": _converted_prim,
}
