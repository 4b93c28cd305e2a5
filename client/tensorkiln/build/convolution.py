"""Convolution (as networks mean it: cross-correlation) over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..expr import Dim, floordiv, mul
from .arithmetic import add
from .contraction import sum_of_products
from .movement import permute, reshape
from .operands import adopt, require_tensor
from .padding import pad
from .shape import text
from .windows import PerAxis, Window, grouped_windows, window, window_counts

if TYPE_CHECKING:
    from .tensor import Tensor

SpatialPadding: TypeAlias = "int | Sequence[int | tuple[Dim, Dim]]"


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: SpatialPadding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """(N, C, *spatial) with weights (O, C / groups, *kernel) and bias (O,) as (N, O, *counts).

    `padding` is zeros on both sides of each spatial axis, or pairs (before, after). Group g of the O outputs sees
    group g of the C channels. Channels and kernel are static; N and the spatial dims may be symbolic.
    """
    require_tensor(x, "conv")
    require_tensor(weight, "conv")
    adopt(weight, x)
    rank = len(x.shape) - 2
    if rank < 1 or len(weight.shape) != len(x.shape):
        raise x.builder.error(f"weights of rank {len(weight.shape)} do not convolve a tensor of rank {len(x.shape)}")
    channels, (outputs, per_group) = x.shape[1], weight.shape[:2]
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    if (
        len(kernel) != rank
        or groups < 1
        or mul(per_group, groups) != channels
        or mul(floordiv(outputs, groups), groups) != outputs
    ):
        raise x.builder.error(
            f"weights of shape {text(weight.shape)} do not convolve {channels} channels in {groups} "
            f"group{'' if groups == 1 else 's'}: they are (outputs, channels / groups, *kernel), with a static kernel"
        )
    padded = pad(x, [(0, 0), (0, 0), *spatial_padding(x, padding, rank)])
    over = window(x, kernel, stride, dilation, rank)
    per_output = floordiv(outputs, groups)
    seen = _pointwise(padded, groups) if _is_pointwise(over) else grouped_windows(padded, over, groups)
    taps = reshape(weight, (1, groups, per_output, *(1,) * rank, per_group, *kernel))
    summed = sum_of_products(seen, taps, range(3 + rank, 4 + 2 * rank))
    result = reshape(summed, (x.shape[0], outputs, *window_counts(padded, over)))
    return result if bias is None else add(result, reshape(bias, (outputs, *(1,) * rank)))


def _is_pointwise(over: Window) -> bool:
    return all(value == 1 for value in (*over.size, *over.stride))


def _pointwise(x: Tensor, groups: int) -> Tensor:
    """The windows of a kernel of size 1: a permutation of the axes, with no address arithmetic to undo."""
    batch, channels, *spatial = x.shape
    per_group: Dim = floordiv(channels, groups)
    split = reshape(x, (batch, groups, 1, per_group, *spatial, *(1 for _ in spatial)))
    moved = [4 + axis for axis in range(len(spatial))]
    return permute(split, [0, 1, 2, *moved, 3, *(4 + len(spatial) + axis for axis in range(len(spatial)))])


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: SpatialPadding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """`conv` of (N, C, H, W) with (O, C / groups, KH, KW)."""
    require_tensor(x, "conv2d")
    require_tensor(weight, "conv2d")
    if len(x.shape) != 4:
        raise x.builder.error(f"conv2d takes a tensor of rank 4, not {len(x.shape)}")
    return conv(x, weight, bias, stride, padding, dilation, groups)


def spatial_padding(x: Tensor, padding: SpatialPadding, rank: int) -> list[tuple[Dim, Dim]]:
    """(before, after) of each spatial axis. InvalidGraphError when their count is wrong."""
    entries = [padding] * rank if isinstance(padding, int) else list(padding)
    if len(entries) != rank:
        raise x.builder.error(f"the padding {padding} does not fit {rank} spatial axes")
    return [(entry, entry) if isinstance(entry, int) else (entry[0], entry[1]) for entry in entries]
