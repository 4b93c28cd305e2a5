"""The attributes that convolutions and poolings share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...build import Tensor, ceildiv
from ...expr import Dim, maximum
from .node import Node


@dataclass(frozen=True, slots=True)
class WindowAttributes:
    """One entry a spatial axis; `padding` holds (before, after)."""

    strides: list[int]
    dilations: list[int]
    padding: list[tuple[Dim, Dim]]


def window_attributes(node: Node, x: Tensor, kernel: Sequence[int]) -> WindowAttributes:
    """Read `strides`, `dilations`, and `pads` or the padding by `auto_pad`."""
    rank = len(kernel)
    if x.rank != rank + 2 or rank == 0:
        node.invalid(f"a kernel of {rank} axes does not fit an input of rank {x.rank}")
    strides = node.integers("strides", [1] * rank)
    dilations = node.integers("dilations", [1] * rank)
    pads = node.integers("pads", [0] * 2 * rank)
    if not len(strides) == len(dilations) == rank or len(pads) != 2 * rank or min(strides) < 1 or min(dilations) < 1:
        node.fail(f"strides {strides}, dilations {dilations} and pads {pads} do not fit {rank} spatial axes")
    mode = node.choice("auto_pad", ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"), "NOTSET")
    if mode in ("NOTSET", ""):
        explicit: list[tuple[Dim, Dim]] = [(pads[axis], pads[axis + rank]) for axis in range(rank)]
        return WindowAttributes(strides, dilations, explicit)
    if mode == "VALID":
        return WindowAttributes(strides, dilations, [(0, 0)] * rank)
    reaches = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    spatial = zip(x.shape[2:], reaches, strides, strict=True)
    same = [_same(dim, reach, stride, mode == "SAME_UPPER") for dim, reach, stride in spatial]
    return WindowAttributes(strides, dilations, same)


def _same(dim: Dim, reach: int, stride: int, is_upper: bool) -> tuple[Dim, Dim]:
    """The padding for ceil(dim / stride) windows; an odd element goes to the end (UPPER) or to the beginning."""
    total = _positive((ceildiv(dim, stride) - 1) * stride + reach - dim)
    less, more = total // 2, total - total // 2
    return (less, more) if is_upper else (more, less)


def _positive(dim: Dim) -> Dim:
    return max(dim, 0) if isinstance(dim, int) else maximum(dim, 0)
