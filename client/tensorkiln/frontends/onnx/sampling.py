"""GridSample: interpolated values of an image at computed positions."""

from __future__ import annotations

from collections.abc import Callable

from ..composed.sampling import sampled
from .node import Node
from .value import Value


def grid_sample(node: Node) -> Value:
    """Sample images with any number of spatial axes; the last axis of the grid runs over these, innermost first."""
    x, grid = node.tensor(0), node.tensor(1)
    modes = {"linear": "linear", "bilinear": "linear", "nearest": "nearest", "cubic": "cubic", "bicubic": "cubic"}
    mode = modes[node.choice("mode", modes, "linear" if node.opset >= 20 else "bilinear")]
    padding = node.choice("padding_mode", ("zeros", "border", "reflection"), "zeros")
    aligns = node.integer("align_corners", 0) == 1
    return sampled(x, grid, mode, padding, aligns, rounds_first=True, refuse=node.fail)


OPERATORS: dict[str, Callable[[Node], Value]] = {"GridSample": grid_sample}
