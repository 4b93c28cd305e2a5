"""MaxPool, AveragePool and the global poolings."""

from __future__ import annotations

from collections.abc import Callable

from ...build import avg_pool, max_pool
from .node import Node
from .value import Value
from .window import window_attributes


def maximum_pool(node: Node) -> Value:
    node.ignore("storage_order")  # It orders the optional second output, Indices, which is not supported.
    x = node.tensor(0)
    kernel = node.integers("kernel_shape")
    window = window_attributes(node, x, kernel)
    ceil_mode = node.integer("ceil_mode", 0) == 1
    return max_pool(x, kernel, window.strides, window.padding, window.dilations, ceil_mode, rank=len(kernel))


def average_pool(node: Node) -> Value:
    x = node.tensor(0)
    kernel = node.integers("kernel_shape")
    window = window_attributes(node, x, kernel)
    ceil_mode, count_padding = node.integer("ceil_mode", 0) == 1, node.integer("count_include_pad", 0) == 1
    return avg_pool(
        x, kernel, window.strides, window.padding, window.dilations, ceil_mode, count_padding, rank=len(kernel)
    )


def global_average_pool(node: Node) -> Value:
    x = node.tensor(0)
    return x.mean(range(2, x.rank), keepdims=True)


def global_max_pool(node: Node) -> Value:
    x = node.tensor(0)
    return x.max(range(2, x.rank), keepdims=True)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
    "MaxPool": maximum_pool,
}
