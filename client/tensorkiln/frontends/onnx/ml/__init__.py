"""Operators of the domain ai.onnx.ml, which exporters of scikit-learn's estimators use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..node import Node
from ..value import Absent, Value
from . import categories, features, linear, scaling, support_vectors, trees

DOMAIN: Final = "ai.onnx.ml"

OPERATORS: Mapping[str, Callable[[Node], Value | Sequence[Value | Absent]]] = MappingProxyType(
    {
        **categories.OPERATORS,
        **features.OPERATORS,
        **linear.OPERATORS,
        **scaling.OPERATORS,
        **support_vectors.OPERATORS,
        **trees.OPERATORS,
    }
)
"""Operators by ONNX's name."""
