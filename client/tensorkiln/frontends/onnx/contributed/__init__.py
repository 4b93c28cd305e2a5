"""Operators of the domain com.microsoft, which ONNX Runtime's optimiser and quantiser write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..node import Node
from ..value import Absent, Value
from . import (
    activations,
    attention,
    embedding,
    grouped_attention,
    normalization,
    packed_weights,
    products,
    quantized,
    quantized_products,
    quantized_recurrence,
    quantized_rows,
    rotary,
)

DOMAIN: Final = "com.microsoft"

OPERATORS: Mapping[str, Callable[[Node], Value | Sequence[Value | Absent]]] = MappingProxyType(
    {
        **activations.OPERATORS,
        **attention.OPERATORS,
        **embedding.OPERATORS,
        **grouped_attention.OPERATORS,
        **normalization.OPERATORS,
        **packed_weights.OPERATORS,
        **products.OPERATORS,
        **quantized.OPERATORS,
        **quantized_products.OPERATORS,
        **quantized_recurrence.OPERATORS,
        **quantized_rows.OPERATORS,
        **rotary.OPERATORS,
    }
)
"""Operators by name."""
