"""MaxPool, AveragePool and the global poolings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ... import build
from ...build import Tensor, avg_pool, max_pool
from .node import Node
from .unfolding import pooled_with_indices
from .value import Value
from .window import window_attributes


def maximum_pool(node: Node) -> Value | Sequence[Value]:
    if node.is_read(1):
        return pooled_with_indices(node)
    node.ignore("storage_order")  # Only affects the second output, the indices.
    x = node.tensor(0)
    kernel = node.integers("kernel_shape")
    window = window_attributes(node, x, kernel)
    ceil_mode = node.integer("ceil_mode", 0) == 1
    return max_pool(x, kernel, window.strides, window.padding, window.dilations, ceil_mode, rank=len(kernel))


def average_pool(node: Node) -> Value:
    return averages(node, node.tensor(0), node.integer("count_include_pad", 0) == 1)


def averages(node: Node, x: Tensor, count_padding: bool) -> Tensor:
    """The means of the windows of `x` by the node's attributes; `count_padding` says whether padding is an element."""
    kernel = node.integers("kernel_shape")
    window = window_attributes(node, x, kernel)
    ceil_mode = node.integer("ceil_mode", 0) == 1
    return avg_pool(
        x, kernel, window.strides, window.padding, window.dilations, ceil_mode, count_padding, rank=len(kernel)
    )


def lp_pool(node: Node) -> Value:
    """The p-norm of each window; the sum of powers is an average, padding included, times the window size."""
    x, power = node.tensor(0), node.integer("p", 2)
    means = averages(node, build.power(build.absolute(x), power), True)
    return build.power(means * math.prod(node.integers("kernel_shape")), 1 / power)


def global_lp_pool(node: Node) -> Value:
    x, power = node.tensor(0), node.integer("p", 2)
    return build.power(build.power(build.absolute(x), power).sum(range(2, x.rank), keepdims=True), 1 / power)


def global_average_pool(node: Node) -> Value:
    x = node.tensor(0)
    return x.mean(range(2, x.rank), keepdims=True)


def global_max_pool(node: Node) -> Value:
    x = node.tensor(0)
    return x.max(range(2, x.rank), keepdims=True)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_max_pool,
    "LpPool": lp_pool,
    "MaxPool": maximum_pool,
}
