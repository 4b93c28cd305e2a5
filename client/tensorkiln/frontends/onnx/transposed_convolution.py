"""ConvTranspose: a convolution of the input with zeros between its elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...build import Tensor
from ...expr import Dim
from ..composed.spreading import conv_of_spread, mirrored
from .node import Node
from .value import Value
from .window import WindowAttributes, window_attributes


def transposed_convolution(node: Node) -> Value:
    """The gradient of Conv: each element of the input spreads the kernel over the output."""
    x, weight = node.tensor(0), node.tensor(1)
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    if node.integers("kernel_shape", kernel) != kernel or len(kernel) != weight.rank - 2:
        node.fail(f"kernel_shape does not agree with the weights {weight.shape}")
    window = window_attributes(node, x, kernel)
    extra = node.integers("output_padding", [0] * len(kernel))
    reaches = [(size - 1) * dilation for size, dilation in zip(kernel, window.dilations, strict=True)]
    cut = _cut(node, x, window, reaches, extra)
    padding: list[tuple[Dim, Dim]] = [
        (reach - before, reach - after + more) for reach, (before, after), more in zip(reaches, cut, extra, strict=True)
    ]
    groups = node.integer("group", 1)
    if groups < 1 or len(extra) != len(kernel):
        node.invalid(f"group {groups} and output_padding {extra} do not fit the weights {weight.shape}")
    bias = node.tensor(2) if node.has(2) else None
    return conv_of_spread(x, mirrored(weight, groups), bias, window.strides, padding, window.dilations, groups)


def _cut(
    node: Node, x: Tensor, window: WindowAttributes, reaches: Sequence[int], extra: Sequence[int]
) -> list[tuple[Dim, Dim]]:
    """The elements to cut from both ends of each axis: the pads, or the excess over `output_shape` or a SAME size."""
    mode = node.choice("auto_pad", ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"), "NOTSET")
    dims, strides = x.shape[2:], window.strides
    if node.is_set("output_shape"):
        wanted: Sequence[Dim] = [*node.integers("output_shape")][-len(dims) :]
    elif mode.startswith("SAME"):
        wanted = [dim * stride for dim, stride in zip(dims, strides, strict=True)]
    else:
        return list(window.padding)
    found: list[tuple[Dim, Dim]] = []
    for dim, stride, reach, more, size in zip(dims, strides, reaches, extra, wanted, strict=True):
        total = (dim - 1) * stride + reach + 1 + more - size
        half = total // 2
        if node.is_set("output_shape") and _may_be_negative(node, total, size):
            # The output is larger than the spread input: append zeros, as the reference and ONNX Runtime do.
            found.append((0, total))
        else:
            found.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return found


def _may_be_negative(node: Node, total: Dim, size: Dim) -> bool:
    low, high = node.builder.bounds(total)
    if low < 0 < high:
        node.fail(f"output_shape {size} is smaller than the spread input for some sizes, and larger for others")
    return low < 0


OPERATORS: dict[str, Callable[[Node], Value]] = {"ConvTranspose": transposed_convolution}
