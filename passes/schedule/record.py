"""The schedule record of a kernel, for every target: its loops, the level that runs each, and the launch dimensions."""

from __future__ import annotations

from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tensorkiln import expr
from tensorkiln.expr import Dim, evaluate
from tensorkiln.schedule import (
    Axis,
    IterSpace,
    KernelItem,
    Mapping,
    ReductionPlan,
    Scalar,
    ScheduleContext,
    SharedArray,
    Unroll,
    Vectorize,
)
from tensorkiln.schedule.hints import ScalarReason

from ..loops.domain import Loop

Level = Literal["block", "thread", "vec", "serial"]
LEVELS: tuple[Level, ...] = ("block", "thread", "vec", "serial")


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """A loop, the machine level that runs it, its tile sizes from outer to inner, and its vector `width` in elements.

    `is_masked` says that conditions on the loop and its end are masks of its vectors. `at_once` iterations run
    together. `scalar` is the reason why the loop is not vectorised, if there is one.
    """

    name: str
    extent: Dim
    level: Level
    is_reduction: bool = False
    tiles: tuple[Dim, ...] = ()
    width: int = 1
    is_masked: bool = False
    at_once: int = 1
    scalar: ScalarReason | None = None


def kernel_item(
    name: str, axes: Sequence[PlacedAxis], context: ScheduleContext, shared: Sequence[SharedArray] = ()
) -> KernelItem:
    """The record of a kernel, without its buffers."""
    levels = {level: tuple(n for n, axis in enumerate(axes) if axis.level == level) for level in LEVELS}
    reduced = tuple(number for number, axis in enumerate(axes) if axis.is_reduction)
    plan = ReductionPlan(axes=reduced, intra_thread="tree" if context.device == "CPU" else "shfl")
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
        reduce=plan if reduced else None,
        hints=(
            *(Vectorize(axis=n, width=axes[n].width, masked=axes[n].is_masked) for n in levels["vec"]),
            *(Scalar(axis=n, reason=axis.scalar) for n, axis in enumerate(axes) if axis.scalar is not None),
            *(Unroll(axis=number, factor=axis.at_once) for number, axis in enumerate(axes) if axis.at_once > 1),
        ),
        context=context,
    )


def on_processors(groups: Dim, per_group: int = 1) -> ScheduleContext:
    """Work-groups of `per_group` rows, each run by one processor."""
    return ScheduleContext(global_dims=(groups, 1, 1), upcasted=per_group, device="CPU")


def on_threads(groups: Dim, threads: int, device: str) -> ScheduleContext:
    """Work-groups of `threads` threads on a GPU; `device` is the kind of device."""
    return ScheduleContext(global_dims=(expr.mul(groups, threads), 1, 1), local_dims=(threads, 1, 1), device=device)


def nested(
    loops: Sequence[Loop],
    along: int = -1,
    width: int = 1,
    *,
    is_masked: bool = False,
    scalar: ScalarReason | None = None,
) -> list[PlacedAxis]:
    """The axes of loops inside a row: the one at `along` is in vectors, unless `scalar` is a reason against it."""
    axes = [PlacedAxis(loop.name, loop.extent, "serial", loop.is_reduction) for loop in loops]
    level: Level = "serial" if scalar else "vec"
    axes[along] = replace(axes[along], level=level, width=width, is_masked=is_masked, scalar=scalar)
    return axes


def placed(
    rows: Sequence[Loop], nests: Sequence[Sequence[PlacedAxis]], tiles: Map[str, tuple[Dim, ...]]
) -> list[PlacedAxis]:
    """The axes of a CPU kernel: `rows` over work-groups, then those of each nest of loops inside a row.

    If no stage has an inner loop, a row is one element.
    """
    axes = [PlacedAxis(loop.name, loop.extent, "block", loop.is_reduction, tiles.get(loop.name, ())) for loop in rows]
    if axes and not any(nests):
        axes[-1] = replace(axes[-1], scalar="single-point")
    names: set[str] = set()
    for number, nest in enumerate(nests):
        for axis in nest:
            # Several nests may iterate over pieces of one loop; each piece is an axis of its own.
            is_other = axis.name in names
            axes.append(
                replace(axis, name=f"{axis.name}_{number}")
                if is_other
                else replace(axis, tiles=tiles.get(axis.name, ()))
            )
            names.add(axis.name)
    return axes


def at_once(item: KernelItem) -> int:
    """Rows that are computed together."""
    return next((hint.factor for hint in item.hints if isinstance(hint, Unroll)), 1)


def threads_of(item: KernelItem) -> int:
    """Threads of a work-group."""
    return evaluate(item.context.local_dims[0], {})


def shared_bytes(item: KernelItem) -> Dim:
    """Bytes of the arrays that the threads of a work-group share."""
    return expr.add(0, *(expr.mul(array.elements, array.dtype.itemsize) for array in item.shared))


def constant_extent(item: KernelItem, name: str, default: int = 1) -> int:
    """The constant extent of the axis called `name`; `default` if there is no such axis."""
    found = (axis.extent for axis in item.iter.axes if axis.name == name)
    return next((evaluate(extent, {}) for extent in found), default)


def tiles_of(item: KernelItem, name: str) -> tuple[int, ...]:
    """The constant tile sizes of the axis called `name`."""
    pairs = zip(item.iter.axes, item.iter.tiles, strict=True)
    return next(tuple(evaluate(size, {}) for size in sizes) for axis, sizes in pairs if axis.name == name)
