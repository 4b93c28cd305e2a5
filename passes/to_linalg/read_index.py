"""Index values read back as dims: the inverse of `write_index`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from dialect.mlir import ir
from tensorkiln import expr
from tensorkiln.expr import Dim


class IndexReader:
    """Reads values of type index as dims; `names` maps values to names, and may grow."""

    def __init__(self, names: Mapping[ir.Value, Dim]) -> None:
        self.names: dict[ir.Value, Dim] = dict(names)

    def __call__(self, value: ir.Value) -> Dim:
        """The dim of `value`. Raises KeyError for an operation that kernels do not use."""
        known = self.names.get(value)
        if known is None:
            known = self.names[value] = self._read(value.owner)
        return known

    def _read(self, operation: ir.Operation) -> Dim:
        if operation.name == "arith.constant":
            return ir.IntegerAttr(operation.attributes["value"]).value
        operands = [self(operand) for operand in operation.operands]
        if operation.name == "affine.apply":
            return apply(ir.AffineMapAttr(operation.attributes["map"]).value, operands)[0]
        return _ARITH[operation.name](*operands)


_ARITH = {
    "arith.muli": expr.mul,
    "arith.subi": expr.sub,
    "arith.maxsi": expr.maximum,
    "arith.minsi": expr.minimum,
    "arith.divsi": expr.idiv,
    "arith.remsi": expr.mod,
    "arith.floordivsi": expr.floordiv,
}


def apply(map_: ir.AffineMap, operands: list[Dim]) -> list[Dim]:
    """The results of an affine map for the values of its dims and symbols."""
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    return [_evaluate(result, dims, symbols) for result in map_.results]


def _evaluate(expression: Any, dims: list[Dim], symbols: list[Dim]) -> Dim:
    match expression:
        case ir.AffineConstantExpr():
            return expression.value
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
        case _:
            combine = next(combine for kind, combine in _AFFINE if isinstance(expression, kind))
            return reduce(combine, [_evaluate(part, dims, symbols) for part in (expression.lhs, expression.rhs)])


_AFFINE: tuple[tuple[Any, Any], ...] = (
    (ir.AffineAddExpr, expr.add),
    (ir.AffineMulExpr, expr.mul),
    (ir.AffineFloorDivExpr, expr.floordiv),
    (ir.AffineModExpr, expr.floormod),
    (ir.AffineCeilDivExpr, expr.ceildiv),
)
