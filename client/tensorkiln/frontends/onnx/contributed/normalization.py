"""Normalisations of a sum with its residual, and of groups of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import build
from ....build import Tensor
from ....build.conversion import widened
from ....expr import mul
from ..node import Node
from ..value import Absent, Value
from .bias import biased

UNSAVED = Absent("the mean and the deviation of a normalisation with a residual are not computed")


def _summed(node: Node, bias: int) -> Tensor:
    """The input plus the residual, which may lack the batch, plus the bias at the position `bias`."""
    x = node.tensor(0)
    total = node.shaped(x.shape, x + node.tensor(1))
    return biased(node, total, bias)


def layer_normalization(node: Node) -> Sequence[Value | Absent]:
    eps, total = node.number("epsilon", 1e-12), _summed(node, 4)
    beta = node.tensor(3) if node.has(3) else None
    normal = build.layer_norm(total, -1, node.tensor(2), beta, eps)
    return [node.shaped(total.shape, normal), UNSAVED, UNSAVED, total]


def simplified_layer_normalization(node: Node) -> Sequence[Value | Absent]:
    eps, total = node.number("epsilon", 1e-12), _summed(node, 3)
    normal = build.rms_norm(total, -1, node.tensor(2), eps)
    return [node.shaped(total.shape, normal), UNSAVED, UNSAVED, total]


def group_normalization(node: Node) -> Value:
    return _by_group(node, node.tensor(0))


def residual_group_normalization(node: Node) -> Sequence[Value]:
    x, skip = node.tensor(0), node.tensor(3)
    is_last = node.integer("channels_last", 1)
    if skip.rank == 2:
        skip = skip.reshape(skip.shape[0], *((1, 1, skip.shape[1]) if is_last else (skip.shape[1], 1, 1)))
    total = node.shaped(x.shape, x + skip)
    if node.has(4):
        bias = node.tensor(4)
        total = node.shaped(x.shape, total + (bias if is_last else bias.reshape(-1, 1, 1)))
    return [_by_group(node, total), total]


def _by_group(node: Node, x: Tensor) -> Tensor:
    """Standardise each group of channels of each image, scale each channel, and apply SiLU if asked."""
    groups, eps = node.integer("groups"), node.number("epsilon", 1e-5)
    is_last, activation = node.integer("channels_last", 1), node.integer("activation")
    if x.rank != 4:
        node.invalid(f"an image of rank {x.rank} is not of rank 4")
    if activation not in (0, 1):
        node.fail(f"the activation {activation} is not supported; supported are 0, none, and 1, SiLU")
    wide = widened(x)
    image = wide.permute(0, 3, 1, 2) if is_last else wide
    batch, channels, height, width = image.shape
    if groups < 1 or not isinstance(channels, int) or channels % groups:
        node.invalid(f"{channels} channels are not split into {groups} groups")
    rows = image.reshape(batch, groups, mul(channels // groups, mul(height, width)))
    normal = build.layer_norm(rows, -1, eps=eps).reshape(image.shape)
    gamma, beta = (node.tensor(place).cast(wide.dtype).reshape(-1, 1, 1) for place in (1, 2))
    scaled = node.shaped(image.shape, normal * gamma + beta)
    result = build.silu(scaled) if activation else scaled
    return (result.permute(0, 2, 3, 1) if is_last else result).cast(x.dtype)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "GroupNorm": group_normalization,
    "SkipGroupNorm": residual_group_normalization,
    "SkipLayerNormalization": layer_normalization,
    "SkipSimplifiedLayerNormalization": simplified_layer_normalization,
}
