"""Elements of less than 8 bits, several to a byte: the layout in which ONNX and DLPack store them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..expr import ceildiv, mul, product
from .bits import bit_or, bitcast, shift_left, shift_right
from .element_type import DTypeLike, element_type
from .movement import expand, reshape, shrink
from .operands import require_tensor
from .padding import pad

if TYPE_CHECKING:
    from .shape import ShapeLike
    from .tensor import Tensor


def _per_byte(x: Tensor, dtype: DType) -> int:
    if not dtype.is_narrow or dtype.bits == 8:
        raise x.builder.error(f"an element of {dtype} fills whole bytes: it needs no packing")
    return 8 // dtype.bits


def unpack(packed: Tensor, dtype: DTypeLike, shape: ShapeLike) -> Tensor:
    """Unpack elements of a `dtype` below 8 bits from bytes, in row-major order, the first in the lowest bits.

    `packed` is uint8, with exactly the bytes that `shape` needs. InvalidGraphError for another dtype or number of
    bytes.
    """
    require_tensor(packed, "unpack")
    builder = packed.builder
    target = element_type(dtype, builder.error)
    count, dims = _per_byte(packed, target), builder.shape(shape)
    length, size = product(dims), ceildiv(product(dims), count)
    if packed.dtype is not DType.UINT8:
        raise builder.error(f"packed elements are bytes of uint8, not {packed.dtype}")
    if product(packed.shape) != size:
        raise builder.error(f"{length} elements of {target} are packed in {size} bytes, not {product(packed.shape)}")
    shifts = builder.constant([target.bits * place for place in range(count)], DType.UINT8)
    both = (size, count)
    codes = shift_right(expand(reshape(packed, (size, 1)), both), expand(reshape(shifts, (1, count)), both))
    flat = shrink(reshape(codes, (mul(size, count),)), [(0, length)])
    return reshape(bitcast(flat, target), dims)


def pack_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pack an array of ml_dtypes' int4, uint4, int2, uint2 or float4_e2m1fn for `unpack`: uint8, on one axis.

    ValueError for an array of anything else.
    """
    dtype = DType.from_numpy(array.dtype)
    if not dtype.is_narrow or dtype.bits == 8:
        raise ValueError(f"an element of {dtype} fills whole bytes: it needs no packing")
    codes = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & np.uint8((1 << dtype.bits) - 1)
    count = 8 // dtype.bits
    rows = np.pad(codes, (0, -codes.size % count)).reshape(-1, count)
    return np.bitwise_or.reduce(rows << (np.arange(count, dtype=np.uint8) * np.uint8(dtype.bits)), axis=1)


def pack(x: Tensor) -> Tensor:
    """Pack a tensor of a dtype below 8 bits for `unpack`: uint8, on one axis.

    Unused bits of the last byte are zero. InvalidGraphError for another dtype.
    """
    require_tensor(x, "pack")
    count, length = _per_byte(x, x.dtype), product(x.shape)
    size = ceildiv(length, count)
    codes = reshape(bitcast(x, DType.UINT8), (length,))
    rows = reshape(pad(codes, [(0, mul(size, count) - length)]), (size, count))
    packed = shrink(rows, [(0, size), (0, 1)])
    for place in range(1, count):
        part = shrink(rows, [(0, size), (place, place + 1)])
        packed = bit_or(packed, shift_left(part, x.dtype.bits * place))
    return reshape(packed, (size,))
