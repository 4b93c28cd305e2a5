"""Operations with shapes as operands.

Such an operand must be computed from constants and sizes of dimensions alone, as in the modules that JAX exports.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.expr import Dim

from .gathering import gathered, sliced
from .movement import broadcast, iota, padded
from .op import Op
from .table import Translator
from .value import Known, Value, known_dims


def _dims(op: Op, position: int, what: str) -> list[Dim]:
    """An operand that lists dimensions, which must be known. UnsupportedGraphError, with `what` in its message."""
    return [int(dim) if isinstance(dim, np.integer) else dim for dim in op.known(position, what).reshape(-1).tolist()]


def _get_dimension_size(op: Op) -> Value:
    size, dtype = op.operands[0].shape[op.integer("dimension")], op.result().dtype
    return known_dims([size], dtype, ()) if op.holds(size, dtype) else build.dim_value(op.builder, size, dtype)


def _broadcast(op: Op) -> Value:
    shape = _dims(op, 1, "the shape of its result")
    return broadcast(op.tensor(0), shape, op.integers("broadcast_dimensions"))


def _reshape(op: Op) -> Value:
    return op.tensor(0).reshape(_dims(op, 1, "the shape of its result"))


def _iota(op: Op) -> Value:
    shape = _dims(op, 0, "the shape of its result")
    return iota(op.builder, shape, op.integer("iota_dimension"), op.result().dtype)


def _pad(op: Op) -> Value:
    low, high, between = (_dims(op, position, "a width of its padding") for position in (2, 3, 4))
    gaps = [gap for gap in between if isinstance(gap, int)]
    if len(gaps) != len(between):
        op.fail("the padding between elements depends on symbols")
    return padded(op, op.tensor(0), list(zip(low, high, strict=True)), gaps, op.operands[1])


def _slice(op: Op) -> Value:
    sizes = op.added_to(1, 2)
    if isinstance(op.operands[1], Tensor) and isinstance(sizes, Known):
        steps = _dims(op, 3, "the step of a slice")
        if any(step != 1 for step in steps):
            op.fail("a slice from computed positions has steps of 1")
        begins = op.tensor(1)
        return sliced(op, [begins[axis] for axis in range(len(steps))], sizes.array.tolist())
    starts, limits, steps = (_dims(op, position, "a bound of its slice") for position in (1, 2, 3))
    parts: list[slice] = []
    for start, limit, step, dim in zip(starts, limits, steps, op.operands[0].shape, strict=True):
        if not isinstance(step, int):
            op.fail("the step of a slice depends on symbols")
        # Unlike Python slices, negative bounds are invalid and bounds beyond the end are not clamped.
        is_outside = isinstance(limit, int) and isinstance(dim, int) and limit > dim
        if step < 1 or is_outside or any(isinstance(bound, int) and bound < 0 for bound in (start, limit)):
            op.invalid(f"its slice from {start} to {limit} in steps of {step} is none of a dimension of {dim}")
        if isinstance(limit, int) and not op.is_open(dim) and limit > (least := op.builder.bounds(dim)[0]):
            op.fail(f"its slice ends at {limit}, and the dimension {dim} may be {least}; give it other bounds in dims")
        parts.append(slice(start, limit, step))
    return op.tensor(0)[tuple(parts)]


def _gather(op: Op) -> Value:
    return gathered(op, _dims(op, 2, "the size of its windows"))


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.get_dimension_size": _get_dimension_size,
    "stablehlo.real_dynamic_slice": _slice,
}
