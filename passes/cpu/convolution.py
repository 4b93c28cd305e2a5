"""Recognise a 3x3 convolution of stride 1 in a contraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passes.loops.body import KernelBody
from passes.loops.contraction import Contraction
from passes.loops.domain import extent_of
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from . import contraction
from .factors import factors_of
from .filtering import DTYPE, TAPS
from .packing import Packed


@dataclass(frozen=True, slots=True)
class Image:
    """The padded image begins at element `first`; elements between rows, between channels or, if it `is_in_blocks`,
    between blocks of channels.
    """

    operand: int
    first: Dim
    row: int
    plane: int
    is_in_blocks: bool


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution whose result is in blocks of `lanes` channels, with maps behind.

    `parts` has the pixels as its two rows; the batch is around them. `steps` are the steps of the depth from a row of
    a filter to the next, from a column to the next, and from a channel to the next.
    """

    body: KernelBody
    parts: Contraction
    image: Image
    filters: Packed
    steps: tuple[int, int, int]
    channels: int

    @property
    def lanes(self) -> int:
        return self.parts.run

    @property
    def height(self) -> int:
        return _known(self.parts.rows[0].extent)

    @property
    def width(self) -> int:
        return _known(self.parts.rows[1].extent)

    @property
    def columns(self) -> int:
        """The filters."""
        return _known(extent_of(self.parts.columns))


def _known(dim: Dim) -> int:
    """A dim of a convolution that was matched."""
    assert isinstance(dim, int), "a convolution that is matched has constant extents"
    return dim


def convolution_of(body: KernelBody) -> Convolution | None:
    """Match a 3x3 convolution of stride 1 by filters in panels, whose result is in blocks, and maps behind it."""
    found = body.once(contraction.find)
    if found is None or found.parts.dtype is not DTYPE or found.parts.rounding is not None or not found.parts.run:
        return None
    body, parts = found.body, found.parts
    parts = replace(parts, batch=(*parts.batch, *parts.rows[:-2]), rows=parts.rows[-2:])
    extents = [each.extent for each in (*parts.rows, *parts.columns, *parts.depth)]
    if len(parts.rows) < 2 or not all(isinstance(each, int) for each in extents):
        return None
    names = [each.name for each in body.stages[0].domain.loops]
    factors, image = factors_of(parts, names, parts.run), _read(parts, names)
    if image is None or factors is None or not isinstance(factors.right, Packed):
        return None
    steps, channels, read = image
    is_read = factors.right.tile % parts.run == 0 and channels % parts.run == 0
    return Convolution(body, parts, read, factors.right, steps, channels) if is_read else None


def _read(parts: Contraction, names: Sequence[str]) -> tuple[tuple[int, int, int], int, Image] | None:
    """The steps of the depth, the channels, and the image; None if windows are not 3x3, or have strides or
    conditions.
    """
    left = parts.left
    strides = dict(zip(names, left.strides, strict=True))
    row, pixel, *around = (strides[each.name] for each in (*parts.rows, *parts.depth))
    extents = [_known(each.extent) for each in parts.depth]
    is_in_blocks = pixel == parts.run
    if left.load.conditions or left.panels or left.load.dtype is not DTYPE or not isinstance(row, int):
        return None
    first = expr.add(left.offset, *(expr.mul(strides[each.name], symbol(each.name)) for each in parts.batch))
    if is_in_blocks and len(around) == 4 and extents == [TAPS, TAPS, extents[2], parts.run]:
        (*taps, plane, step), channels = around, extents[2] * parts.run
        steps = (TAPS * channels, channels, 1)
    elif pixel == 1 and len(around) == 3 and extents[1:] == [TAPS, TAPS]:
        (plane, *taps), step, channels = around, 1, extents[0]
        steps = (TAPS, 1, TAPS * TAPS)
    else:
        return None
    if tuple(taps) != (row, pixel) or step != 1 or not isinstance(plane, int):
        return None
    return steps, channels, Image(left.load.operand, first, row, plane, is_in_blocks)
