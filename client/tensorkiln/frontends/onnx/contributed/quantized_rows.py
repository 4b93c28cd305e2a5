"""Rows of a table of weights of 4 or 8 bits in blocks, each block with its scale and zero point."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ...composed.placing import wrapped
from ..node import Node
from ..quantization import aligned
from ..value import Value

_MIDDLE = {4: 8, 8: 128}


def gathered(node: Node) -> Value:
    """`(data - zero) * scale` at the indices along one axis; blocks lie along another axis."""
    data, scale = node.tensor(0), node.tensor(2)
    indices = node.tensor(1).cast(DType.INT64)
    bits, size = node.integer("bits", 4), node.integer("block_size", 128)
    rank, is_packed = data.rank, data.dtype is DType.UINT8
    along, blocked = node.integer("gather_axis", 0), node.integer("quantize_axis", 1)
    if not -rank <= along < rank or not -rank <= blocked < rank or scale.rank != rank:
        node.invalid(f"the axes {along} and {blocked} are not those of data and scales of rank {rank}")
    along, blocked = along % rank, blocked % rank
    if along == blocked:
        node.fail("blocks along the axis that is gathered are not supported")
    if is_packed and (bits not in _MIDDLE or blocked != rank - 1):
        node.fail("codes in uint8 are of 4 or 8 bits, with blocks along the last axis")
    places = wrapped(indices, data.shape[along])

    def rows(x: Tensor) -> Tensor:
        return build.take(x, places, along)

    axis = blocked + (places.rank - 1 if blocked > along else 0)
    codes = _codes(rows(data), bits) if is_packed else rows(data).cast(DType.INT32)
    scales = aligned(node, rows(scale), codes, axis, size)
    if not node.has(3):
        zero = _MIDDLE[bits] if is_packed else 0
        return (codes - zero).cast(scale.dtype) * scales
    given = node.tensor(3)
    zeros = _codes(rows(given), bits) if is_packed else rows(given).cast(DType.INT32)
    # The last byte of a row may hold one zero point more.
    zeros = build.shrink(zeros, [(0, dim) for dim in rows(scale).shape])
    return (codes - aligned(node, zeros, codes, axis, size)).cast(scale.dtype) * scales


def _codes(packed: Tensor, bits: int) -> Tensor:
    """The codes of bytes, as int32 along the last axis."""
    if bits == 8:
        return packed.cast(DType.INT32)
    return build.unpack(packed, DType.UINT4, [*packed.shape[:-1], packed.shape[-1] * 2]).cast(DType.INT32)


OPERATORS: dict[str, Callable[[Node], Value]] = {"GatherBlockQuantized": gathered}
