"""kiln -> kiln: split a long reduction with few results into two steps, to fill more work-groups."""

from __future__ import annotations

from typing import Any, Final

from dialect.mlir import ir
from dialect.module import graph_function
from dialect.movement import CatOp
from dialect.types import type_of
from passes.decompose import builder
from passes.loops.index_space import IndexSpace
from passes.values import read_symbols
from tensorkiln import expr

ENOUGH_GROUPS: Final = 512
"""Work-groups that keep a large GPU busy: a few for each of up to 150 multiprocessors."""
LEAST_PART: Final = 4096
"""Elements of a part: fewer are not worth a second kernel."""


def split_reductions(module: ir.Module) -> ir.Module:
    """Reduce equal parts first, then their results together with the remaining elements."""
    space = IndexSpace(read_symbols(module))
    block = graph_function(module).regions[0].blocks[0]
    for op in list(block.operations):
        if op.operation.name != "kiln.reduce_axis":
            continue
        parts = _parts(op, space)
        if parts > 1:
            with ir.InsertionPoint(op), op.location:
                value = _in_two_steps(op, parts)
            op.operation.results[0].replace_all_uses_with(value)
            op.operation.erase()
    return module


def _parts(op: Any, space: IndexSpace) -> int:
    """The number of parts for each reduction, a power of two."""
    results = space.largest(expr.product(op.tensor.shape))
    elements = space.largest(expr.product(type_of(op.operands[0]).shape[axis] for axis in op.axes))
    parts = 1
    while parts * max(results, 1) < ENOUGH_GROUPS and elements >= 2 * parts * LEAST_PART:
        parts *= 2
    return parts


def _in_two_steps(op: Any, parts: int) -> ir.Value:
    source, kind = op.operands[0], op.reduce_op_kind
    shape, axes = type_of(source).shape, tuple(op.axes)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    length = expr.product(shape[axis] for axis in axes)
    outer = tuple(shape[axis] for axis in kept)
    flat = builder.reshape(builder.permute(source, [*kept, *axes]), (*outer, length))
    part = expr.floordiv(length, parts)
    whole = expr.mul(part, parts)
    everything = [(0, extent) for extent in outer]
    equal = builder.reshape(builder.shrink(flat, [*everything, (0, whole)]), (*outer, parts, part))
    partial = builder.reduce(kind, equal, [len(outer) + 1], (*outer, parts))
    left = expr.sub(length, whole)
    if left != 0:
        rest = builder.shrink(flat, [*everything, (whole, length)])
        joined = builder.typed(partial, (*outer, expr.add(parts, left)))
        partial = CatOp.make([partial, rest], joined, axis=len(outer)).results[0]
    return builder.reshape(builder.reduce(kind, partial, [len(outer)], outer), op.tensor.shape)
