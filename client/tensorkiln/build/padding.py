"""Padding with any value. The node pads with zeros; another value is chosen where a padded mask is false."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..expr import Dim
from .filled import full
from .operands import require_tensor
from .selection import where
from .shape import wire

if TYPE_CHECKING:
    from .tensor import Tensor

Padding = Sequence[tuple[Dim, Dim]]


def pad(x: Tensor, widths: Padding, value: bool | int | float = 0) -> Tensor:
    """`numpy.pad` with a constant: `widths` is (before, after), one pair an axis, none negative."""
    require_tensor(x, "pad")
    if len(widths) != len(x.shape):
        raise x.builder.error(f"{len(widths)} pad widths do not fit a tensor of rank {len(x.shape)}")
    for before, after in widths:
        if x.builder.bounds(before)[1] < 0 or x.builder.bounds(after)[1] < 0:
            raise x.builder.error(f"the pad width ({before}, {after}) is negative; slice the tensor instead")
    if all(pair == (0, 0) for pair in map(tuple, widths)):
        return x
    if value == 0:
        return _zero_padded(x, widths)
    inside = full(x.builder, x.shape, True, "bool")
    return where(_zero_padded(inside, widths), _zero_padded(x, widths), value)


def _zero_padded(x: Tensor, widths: Padding) -> Tensor:
    shape = [before + dim + after for dim, (before, after) in zip(x.shape, widths, strict=True)]
    return x.builder.append("pad", x.dtype, shape, in_var=x.var, pad_width=[wire(pair) for pair in widths])
