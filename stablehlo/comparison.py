"""compare, numerically or by IEEE 754's total order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.frontends.composed.ranking import total_order

from .elementwise import spread_over
from .op import Op
from .symbols import Compared
from .table import Translator
from .value import Known, Value

_COMPARE: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "EQ": build.equal,
    "NE": build.not_equal,
    "LT": build.less,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}
_TYPES: Final = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


def _before(left: Tensor, right: Tensor) -> Tensor:
    """`left < right`, with NaN after all numbers."""
    return (left < right) | (build.equal(left, left) & build.is_nan(right))


_ORDERED: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "LT": _before,
    "GT": lambda a, b: _before(b, a),
    "LE": lambda a, b: ~_before(b, a),
    "GE": lambda a, b: ~_before(a, b),
}
"""Float comparisons in the comparator of a sort, which needs a place for NaN to be a total order."""


def _compare(op: Op) -> Value:
    direction = op.choice("comparison_direction", stablehlo.ComparisonDirectionAttr, _COMPARE)
    kind = op.choice("compare_type", stablehlo.ComparisonTypeAttr, _TYPES, "NOTYPE")
    left, right = op.elements()
    if not left.dtype.is_float:
        found = spread_over(op, _COMPARE[direction](left, right))
        dims = [value.array.item() for value in op.operands if isinstance(value, Known) and value.array.size == 1]
        if len(dims) == 2:
            op.undecided[found.var] = Compared(direction, *dims)
        return found
    if kind == "TOTALORDER":
        return spread_over(op, _COMPARE[direction](total_order(left), total_order(right)))
    table = {**_COMPARE, **_ORDERED} if op.mode.orders else _COMPARE
    return spread_over(op, table[direction](left, right))


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.compare": _compare}
