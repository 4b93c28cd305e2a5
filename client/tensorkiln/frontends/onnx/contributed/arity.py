"""How many inputs the operators take that ONNX Runtime has beside ONNX's own, whose schemas the onnx package lacks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_UNBOUNDED: Final = 1 << 16
_OF_ONNX: Final = {"LayerNormalization": (2, 3), "SimplifiedLayerNormalization": (2, 2)}
_CONTRIBUTED: Final = {
    "Attention": (2, 7),
    "BiasAdd": (3, 3),
    "BiasGelu": (2, 2),
    "BiasSplitGelu": (2, 2),
    "DequantizeLinear": (2, 3),
    "DynamicQuantizeLSTM": (12, 12),
    "DynamicQuantizeMatMul": (3, 5),
    "EmbedLayerNormalization": (7, 9),
    "FastGelu": (1, 2),
    "FusedConv": (2, 4),
    "FusedGemm": (2, 3),
    "FusedMatMul": (2, 2),
    "FusedMatMulActivation": (2, 2),
    "GatherBlockQuantized": (3, 4),
    "Gelu": (1, 1),
    "GemmFastGelu": (2, 3),
    "GroupNorm": (3, 3),
    "GroupQueryAttention": (7, 17),
    "MatMulIntegerToFloat": (4, 7),
    "MatMulNBits": (3, 6),
    "MultiHeadAttention": (1, 10),
    "NhwcConv": (2, 3),
    "QAttention": (5, 9),
    "QGemm": (6, 9),
    "QLinearAdd": (7, 8),
    "QLinearAveragePool": (4, 5),
    "QLinearConcat": (5, _UNBOUNDED),
    "QLinearGlobalAveragePool": (5, 5),
    "QLinearLeakyRelu": (4, 5),
    "QLinearMul": (7, 8),
    "QLinearSigmoid": (4, 5),
    "QLinearSoftmax": (5, 5),
    "QLinearWhere": (9, 9),
    "QuantizeLinear": (2, 3),
    "QuickGelu": (1, 1),
    "RotaryEmbedding": (4, 4),
    "SkipGroupNorm": (4, 5),
    "SkipLayerNormalization": (3, 5),
    "SkipSimplifiedLayerNormalization": (3, 4),
    "TransposeMatMul": (2, 2),
}

ARITY: Final[Mapping[tuple[str, str], tuple[int, int]]] = MappingProxyType(
    {("", op): counts for op, counts in _OF_ONNX.items()}
    | {("com.microsoft", op): counts for op, counts in _CONTRIBUTED.items()}
)
"""The least and the most inputs, by domain and operator."""
