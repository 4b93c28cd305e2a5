"""convolution, with dilation of both operands, negative padding, and feature and batch groups."""

from __future__ import annotations

from typing import Final

import numpy as np

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.expr import floordiv
from tensorkiln.frontends.composed.spreading import conv_of_spread

from .contraction import accumulator
from .movement import padded
from .op import Op
from .table import Translator
from .value import Known, Value


def _convolution(op: Op) -> Value:
    x, weight = op.tensors()
    numbers = stablehlo.ConvDimensionNumbers(op.attribute("dimension_numbers"))
    spatial = list(numbers.input_spatial_dimensions)
    rank = len(spatial)
    result = op.result().dtype
    inside = accumulator(op, x.dtype, weight.dtype, result)
    x = x.permute([numbers.input_batch_dimension, numbers.input_feature_dimension, *spatial]).cast(inside)
    kernel_axes = [numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension]
    weight = weight.permute([*kernel_axes, *numbers.kernel_spatial_dimensions]).cast(inside)
    turned = op.integers("window_reversal", [0] * rank)
    weight = weight.flip([axis + 2 for axis in range(rank) if turned[axis]])
    apart = op.integers("lhs_dilation", [1] * rank)
    edges = op.pairs("padding", rank)
    batches = op.integer("batch_group_count", 1)
    groups = op.integer("feature_group_count", 1)
    if batches > 1:
        x, groups = _by_batches(x, batches), batches
    strides = op.integers("window_strides", [1] * rank)
    dilations = op.integers("rhs_dilation", [1] * rank)
    if rank == 0:
        made = _without_space(x, weight, groups)
    elif all(stride == 1 for stride in strides):
        made = conv_of_spread(x, weight, None, apart, edges, dilations, groups)
    else:
        zero = Known(np.zeros((), inside.numpy), inside)
        x = padded(op, x, [(0, 0), (0, 0), *edges], [0, 0, *(gap - 1 for gap in apart)], zero)
        made = build.conv(x, weight, None, strides, 0, dilations, groups)
    order = [0] * (rank + 2)
    order[numbers.output_batch_dimension], order[numbers.output_feature_dimension] = 0, 1
    for place, axis in enumerate(numbers.output_spatial_dimensions):
        order[axis] = place + 2
    return made.permute(order).cast(result)


def _by_batches(x: Tensor, groups: int) -> Tensor:
    """(G * N, C, …) as (N, G * C, …): each group of output channels reads one group of the batch."""
    batch, channels, *spatial = x.shape
    split = x.reshape([groups, floordiv(batch, groups), channels, *spatial])
    return split.transpose(0, 1).reshape([floordiv(batch, groups), groups * channels, *spatial])


def _without_space(x: Tensor, weight: Tensor, groups: int) -> Tensor:
    return build.conv(x.unsqueeze(2), weight.unsqueeze(2), None, 1, 0, 1, groups).reshape([x.shape[0], weight.shape[0]])


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.convolution": _convolution}
