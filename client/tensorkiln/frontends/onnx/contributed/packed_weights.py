"""Products with weights of 2, 4 or 8 bits in blocks, each block with its scale and zero point."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Value
from .bias import biased

_KINDS = {2: DType.UINT2, 4: DType.UINT4, 8: DType.UINT8}


def _codes(node: Node, packed: Tensor, bits: int, shape: list[int]) -> Tensor:
    """The codes of `shape` in float32, packed in uint8 along the last axis."""
    if packed.dtype is not DType.UINT8:
        node.fail(f"packed weights are uint8, not {packed.dtype}")
    whole = packed.reshape(-1)
    return (whole if bits == 8 else build.unpack(whole, _KINDS[bits], shape)).reshape(shape)


def matmul_bits(node: Node) -> Value:
    """`A @ ((B - zero) * scale).T`. The product is computed in the type of `A`, whatever `accuracy_level` allows."""
    node.ignore("accuracy_level")
    columns, rows = node.integer("N"), node.integer("K")
    bits, size = node.integer("bits", 4), node.integer("block_size")
    if bits not in _KINDS:
        node.fail(f"weights of {bits} bits are not supported; supported are 2, 4 and 8")
    if node.integer("weight_prepacked", 0):
        node.fail("weights in the order of another device (weight_prepacked) are not supported")
    if node.has(4):
        node.fail("the input g_idx is not supported")
    if size < 16 or size & (size - 1):
        node.invalid(f"block_size is {size}, not a power of 2 from 16 on")
    blocks = -(-rows // size)
    x = node.tensor(0)
    codes = _codes(node, node.tensor(1), bits, [columns, blocks, size])
    scale = node.tensor(2).reshape(columns, blocks, 1)
    zero = _zero_points(node, bits, columns, blocks)
    centred = (codes.cast(DType.INT32) - zero) if zero.dtype is DType.INT32 else codes.cast(x.dtype) - zero
    weight = (centred.cast(x.dtype) * scale).reshape(columns, blocks * size)
    if blocks * size != rows:
        weight = build.shrink(weight, [(0, columns), (0, rows)])
    return biased(node, x @ weight.transpose(0, 1), 5)


def _zero_points(node: Node, bits: int, columns: int, blocks: int) -> Tensor:
    """The zero points, (columns, blocks, 1): packed codes or floats; the middle of the codes if there are none."""
    if not node.has(3):
        return node.builder.scalar(1 << (bits - 1), DType.INT32)
    given = node.tensor(3)
    if given.dtype.is_float:
        return given.reshape(columns, blocks, 1)
    # Each row of zero points begins with a new byte.
    padded = -(-blocks * bits // 8) * 8 // bits
    codes = _codes(node, given, bits, [columns, padded])
    return build.shrink(codes, [(0, columns), (0, blocks)]).cast(DType.INT32).unsqueeze([2])


OPERATORS: dict[str, Callable[[Node], Value]] = {"MatMulNBits": matmul_bits}
