"""What a strategy decides of one kernel, and the record that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from ..loops.body import KernelBody, Stage
from ..loops.domain import Loop, extent_of
from ..loops.scalar_dag import Apply, walk
from .work import additions


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer of one kernel: every worker has its own while it runs the kernel, or all work-groups share it."""

    dtype: DType
    elements: Dim
    is_private: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule for one kernel. `groups` work-groups of `per_group` rows; `item` lacks only the buffers."""

    strategy: str
    item: KernelItem
    scratch: tuple[Scratch, ...]
    groups: Dim
    flops: Dim


def stage_flops(body: KernelBody, stage: Stage) -> Dim:
    """Operations of a stage, counted in additions of 32 bits: those of one element, and a combination when it reduces,
    times its points.
    """
    per_point = sum(additions(node) for node in walk(stage.elements, body.nodes) if isinstance(node, Apply))
    if stage.combine is not None:
        per_point += sum(2 if element.dtype.itemsize == 8 else 1 for element in stage.elements)
    return expr.mul(per_point, extent_of(bounded(body, stage.domain.loops)))


def bounded(body: KernelBody, loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops with extents in terms of symbols only: the piece of a chunked loop counts in full."""
    return tuple(Loop(loop.name, _bound(body, loop.extent), loop.is_reduction) for loop in loops)


def _bound(body: KernelBody, extent: Dim) -> Dim:
    return extent if expr.free_symbols(extent) <= body.space.symbols.keys() else body.space.largest(extent)
