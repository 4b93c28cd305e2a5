"""Inverse trigonometric and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Callable

from ...build import Tensor
from ..composed.trigonometry import acos, acosh, asin, asinh, atan, atanh, cosh, in_wide_float, sinh
from .node import Node
from .value import Value


def _operator(function: Callable[[Tensor], Tensor]) -> Callable[[Node], Value]:
    return lambda node: in_wide_float(function, node.tensor(0))


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
