"""The supported operators, by ONNX name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...build import Tensor
from . import (
    contributed,
    control,
    convolution,
    counting,
    deformable,
    determinant,
    drawing,
    elementwise,
    fourier,
    indexing,
    inference,
    linear,
    ml,
    normalization,
    optimizers,
    padding,
    pooling,
    positions,
    quantization,
    recurrent,
    reduction,
    regions,
    reshaping,
    resizing,
    sampling,
    scattering,
    sequences,
    sorting,
    suppression,
    transposed_convolution,
    trigonometry,
    unfolding,
)
from .node import Node
from .value import Absent, Held, Items, Nothing

OPERATORS: Mapping[str, Callable[[Node], Held | Sequence[Held]]] = MappingProxyType(
    {
        **control.OPERATORS,
        **convolution.OPERATORS,
        **counting.OPERATORS,
        **deformable.OPERATORS,
        **determinant.OPERATORS,
        **drawing.OPERATORS,
        **elementwise.OPERATORS,
        **fourier.OPERATORS,
        **indexing.OPERATORS,
        **inference.OPERATORS,
        **linear.OPERATORS,
        **padding.OPERATORS,
        **normalization.OPERATORS,
        **pooling.OPERATORS,
        **positions.OPERATORS,
        **quantization.OPERATORS,
        **recurrent.OPERATORS,
        **reduction.OPERATORS,
        **regions.OPERATORS,
        **reshaping.OPERATORS,
        **resizing.OPERATORS,
        **sampling.OPERATORS,
        **scattering.OPERATORS,
        **sequences.OPERATORS,
        **sorting.OPERATORS,
        **suppression.OPERATORS,
        **transposed_convolution.OPERATORS,
        **trigonometry.OPERATORS,
        **unfolding.OPERATORS,
    }
)

DOMAINS: Mapping[str, Mapping[str, Callable[[Node], Held | Sequence[Held | Absent]]]] = MappingProxyType(
    {
        "": OPERATORS,
        contributed.DOMAIN: contributed.OPERATORS,
        ml.DOMAIN: ml.OPERATORS,
        optimizers.DOMAIN: optimizers.OPERATORS,
    }
)
"""The supported operators of each domain."""


def results_of(node: Node) -> Sequence[Held | Absent]:
    """The outputs of a node with a supported operator, computed by the graph or at import."""
    result = DOMAINS[node.domain][node.op](node)
    return [result] if isinstance(result, Tensor | np.ndarray | Items | Nothing) else result
