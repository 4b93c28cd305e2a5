"""Inverse trigonometric and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Callable

from ...build import Tensor
from ...dtypes import DType
from ..trigonometry import acos, acosh, asin, asinh, atan, atanh, cosh, sinh
from .node import Node
from .value import Value


def _operator(function: Callable[[Tensor], Tensor]) -> Callable[[Node], Value]:
    def apply(node: Node) -> Value:
        x = node.tensor(0)
        # 16 bits would lose in each step.
        wide = x if x.dtype in (DType.FLOAT32, DType.FLOAT64) else x.cast(DType.FLOAT32)
        return function(wide).cast(x.dtype)

    return apply


OPERATORS: dict[str, Callable[[Node], Value]] = {
    name: _operator(function)
    for name, function in {
        "Acos": acos,
        "Acosh": acosh,
        "Asin": asin,
        "Asinh": asinh,
        "Atan": atan,
        "Atanh": atanh,
        "Cosh": cosh,
        "Sinh": sinh,
    }.items()
}
