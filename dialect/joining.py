"""Join more parts along an axis than one op takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from tensorkiln.expr import add
from tensorkiln.types import TensorType

from .mlir import ir
from .movement import CatOp
from .operation import MAX_RUNS, runs_of_equal_type
from .types import type_of
from .writer import Writer


def join(writer: Writer, parts: Sequence[ir.Value], axis: int, result: TensorType) -> ir.Value:
    """The parts joined along `axis`: one cat or, for too many types, a cat of cats of neighbouring parts."""
    runs = runs_of_equal_type(parts)
    if len(runs) <= MAX_RUNS:
        return writer.write(CatOp, parts, result, {"axis": axis})
    joined: list[ir.Value] = []
    for first in range(0, len(runs), MAX_RUNS):
        neighbours = list(chain.from_iterable(runs[first : first + MAX_RUNS]))
        extent = add(*(type_of(part).shape[axis] for part in neighbours))
        shape = (*result.shape[:axis], extent, *result.shape[axis + 1 :])
        joined.append(writer.write(CatOp, neighbours, replace(result, shape=shape), {"axis": axis}))
    return join(writer, joined, axis, result)
