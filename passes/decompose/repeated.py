"""kiln -> kiln: reduce elements that repeat along an axis once, and repeat the result.

The gradient of a sum multiplies by ones, so that the products of a layer repeat along its features.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, Final

from dialect.mlir import ir
from dialect.types import type_of
from passes.loops.index_space import IndexSpace

from . import builder

ELEMENTWISE: Final = frozenset(f"kiln.{kind}" for kind in ("binop", "unary", "ternary", "cast"))
REPEATING: Final = frozenset(f"kiln.{kind}" for kind in ("expand", "permute", "reshape", "shrink"))
"""Ops whose elements are all those of their operand: a pad or a view may have zeros besides."""
MAX_OPS: Final = 32
"""Most ops before a reduction that are looked at."""


def reduce_once(space: IndexSpace) -> Callable[[Any], ir.Value | None]:
    """A decomposition of reductions of repeated elements, given the symbols of the graph."""

    def decompose_reduce_axis(op: Any) -> ir.Value | None:
        """reduce(expand(x)) -> expand(reduce(x)); None for a reduction that stays"""
        source, axes = op.operands[0], op.axes
        shape = type_of(source).shape
        repeated = [axis for axis in sorted(_Repeated().axes(source) - set(axes)) if shape[axis] != 1]
        repeated = [axis for axis in repeated if space.is_positive(shape[axis])]
        if not axes or not repeated:
            return None
        one = builder.shrink(source, [(0, 1 if axis in repeated else size) for axis, size in enumerate(shape)])
        alone = {*repeated, *axes} if op.keepdims else {*repeated}
        kept = [axis for axis in range(len(shape)) if op.keepdims or axis not in axes]
        result = [1 if axis in alone else shape[axis] for axis in kept]
        return builder.expand(builder.reduce(op.reduce_op_kind, one, axes, result), op.tensor.shape)

    return decompose_reduce_axis


class _Repeated:
    """Finds the axes along which all elements of a value are known to be the same."""

    def __init__(self) -> None:
        self._left = MAX_OPS

    def axes(self, value: ir.Value) -> Set[int]:
        rank = len(type_of(value).shape)
        source, moves = builder.unmoved(value)
        if all(size == 1 for size in type_of(source).shape) and {op.operation.name for op in moves} <= REPEATING:
            return set(range(rank))
        self._left -= 1
        if isinstance(value.owner, ir.Block) or self._left < 0:
            return set()
        op = value.owner
        match op.operation.name:
            case "kiln.expand":
                before = type_of(op.operands[0]).shape
                stretched = {axis for axis, size in enumerate(type_of(value).shape) if before[axis] == 1 != size}
                return stretched | self.axes(op.operands[0])
            case "kiln.permute":
                known = self.axes(op.operands[0])
                return {axis for axis, moved in enumerate(op.axes_permutation) if moved in known}
            case name if name in ELEMENTWISE:
                found: Set[int] = set(range(rank))
                for operand in op.operands:
                    if not found:
                        break
                    found = found & self.axes(operand) if type_of(operand).shape else found
                return found
            case _:
                return set()
