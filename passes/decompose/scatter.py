"""Scatters in fewer and wider steps: rows that share one index, sums of 16-bit floats in float32.

An index that is the same for all elements of a row is read once for the row: its axes get size 1, which the op of the
dialect allows, and the last ones become one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dialect.constants import ConstScalarOp
from dialect.conversion import CastOp
from dialect.elementwise import BinopOp, TernaryOp, UnaryOp
from dialect.indexing import ScatterOp
from dialect.mlir import ir
from dialect.movement import ExpandOp, PermuteOp, ReshapeOp
from dialect.types import type_of
from passes.loops.index_space import IndexSpace
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.nodes import ScatterKind

from . import builder

_ACCUMULATED: Final = (ScatterKind.ADD, ScatterKind.MUL)
_DEEPEST: Final = 32
"""Most ops on the way from indices to an expansion."""


def scatters(space: IndexSpace) -> Mapping[str, Callable[[Any], ir.Value | None]]:
    """The decomposition of scatters in a graph with these symbols."""
    return {"kiln.scatter": lambda op: _decomposed(op, space)}


def _decomposed(op: Any, space: IndexSpace) -> ir.Value | None:
    indices, updates, *inits = op.operands
    given = [updates, *(init for init in inits if not _is_zero(init))]
    kind, axis, result = op.reduction, op.axis, op.tensor
    if result.dtype.is_half and kind in _ACCUMULATED:
        given = [builder.cast(value, DType.FLOAT32) for value in given]
    shared = _shared_axes(op, space)
    narrowed = _at_first(indices, shared)
    shape, joined = result.shape, _joined_axes(op, shared)
    if joined:
        narrowed, *given = (_with_last_joined(value, joined) for value in (narrowed, *given))
        shape = (*shape[:-joined], expr.product(shape[-joined:]))
    if [narrowed, *given] == list(op.operands):
        return None
    made = ScatterOp.make([narrowed, *given], builder.typed(given[0], shape), axis=axis, reduction=kind)
    return builder.cast(builder.reshape(made.results[0], result.shape), result.dtype)


def _is_zero(value: ir.Value) -> bool:
    """Whether all elements are the constant zero; a negative zero is another value."""
    op = value.owner
    while isinstance(op, ExpandOp | ReshapeOp):
        op = op.operands[0].owner
    return isinstance(op, ConstScalarOp) and op.value == 0 and not str(op.value).startswith("-")


def _shared_axes(op: Any, space: IndexSpace) -> list[int]:
    """The axes along which all indices are equal, of at least one element, though there are more updates than one."""
    indices, updates = op.operands[0], type_of(op.operands[1])
    return [
        axis
        for axis, extent in enumerate(updates.shape)
        if axis != op.axis and extent != 1 and space.is_positive(extent) and _is_constant(indices, axis, _DEEPEST)
    ]


def _is_constant(value: ir.Value, axis: int, depth: int) -> bool:
    """Whether equal elements stand along an axis of the value."""
    shape, op = type_of(value).shape, value.owner
    if not shape or shape[axis] == 1:
        return True
    if depth == 0:
        return False
    if isinstance(op, BinopOp | TernaryOp | UnaryOp | CastOp):
        return all(_is_constant(operand, axis, depth - 1) for operand in dict.fromkeys(op.operands))
    if isinstance(op, ExpandOp):
        return _is_constant(op.operands[0], axis, depth - 1)
    if isinstance(op, PermuteOp):
        return _is_constant(op.operands[0], op.axes_permutation[axis], depth - 1)
    if isinstance(op, ReshapeOp):
        source = _axis_before(op, axis)
        return source is not None and _is_constant(op.operands[0], source, depth - 1)
    return False


def _axis_before(op: Any, axis: int) -> int | None:
    """The axis of a reshape's operand that is an axis of the result unchanged; None if there is no such axis."""
    before, after = type_of(op.operands[0]).shape, op.tensor.shape
    if before[: axis + 1] == after[: axis + 1]:
        return axis
    behind = len(after) - axis
    return len(before) - behind if len(before) >= behind and before[-behind:] == after[-behind:] else None


def _at_first(indices: ir.Value, axes: list[int]) -> ir.Value:
    """The indices at the first element of these axes."""
    if not axes:
        return indices
    shape, op = type_of(indices).shape, indices.owner
    if isinstance(op, ExpandOp):
        source = op.operands[0]
        known = type_of(source).shape
        if all((known[axis] == 1) if axis in axes else (known[axis] == shape[axis]) for axis in range(len(shape))):
            return source
    return builder.shrink(indices, [(0, 1 if axis in axes else extent) for axis, extent in enumerate(shape)])


def _joined_axes(op: Any, shared: list[int]) -> int:
    """The number of last axes to join: indices are shared along all, and updates cover them, except maybe the first."""
    result, updates = op.tensor.shape, type_of(op.operands[1]).shape
    rank, count = len(result), 0
    while count < rank - 1 - op.axis and (rank - 1 - count in shared or updates[rank - 1 - count] == 1):
        count += 1
        if updates[-count] != result[-count]:
            break
    return count if count > 1 else 0


def _with_last_joined(value: ir.Value, count: int) -> ir.Value:
    shape = type_of(value).shape
    return builder.reshape(value, (*shape[:-count], expr.product(shape[-count:])))
