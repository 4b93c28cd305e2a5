"""The storage that one row of a kernel needs for each operand."""

from __future__ import annotations

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..loops.body import KernelBody, Stage
from ..loops.domain import extent_of
from .choice import bounded
from .tiling import inner_loops


def locals_of(body: KernelBody) -> range:
    """The operands that never leave the kernel."""
    return range(body.local_from, len(body.operands))


def storing_stage(body: KernelBody, operand: int) -> Stage:
    """The stage that computes the operand."""
    return next(stage for stage in body.stages if any(store.operand == operand for store in stage.stores))


def row_size(body: KernelBody, operand: int) -> Dim:
    """Elements of a computed operand per row: the product of the parallel loops of its stage inside the row."""
    inner = bounded(body, inner_loops(body, storing_stage(body, operand)))
    return extent_of(loop for loop in inner if not loop.is_reduction)


def row_start(body: KernelBody, operand: int) -> Dim:
    """The address of the first element of the current row in the whole operand."""
    stage = storing_stage(body, operand)
    return expr.substitute(stage.domain.address, {loop.name: 0 for loop in inner_loops(body, stage)})
