"""Reductions, whose axes are an attribute in older opsets and an input in newer ones."""

from __future__ import annotations

from collections.abc import Callable

from ... import build
from ...build import Tensor
from . import axes
from .node import Node
from .value import Value

Operator = Callable[[Node], Value]
Reduction = Callable[[Tensor, "list[int] | None", bool], Tensor]


def _reduction(function: Reduction, axes_input_since: int = 18) -> Operator:
    """A reduction. Without axes it reduces all, or none with `noop_with_empty_axes`."""

    def apply(node: Node) -> Value:
        x = node.tensor(0)
        over = axes.given(node, "axes", axes_input_since, 1)
        if not over:
            over = [] if node.opset >= axes_input_since and node.integer("noop_with_empty_axes", 0) else None
        else:
            node.ignore("noop_with_empty_axes")
        return function(x, over, node.integer("keepdims", 1) == 1)

    return apply


def _log_sum_exp(x: Tensor, over: list[int] | None, keepdims: bool) -> Tensor:
    """log(sum(exp(x))), shifted by the maximum against overflow; an infinite maximum is not subtracted."""
    most = x.max(over, keepdims=True)
    is_finite = build.absolute(most) < float("inf")
    shift = build.where(is_finite, most, 0.0)
    total = (x - shift).exp().sum(over, keepdims=True).log() + shift
    return total if keepdims else total.squeeze(over if over is not None else list(range(x.rank)))


def _extreme(name: str) -> Operator:
    def apply(node: Node) -> Value:
        search = build.argmax if name == "max" else build.argmin
        x, axis, keepdims = node.tensor(0), node.integer("axis", 0), node.integer("keepdims", 1) == 1
        if not node.integer("select_last_index", 0):
            return search(x, axis, keepdims)
        last = build.dim_value(x.builder, x.shape[axis]) - 1
        return last - search(x.flip(axis), axis, keepdims)

    return apply


OPERATORS: dict[str, Operator] = {
    "ArgMax": _extreme("max"),
    "ArgMin": _extreme("min"),
    "ReduceL1": _reduction(lambda x, over, keep: build.absolute(x).sum(over, keep)),
    "ReduceL2": _reduction(lambda x, over, keep: (x * x).sum(over, keep).sqrt()),
    "ReduceLogSum": _reduction(lambda x, over, keep: x.sum(over, keep).log()),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(lambda x, over, keep: x.max(over, keep)),
    "ReduceMean": _reduction(lambda x, over, keep: x.mean(over, keep)),
    "ReduceMin": _reduction(lambda x, over, keep: x.min(over, keep)),
    "ReduceProd": _reduction(lambda x, over, keep: x.prod(over, keep)),
    "ReduceSum": _reduction(lambda x, over, keep: x.sum(over, keep), 13),
    "ReduceSumSquare": _reduction(lambda x, over, keep: (x * x).sum(over, keep)),
}
