"""The schedule record of a kernel, for every target: its loops, the level that runs each, and the launch dimensions."""

from __future__ import annotations

from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

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

NONE: Final[Map[int, ScalarReason]] = MappingProxyType({})

Level = Literal["block", "thread", "vec", "serial"]
LEVELS: tuple[Level, ...] = ("block", "thread", "vec", "serial")


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """A loop, the machine level that runs it, its tile sizes from outer to inner, and its vector `width` in elements.

    `at_once` iterations run together. `scalar` is the reason why the loop is not vectorised, if there is one.
    """

    name: str
    extent: Dim
    level: Level
    is_reduction: bool = False
    tiles: tuple[Dim, ...] = ()
    width: int = 1
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
            *(Vectorize(axis=number, width=axes[number].width) for number in levels["vec"]),
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


def placed(
    rows: Sequence[Loop],
    inner: Sequence[Sequence[Loop]],
    tiles: Map[str, tuple[Dim, ...]],
    width: int,
    scalar: Map[int, ScalarReason] = NONE,
) -> list[PlacedAxis]:
    """The axes of a CPU kernel: `rows` over work-groups, then the inner loops of each stage, the last of each
    vectorised.

    `scalar` maps the number of a stage to the reason why its last loop is not vectorised. If no stage has an inner
    loop, a row is one element.
    """
    axes = [_axis(loop, "block", tiles) for loop in rows]
    if axes and not any(inner):
        axes[-1] = replace(axes[-1], scalar="single-point")
    for stage, loops in enumerate(inner):
        for number, loop in enumerate(loops):
            axis = _axis(loop, "serial", tiles)
            # Several stages may iterate over pieces of one loop; each piece is an axis of its own.
            if any(other.name == loop.name for other in axes[len(rows) :]):
                axis = replace(axis, name=f"{loop.name}_{stage}", tiles=())
            if number == len(loops) - 1:
                axis = replace(axis, level="vec", width=width)
                if stage in scalar:
                    axis = replace(axis, level="serial", width=1, scalar=scalar[stage])
            axes.append(axis)
    return axes


def _axis(loop: Loop, level: Level, tiles: Map[str, tuple[Dim, ...]]) -> PlacedAxis:
    return PlacedAxis(loop.name, loop.extent, level, loop.is_reduction, tiles.get(loop.name, ()))


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
