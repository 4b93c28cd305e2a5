"""What a strategy decides of one kernel, and the record that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.schedule import (
    Axis,
    IterSpace,
    KernelItem,
    LoopHint,
    Mapping,
    ReductionPlan,
    ScheduleContext,
    Vectorize,
)

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


def kernel_item(
    name: str,
    rows: Sequence[Loop],
    inner: Sequence[Sequence[Loop]],
    tiles: dict[str, tuple[Dim, ...]],
    groups: Dim,
    per_group: int,
    vector_width: int,
) -> KernelItem:
    """The record of loops: `rows` over work-groups, the loops of each stage inside, the last of each in vectors."""
    axes: list[Axis] = []
    serial: list[int] = []
    vectors: list[int] = []
    for stage, loops in enumerate(inner):
        for number, loop in enumerate(loops):
            (vectors if number == len(loops) - 1 else serial).append(len(rows) + len(axes))
            # Stages may walk one piece of a loop each; as axes these are different loops.
            is_taken = any(axis.name == loop.name for axis in axes)
            axes.append(_axis(Loop(f"{loop.name}_{stage}", loop.extent, loop.is_reduction) if is_taken else loop))
    block = [_axis(loop) for loop in rows]
    reduced = [number for number, axis in enumerate([*block, *axes]) if axis.role == "reduction"]
    hints: list[LoopHint] = [Vectorize(axis=number, width=vector_width) for number in vectors]
    return KernelItem(
        kernel_id=0,
        kernel_name=name,
        iter=IterSpace(
            axes=(*block, *axes),
            mapping=Mapping(block=tuple(range(len(block))), vec=tuple(vectors), serial=tuple(serial)),
            tiles=tuple(tiles.get(axis.name, ()) for axis in (*block, *axes)),
        ),
        reduce=ReductionPlan(axes=tuple(reduced), intra_thread="tree") if reduced else None,
        hints=tuple(hints),
        context=ScheduleContext(global_dims=(groups, 1, 1), upcasted=per_group, device="CPU"),
    )


def _axis(loop: Loop) -> Axis:
    return Axis(name=loop.name, size=loop.extent, role="reduction" if loop.is_reduction else "normal")


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
