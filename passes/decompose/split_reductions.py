"""kiln -> kiln: split a long reduction with few results into two steps, to fill more work-groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dialect.mlir import ir
from dialect.module import graph_function
from dialect.movement import CatOp
from dialect.types import type_of
from passes.loops.index_space import IndexSpace
from passes.values import read_symbols
from tensorkiln import expr

from . import builder


@dataclass(frozen=True, slots=True)
class Split:
    """The number of parts for each result. The parts come `before` so many of the axes that are kept."""

    parts: int
    before: int


def split_reductions(module: ir.Module, split_of: Callable[[Any, IndexSpace], Split | None]) -> ir.Module:
    """Reduce equal parts first, then their results together with the remaining elements."""
    space = IndexSpace(read_symbols(module))

    def reduced(op: Any) -> ir.Value | None:
        split = split_of(op, space)
        return None if split is None else _in_two_steps(op, split)

    builder.replace(graph_function(module).regions[0].blocks[0], {"kiln.reduce_axis": reduced})
    return module


def _in_two_steps(op: Any, split: Split) -> ir.Value:
    source, kind, parts = op.operands[0], op.reduce_op_kind, split.parts
    shape, axes = type_of(source).shape, tuple(op.axes)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    first, last = kept[: len(kept) - split.before], kept[len(kept) - split.before :]
    length = expr.product(shape[axis] for axis in axes)
    outer, inner = (tuple(shape[axis] for axis in group) for group in (first, last))
    moved = [*first, *axes, *last]
    ordered = source if moved == list(range(len(shape))) else builder.permute(source, moved)
    flat = builder.reshape(ordered, (*outer, length, *inner))
    part = expr.floordiv(length, parts)
    whole = expr.mul(part, parts)
    left = expr.sub(length, whole)

    def rows(begin: expr.Dim, end: expr.Dim) -> ir.Value:
        around = [[(0, extent) for extent in extents] for extents in (outer, inner)]
        return builder.shrink(flat, [*around[0], (begin, end), *around[1]])

    even = flat if left == 0 else rows(0, whole)
    equal = builder.reshape(even, (*outer, parts, part, *inner))
    partial = builder.reduce(kind, equal, [len(outer) + 1], (*outer, parts, *inner))
    if left != 0:
        joined = builder.typed(partial, (*outer, expr.add(parts, left), *inner))
        partial = CatOp.make([partial, rows(whole, length)], joined, axis=len(outer)).results[0]
    return builder.reshape(builder.reduce(kind, partial, [len(outer)], (*outer, *inner)), op.tensor.shape)
