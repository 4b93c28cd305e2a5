"""Optimizer steps of the domain ai.onnx.preview.training: new weights and states from gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ... import build
from ...build import Tensor
from .node import Node
from .value import Value

DOMAIN: Final = "ai.onnx.preview.training"


def _grouped(node: Node, kinds: int) -> list[list[Tensor]]:
    """Regroup the inputs (all weights, all gradients, all states) to one list per weight."""
    given = node.tensors()[2:]
    if len(given) % kinds:
        node.invalid(f"{len(given)} weights, gradients and states are not {kinds} for each weight")
    count = len(given) // kinds
    return [given[place::count] for place in range(count)]


def _ordered(results: Sequence[Sequence[Tensor]]) -> list[Value]:
    return [value for kind in zip(*results, strict=True) for value in kind]


def _regularized(node: Node, weight: Tensor, gradient: Tensor) -> Tensor:
    return weight * node.number("norm_coefficient", 0.0) + gradient


def adagrad(node: Node) -> list[Value]:
    rate, step = node.tensor(0), node.tensor(1)
    decay, epsilon = node.number("decay_factor", 0.0), node.number("epsilon", 1e-6)

    def one(weight: Tensor, gradient: Tensor, squares: Tensor) -> list[Tensor]:
        slope = _regularized(node, weight, gradient)
        total = squares + slope * slope
        decayed = rate.cast(weight.dtype) / (step.cast(weight.dtype) * decay + 1.0)
        return [weight - decayed * slope / (build.sqrt(total) + epsilon), total]

    return _ordered([one(*group) for group in _grouped(node, 3)])


def adam(node: Node) -> list[Value]:
    """Adam, with the bias of the states corrected from the second step (number 1) on."""
    rate, step = node.tensor(0), node.tensor(1)
    alpha, beta, epsilon = node.number("alpha", 0.9), node.number("beta", 0.999), node.number("epsilon", 1e-6)
    after = node.number("norm_coefficient_post", 0.0)

    def one(weight: Tensor, gradient: Tensor, mean: Tensor, squares: Tensor) -> list[Tensor]:
        slope = _regularized(node, weight, gradient)
        moved = mean * alpha + slope * (1.0 - alpha)
        total = squares * beta + slope * slope * (1.0 - beta)
        own, turn = rate.cast(weight.dtype), step.cast(weight.dtype)
        left = [1.0 - build.power(build.full(node.builder, (), base, weight.dtype), turn) for base in (alpha, beta)]
        corrected = build.where(step > 0, own * build.sqrt(left[1]) / left[0], own)
        new = weight - corrected * (moved / (build.sqrt(total) + epsilon))
        return [new * (1.0 - after), moved, total]

    return _ordered([one(*group) for group in _grouped(node, 4)])


def momentum(node: Node) -> list[Value]:
    """Momentum; the first step (number 0) uses the whole gradient."""
    rate, step = node.tensor(0), node.tensor(1)
    alpha, beta = node.number("alpha"), node.number("beta")
    is_nesterov = node.choice("mode", ("standard", "nesterov")) == "nesterov"

    def one(weight: Tensor, gradient: Tensor, velocity: Tensor) -> list[Tensor]:
        slope = _regularized(node, weight, gradient)
        share = build.where(step > 0, build.full(node.builder, (), beta, weight.dtype), 1.0)
        moved = velocity * alpha + share * slope
        change = slope + moved * alpha if is_nesterov else moved
        return [weight - rate.cast(weight.dtype) * change, moved]

    return _ordered([one(*group) for group in _grouped(node, 3)])


OPERATORS: dict[str, Callable[[Node], Sequence[Value]]] = {"Adagrad": adagrad, "Adam": adam, "Momentum": momentum}
