"""The schedule record of a kernel on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tensorkiln import expr
from tensorkiln.expr import Dim, evaluate
from tensorkiln.schedule import (
    Axis,
    IterSpace,
    KernelItem,
    Mapping,
    ReductionPlan,
    ScheduleContext,
    SharedArray,
    Vectorize,
)

Level = Literal["block", "thread", "vec", "serial"]


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """A loop, the level of the machine that runs it, and its tiles from outer to inner."""

    name: str
    extent: Dim
    level: Level
    is_reduction: bool = False
    tiles: tuple[Dim, ...] = ()


def kernel_item(
    name: str, axes: Sequence[PlacedAxis], groups: Dim, threads: int, shared: Sequence[SharedArray]
) -> KernelItem:
    """The record of a kernel of `groups` work-groups of `threads` threads."""
    levels = {level: tuple(n for n, axis in enumerate(axes) if axis.level == level) for level in LEVELS}
    reduced = tuple(number for number, axis in enumerate(axes) if axis.is_reduction)
    return KernelItem(
        kernel_id=0,
        kernel_name=name,
        shared=tuple(shared),
        iter=IterSpace(
            axes=tuple(
                Axis(name=axis.name, size=axis.extent, role="reduction" if axis.is_reduction else "normal")
                for axis in axes
            ),
            mapping=Mapping(block=levels["block"], thread=levels["thread"], vec=levels["vec"], serial=levels["serial"]),
            tiles=tuple(axis.tiles for axis in axes),
        ),
        reduce=ReductionPlan(axes=reduced, intra_thread="shfl") if reduced else None,
        hints=tuple(Vectorize(axis=number, width=evaluate(axes[number].extent, {})) for number in levels["vec"]),
        context=ScheduleContext(
            global_dims=(expr.mul(groups, threads), 1, 1), local_dims=(threads, 1, 1), device="CUDA"
        ),
    )


LEVELS: tuple[Level, ...] = ("block", "thread", "vec", "serial")


def threads_of(item: KernelItem) -> int:
    """Threads of a work-group."""
    return evaluate(item.context.local_dims[0], {})


def constant_extent(item: KernelItem, name: str, default: int = 1) -> int:
    """The extent of the axis called `name`, which is a constant; `default` when there is none."""
    found = (axis.extent for axis in item.iter.axes if axis.name == name)
    return next((evaluate(extent, {}) for extent in found), default)


def tiles_of(item: KernelItem, name: str) -> tuple[int, ...]:
    """The tiles of the axis called `name`, which are constants."""
    pairs = zip(item.iter.axes, item.iter.tiles, strict=True)
    return next(tuple(evaluate(size, {}) for size in sizes) for axis, sizes in pairs if axis.name == name)
