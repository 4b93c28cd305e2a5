"""How an argument is packed for the kernel that reads it: in panels of a tile of one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..loops.domain import Loop
from ..loops.index_space import name_of
from ..loops.scalar_dag import Load
from ..values import Value


@dataclass(frozen=True, slots=True)
class Tiling:
    """The dimensions of the argument `operand` in `order`, `axis` by panels, and `tile` elements of it innermost."""

    operand: int
    axis: int
    tile: int
    order: tuple[int, ...]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the packed argument. What is left of the last tile is zeros."""
        counts = [-(-extent // self.tile) if axis == self.axis else extent for axis, extent in enumerate(shape)]
        return (*(counts[axis] for axis in self.order), self.tile)


def tiling_of(load: Load, value: Value, tile: int, tiled: Sequence[Loop], others: Sequence[Loop]) -> Tiling | None:
    """The panels for a read of the argument `value` by the loop `tiled`, in each of which the last of `others` is
    innermost; None where its dimensions are not just those loops, or one panel is all.
    """
    axes: dict[str, int] = {}
    extents = {loop.name: loop.extent for loop in (*tiled, *others)}
    units = [axis for axis, extent in enumerate(value.shape) if extent == 1]
    for axis, (at, extent) in enumerate(zip(load.index, value.shape, strict=True)):
        if extent == 1:
            continue
        name = name_of(at)
        if name in axes or not isinstance(extent, int) or extents.get(name) != extent:
            return None
        axes[name] = axis
    is_whole = axes.keys() == extents.keys() and not load.conditions
    if not is_whole or len(tiled) != 1:
        return None
    batch = [loop for loop in others if not loop.is_reduction]
    depth = [loop for loop in others if loop.is_reduction]
    (loop,) = tiled
    if not isinstance(loop.extent, int) or loop.extent <= tile:
        return None
    order = (*units, *(axes[each.name] for each in (*batch, loop, *depth)))
    return Tiling(load.operand, axes[loop.name], tile, order)
