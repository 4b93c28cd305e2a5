"""The packed layout of a kernel argument: panels of one dimension, `tile` elements wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tensorkiln.expr import Dim, mul

from ..loops.domain import Loop, extent_of
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Load
from ..values import Value


@dataclass(frozen=True, slots=True)
class Tiling:
    """The packed layout of argument `operand`: its dimensions in `order`, `axis` cut into panels of `tile` innermost
    elements.

    `is_run` means that one loop of the reader steps through exactly the elements of a panel, so it reads by strides.
    """

    operand: int
    axis: int
    tile: int
    order: tuple[int, ...]
    is_run: bool = False

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the packed argument. The last panel is padded with zeros."""
        counts = [-(-extent // self.tile) if axis == self.axis else extent for axis, extent in enumerate(shape)]
        return (*(counts[axis] for axis in self.order), self.tile)


def tiling_of(load: Load, value: Value, tile: int, tiled: Sequence[Loop], others: Sequence[Loop]) -> Tiling | None:
    """The panels of a packed argument `value`, read by the loops `tiled`; inside a panel the last of `others` is
    innermost.

    None if a dimension is not indexed by exactly those loops (one or several per dimension), or if one panel holds it
    all.
    """
    batch = [loop for loop in others if not loop.is_reduction]
    depth = [loop for loop in others if loop.is_reduction]
    loops = [*batch, *tiled, *depth]
    axes: dict[str, int] = {}
    for axis, (at, extent) in enumerate(zip(load.index, value.shape, strict=True)):
        stepped = _stepped(at, loops)
        if extent == 1 and at == 0:
            continue
        if stepped is None or extent_of(stepped) != extent or not axes.keys().isdisjoint(loop.name for loop in stepped):
            return None
        axes |= {loop.name: axis for loop in stepped}
    if load.conditions or len(axes) != len(loops):
        return None
    walked = [axis for axis, _ in groupby(axes[loop.name] for loop in loops)]
    axis, count = axes[tiled[-1].name], extent_of(tiled)
    is_run = len(tiled) > 1 and tiled[-1].extent == tile
    beside = [loop for loop in loops if axes[loop.name] == axis and loop not in tiled]
    is_tiled = {axes[loop.name] for loop in tiled} == {axis} and (is_run or (len(tiled) == 1 and not beside))
    if len(walked) != len(set(walked)) or not is_tiled or not isinstance(count, int) or count <= tile:
        return None
    units = [axis for axis in range(len(value.shape)) if axis not in walked]
    return Tiling(load.operand, axis, tile, (*units, *walked), is_run)


def _stepped(at: Dim, loops: Sequence[Loop]) -> list[Loop] | None:
    """The loops, in order, whose flattened index is `at`; None if `at` is not such an index."""
    form = linear_form(at, [loop.name for loop in loops])
    if form is None or form[0] != 0:
        return None
    stepped = [(loop, stride) for loop, stride in zip(loops, form[1], strict=True) if stride != 0]
    expected: Dim = 1
    for loop, stride in reversed(stepped):
        if stride != expected or not isinstance(loop.extent, int):
            return None
        expected = mul(expected, loop.extent)
    return [loop for loop, _ in stepped]
