"""The number of turns of a loop that counts up to a constant."""

from __future__ import annotations

from typing import Any

from dialect.mlir import ir, stablehlo

from .elements import splat_value
from .op import Op
from .value import Known

_LESS = "LT"


def counted_turns(op: Op) -> int | None:
    """The turns of a `while` that adds a constant to a known integer while it is less than another; None otherwise.

    JAX writes `scan` and `fori_loop` in this way.
    """
    condition, body = (op.region(place).blocks[0] for place in (0, 1))
    operations = [each.operation for each in condition.operations]
    if len(operations) != 2 or operations[0].name != "stablehlo.compare":
        return None
    compared, returned = operations
    direction = stablehlo.ComparisonDirectionAttr(compared.attributes["comparison_direction"]).value
    counter, limit = compared.operands[0], _constant(op, compared.operands[1])
    if direction != _LESS or list(returned.operands) != list(compared.results) or limit is None:
        return None
    place = next((at for at, each in enumerate(condition.arguments) if each == counter), None)
    if place is None:
        return None
    start = op.operands[place]
    step = _step(op, body, place)
    if not isinstance(start, Known) or start.is_symbolic or step is None or step < 1:
        return None
    first = int(start.array.item())
    # A counter that wraps goes on.
    return None if limit + step > start.dtype.max else max(0, -(-(limit - first) // step))


def _step(op: Op, body: Any, place: int) -> int | None:
    """The constant that the body adds to the argument at `place`."""
    own = body.arguments[place]
    made = list(body.operations)[-1].operands[place].owner
    if not isinstance(made, ir.OpView | ir.Operation) or made.operation.name != "stablehlo.add":
        return None
    left, right = made.operation.operands
    return _constant(op, right) if left == own else _constant(op, left) if right == own else None


def _constant(op: Op, value: Any) -> int | None:
    """The integer that a constant of rank 0 is."""
    made = value.owner
    if not isinstance(made, ir.OpView | ir.Operation) or made.operation.name != "stablehlo.constant":
        return None
    kind = op.typed(value.type)
    attribute = made.operation.attributes["value"]
    if kind.shape or kind.is_complex or not kind.dtype.is_integer or not isinstance(attribute, ir.DenseElementsAttr):
        return None
    return int(splat_value(ir.DenseElementsAttr(attribute).get_splat_value(), kind.dtype))
