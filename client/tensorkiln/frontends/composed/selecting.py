"""The first elements in order of a long axis: in each turn the first of those that are left, by blocks of the axis.

The greatest element of every block is known. A turn finds the block of the first element, and the element in the block;
then only that block has another greatest element. So a turn looks at two roots of the axis's extent, not at all of it.
"""

from __future__ import annotations

from math import isqrt
from typing import Final, NamedTuple

from ... import build
from ...build import Tensor
from ...dtypes import DType

UNROLLED: Final = 16
"""The most turns that are unrolled; of more, a loop repeats `TOGETHER`, since a turn takes a tenth of a second to
compile.
"""
TOGETHER: Final = 8


class _Left(NamedTuple):
    """What is left: the greatest of every block, (…, blocks), whether it has one, and the last element found."""

    greatest: Tensor
    is_left: Tensor
    best: Tensor
    place: Tensor


def first_positions(keys: Tensor, count: int) -> Tensor:
    """The positions of the `count` greatest integers along the last axis, in order: (…, n) to (…, count), int64.

    Of equal ones the first comes first. The extent n is static and less than 2^31, and `count` is at most n.
    """
    builder, (*outer, extent) = keys.builder, keys.shape
    assert isinstance(extent, int), "blocks are of a known number"
    size = 1 << (isqrt(extent) - 1).bit_length()
    blocks = build.pad(keys, [*((0, 0) for _ in outer), (0, -extent % size)], int(keys.dtype.min))
    blocks = blocks.reshape([*outer, -1, size])
    greatest = blocks.max([-1])
    one = [*outer, 1]
    left = _Left(
        greatest,
        build.full(builder, greatest.shape, True, DType.BOOL),
        build.full(builder, one, int(keys.dtype.max), keys.dtype),
        build.full(builder, one, -1, DType.INT32),
    )
    if count <= UNROLLED:
        return _turns(blocks, extent, left, count)[0].cast(DType.INT64)
    turns = -(-count // TOGETHER)

    def goes_on(turn: Tensor, *_: Tensor) -> Tensor:
        return turn < turns

    def some(turn: Tensor, found: Tensor, *given: Tensor) -> list[Tensor]:
        *before, all_blocks = given
        places, after = _turns(all_blocks, extent, _Left(*before), TOGETHER)
        here = build.equal(build.arange(turn.builder, turns, DType.INT32).unsqueeze([-1]), turn)
        return [turn + 1, build.where(here, places.unsqueeze([-2]), found), *after]

    first = build.zeros(builder, (), DType.INT32)
    nothing = build.zeros(builder, [*outer, turns, TOGETHER], DType.INT32)
    _, found, *_ = build.while_loop(goes_on, some, [first, nothing, *left], [blocks], most=turns)
    return found.reshape([*outer, -1])[..., :count].cast(DType.INT64)


def _turns(blocks: Tensor, extent: int, left: _Left, count: int) -> tuple[Tensor, _Left]:
    """The positions of the next elements in order, (…, count), int32, and what is left then.

    If nothing is left, the position is any one.
    """
    builder, (*outer, number, size) = blocks.builder, blocks.shape
    assert isinstance(number, int), "an axis of known extent has a known number of blocks"
    assert isinstance(size, int), "a block has a known number of elements"
    worst = int(blocks.dtype.min)
    numbers, places = (build.arange(builder, dim, DType.INT32) for dim in (number, size))
    found: list[Tensor] = []
    for _ in range(count):
        best = build.where(left.is_left, left.greatest, worst).max([-1], keepdims=True)
        block = build.where(left.is_left & build.equal(left.greatest, best), numbers, number - 1).min(
            [-1], keepdims=True
        )
        row = build.gather(blocks, block.cast(DType.INT64).unsqueeze([-1]).expand([*outer, 1, size]), -2).squeeze([-2])
        at = block * size + places
        # Elements equal to the last one found, up to its place, are taken.
        candidates = build.equal(row, best) & (at < extent) & ((best < left.best) | (at > left.place))
        place = build.where(candidates, at, extent - 1).min([-1], keepdims=True)
        found.append(place)
        after = (at < extent) & ((row < best) | (build.equal(row, best) & (at > place)))
        is_here = build.equal(numbers, block)
        greatest = build.where(after, row, worst).max([-1], keepdims=True)
        left = _Left(
            build.where(is_here, greatest, left.greatest),
            build.where(is_here, after.any([-1], keepdims=True), left.is_left),
            best,
            place,
        )
    return build.cat(found, -1), left
