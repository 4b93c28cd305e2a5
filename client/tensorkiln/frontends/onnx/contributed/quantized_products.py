"""Products of integers, with their sums scaled to floats, or quantised again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....build import Tensor, einsum
from ....dtypes import DType
from ..node import Node
from ..quantization import centred, dynamically_quantized, rounded, single
from ..value import Absent, Value
from .attention import attended
from .bias import biased


def _number(node: Node, place: int) -> Tensor:
    return single(node.tensor(place)).cast(DType.FLOAT32)


def matmul_integer_to_float(node: Node) -> Value:
    total = centred(node, 0, 4, single) @ centred(node, 1, 5, single)
    scaled = total.cast(DType.FLOAT32) * (_number(node, 2) * _number(node, 3))
    return biased(node, scaled.cast(node.tensor(2).dtype), 6)


def dynamic_quantize_matmul(node: Node) -> Value:
    """The left operand is quantised to uint8 by its own least and greatest element, and 0."""
    x = node.tensor(0)
    codes, scale = dynamically_quantized(x.cast(DType.FLOAT32))
    total = codes @ centred(node, 1, 3, single)
    return biased(node, (total.cast(DType.FLOAT32) * (scale * _number(node, 2))).cast(x.dtype), 4)


def quantized_gemm(node: Node) -> Value:
    """`A' @ B' * alpha + C`, C in units of the scales; float32 without a scale of the result."""
    left = "km" if node.integer("transA", 0) else "mk"
    turned = node.integer("transB", 0)
    right = "nk" if turned else "kn"
    by_column = node.tensor(5).rank == 1 and node.tensor(5).shape[0] != 1

    def align(zero: Tensor) -> Tensor:
        return zero.unsqueeze([1]) if turned and by_column else single(zero)

    total = einsum(f"{left},{right}->mn", centred(node, 0, 2, single), centred(node, 3, 5, align))
    total = biased(node, total, 6)
    scale = _number(node, 1) * _number(node, 4) * node.number("alpha", 1.0)
    if not node.has(7):
        return total.cast(DType.FLOAT32) * scale
    zero = node.tensor(8)
    return rounded(total.cast(DType.FLOAT32) * (scale / _number(node, 7)), single(zero), zero.dtype)


def quantized_attention(node: Node) -> Sequence[Value | Absent]:
    """Attention whose projection is a product of integers; scores and values are floats."""
    total = centred(node, 0, 6, single) @ centred(node, 1, 7, single)
    scaled = total.cast(DType.FLOAT32) * (_number(node, 3) * _number(node, 4))
    projected = biased(node, scaled, 2)
    return attended(node, projected, 5, node.tensor(8) if node.has(8) else None, None)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "QAttention": quantized_attention,
    "QGemm": quantized_gemm,
}
