"""All supported operators, by name with overload."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from . import (
    activation,
    bags,
    casting,
    comparison,
    convolution,
    creation,
    drawing,
    elementwise,
    experts,
    factoring,
    fake_quantization,
    fused_layers,
    indexing,
    joining,
    linear,
    matrix_functions,
    movement,
    normalization,
    ordering,
    padding_gradients,
    pooling,
    quantization,
    recurrent,
    reduction,
    resizing,
    resizing_gradients,
    scattering,
    searching,
    slicing,
    special,
    strided,
)
from .call import Call, Operator, Results


def _nothing(call: Call) -> Results:
    """An assertion: on types, the graph guarantees it; on values, it is not checked."""
    del call
    return ()


FAMILIES: Final[Mapping[str, Mapping[str, Operator]]] = MappingProxyType(
    {
        "arithmetic": elementwise.OPERATORS,
        "comparison, logic and choice": comparison.OPERATORS,
        "special functions": special.OPERATORS,
        "activation": activation.OPERATORS,
        "reduction": reduction.OPERATORS,
        "order and running totals": ordering.OPERATORS,
        "places among boundaries": searching.OPERATORS,
        "movement": {**movement.OPERATORS, **padding_gradients.OPERATORS},
        "slices": slicing.OPERATORS,
        "strides": strided.OPERATORS,
        "joining": joining.OPERATORS,
        "indexing": indexing.OPERATORS,
        "bags": bags.OPERATORS,
        "scattering": scattering.OPERATORS,
        "products and attention": linear.OPERATORS,
        "factors and linear systems": {**factoring.OPERATORS, **matrix_functions.OPERATORS},
        "mixtures of experts": experts.OPERATORS,
        "fused layers": fused_layers.OPERATORS,
        "convolution": convolution.OPERATORS,
        "pooling": pooling.OPERATORS,
        "normalisation": normalization.OPERATORS,
        "recurrence": recurrent.OPERATORS,
        "resizing": {**resizing.OPERATORS, **resizing_gradients.OPERATORS},
        "creation": creation.OPERATORS,
        "conversion": casting.OPERATORS,
        "fake quantization": fake_quantization.OPERATORS,
        "quantised numbers": quantization.OPERATORS,
        "random numbers": drawing.OPERATORS,
        "checks": {"aten._assert_async.msg": _nothing, "aten._assert_tensor_metadata.default": _nothing},
    }
)
"""The operator tables of all families, by family name."""
OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType(
    {name: operator for family in FAMILIES.values() for name, operator in family.items()}
)
