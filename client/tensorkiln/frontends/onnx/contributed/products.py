"""Products and convolutions with the transposes, factors and activations that the optimiser moves into them."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ..convolution import convolution, convolved
from ..linear import gemm
from ..node import Node
from ..value import Value
from .activations import activated
from .bias import biased


def fused_matmul(node: Node) -> Tensor:
    """`alpha * A' @ B'`. A batch transpose brings the first axis behind the others but the last."""
    left = _turned(node, 0, "transA", "transBatchA")
    right = _turned(node, 1, "transB", "transBatchB")
    alpha = node.number("alpha", 1.0)
    return left @ right if alpha == 1 else left @ right * alpha


def _turned(node: Node, place: int, inner: str, batch: str) -> Tensor:
    x = node.tensor(place)
    is_turned, is_moved = node.integer(inner, 0), node.integer(batch, 0)
    if x.rank < 2:
        return x
    moved = build.moveaxis(x, 0, -2) if is_moved else x
    return moved.transpose(-2, -1) if is_turned else moved


def activated_matmul(node: Node) -> Value:
    """A fused product, then its activation."""
    node.ignore("activation_axis")
    return _activated(node, fused_matmul(node))


def fused_gemm(node: Node) -> Value:
    return _activated(node, gemm(node))


def _activated(node: Node, product: Tensor) -> Tensor:
    """The activation of a fused product, whose parameters are attributes of their own."""
    node.ignore("activation_gamma")
    names = ("activation_alpha", "activation_beta")
    return activated(node, product, [node.number(name) for name in names if node.is_set(name)])


def gelu_gemm(node: Node) -> Value:
    """A product and a bias, then Gelu by tanh."""
    return build.gelu(biased(node, node.tensor(0) @ node.tensor(1), 2), "tanh")


def fused_convolution(node: Node) -> Value:
    """A convolution, plus a tensor of the result's shape, then an activation."""
    total = biased(node, convolution(node), 3)
    return activated(node, total, node.numbers("activation_params", []))


def channels_last_convolution(node: Node) -> Value:
    """A convolution of an image with its channels last, by weights with theirs last."""
    image, weight = (build.moveaxis(node.tensor(place), -1, 1) for place in (0, 1))
    bias = node.tensor(2) if node.has(2) else None
    return build.moveaxis(convolved(node, image, weight, bias), 1, -1)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "FusedConv": fused_convolution,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "FusedMatMulActivation": activated_matmul,
    "GemmFastGelu": gelu_gemm,
    "NhwcConv": channels_last_convolution,
    "TransposeMatMul": fused_matmul,
}
