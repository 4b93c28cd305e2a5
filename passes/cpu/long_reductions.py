"""Which reductions a CPU splits into two steps, so that several threads share them."""

from __future__ import annotations

from typing import Any, Final

from dialect.elementwise import BinopOp
from dialect.types import type_of
from passes.decompose.split_reductions import Split
from passes.loops.index_space import IndexSpace
from passes.schedule.tiling import COLUMN_CHUNK
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.nodes import BinopKind

ENOUGH_GROUPS: Final = 8
"""Work-groups that are divided over threads well. More parts take longer on one thread."""
LEAST_ELEMENTS: Final = 1 << 20
"""Elements of a reduction that takes about as long as 20 launches: fewer are not worth a second kernel."""
LEAST_PART: Final = 128
"""Steps of a part: each ends with a result that is stored and loaded again."""


def split_of(op: Any, space: IndexSpace) -> Split | None:
    """The parts of a reduction that is long at every call and fills fewer than ENOUGH_GROUPS work-groups; else None.

    Its axes are adjacent, and the axes behind them are columns, of which a work-group takes COLUMN_CHUNK. Products with
    several results are left to contractions.
    """
    source, axes = op.operands[0], tuple(op.axes)
    shape = type_of(source).shape
    if axes != tuple(range(axes[0], axes[0] + len(axes))) or _least(space, shape) < LEAST_ELEMENTS:
        return None
    columns = shape[axes[-1] + 1 :]
    outer, inner = (space.largest(expr.product(part)) for part in (shape[: axes[0]], columns))
    groups = outer * -(-inner // COLUMN_CHUNK)
    is_product = isinstance(source.owner, BinopOp) and source.owner.op is BinopKind.MUL
    length = _least(space, [shape[axis] for axis in axes])
    parts = ENOUGH_GROUPS // max(groups, 1)
    if parts < 2 or length < parts * LEAST_PART or (is_product and outer * inner > 1):
        return None
    return Split(parts, len(columns))


def _least(space: IndexSpace, shape: Any) -> int:
    """The fewest elements of an array of this shape."""
    elements: Dim = expr.product(shape)
    return -space.largest(expr.neg(elements))
