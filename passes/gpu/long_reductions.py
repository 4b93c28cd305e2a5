"""Which reductions a GPU splits into two steps."""

from __future__ import annotations

from typing import Any, Final

from dialect.types import type_of
from passes.decompose.split_reductions import Split
from passes.loops.index_space import IndexSpace
from tensorkiln import expr

ENOUGH_GROUPS: Final = 512
"""Work-groups that keep a large GPU busy: a few for each of up to 150 multiprocessors."""
LEAST_PART: Final = 4096
"""Elements of a part: fewer are not worth a second kernel."""


def split_of(op: Any, space: IndexSpace) -> Split | None:
    """A power of two of parts for each result, side by side; None if there are enough results, or few elements."""
    results = space.largest(expr.product(op.tensor.shape))
    elements = space.largest(expr.product(type_of(op.operands[0]).shape[axis] for axis in op.axes))
    parts = 1
    while parts * max(results, 1) < ENOUGH_GROUPS and elements >= 2 * parts * LEAST_PART:
        parts *= 2
    return Split(parts, 0) if parts > 1 else None
