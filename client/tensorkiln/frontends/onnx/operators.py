"""Every operator that an import knows, by its ONNX name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from . import (
    convolution,
    elementwise,
    indexing,
    inference,
    linear,
    normalization,
    padding,
    pooling,
    reduction,
    reshaping,
    transposed_convolution,
)
from .node import Node
from .value import Value

OPERATORS: Mapping[str, Callable[[Node], Value | Sequence[Value]]] = MappingProxyType(
    {
        **convolution.OPERATORS,
        **elementwise.OPERATORS,
        **indexing.OPERATORS,
        **inference.OPERATORS,
        **linear.OPERATORS,
        **padding.OPERATORS,
        **normalization.OPERATORS,
        **pooling.OPERATORS,
        **reduction.OPERATORS,
        **reshaping.OPERATORS,
        **transposed_convolution.OPERATORS,
    }
)
