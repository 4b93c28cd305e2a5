"""Transposed convolutions: convolutions of a spread (zero-interleaved) operand with a reversed kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...build import Tensor, conv, pad, shrink
from ...expr import Dim


def mirrored(weight: Tensor, groups: int) -> Tensor:
    """(C, O / groups, *kernel) as (O, C / groups, *kernel) with the kernel reversed."""
    channels, per_group, *kernel = weight.shape
    split = weight.flip(range(2, weight.rank)).reshape(groups, channels // groups, per_group, *kernel)
    return split.transpose(1, 2).reshape(per_group * groups, channels // groups, *kernel)


def spread(x: Tensor, axis: int, step: int, fill: bool | int | float = 0) -> Tensor:
    """Insert `step - 1` elements `fill` between neighbours along one axis."""
    if step == 1:
        return x
    cells = pad(x.unsqueeze(axis + 1), [(0, step - 1 if place == axis + 1 else 0) for place in range(x.rank + 1)], fill)
    dims = list(x.shape)
    dims[axis] = x.shape[axis] * step
    joined = cells.reshape(dims)
    if dims[axis] == 0:
        return joined
    cut = [slice(None)] * x.rank
    cut[axis] = slice(None, dims[axis] - (step - 1))
    return joined[tuple(cut)]


def spread_spatial(x: Tensor, steps: Sequence[int]) -> Tensor:
    """Insert zeros between neighbours along each axis after the first two."""
    for axis, step in enumerate(steps, start=2):
        x = spread(x, axis, step)
    return x


def padded(x: Tensor, widths: Sequence[tuple[Dim, Dim]], fill: bool | int | float = 0) -> Tensor:
    """Pad the edges of `x` with `fill`; a negative width crops."""
    wide = pad(x, [(_at_least_none(before), _at_least_none(after)) for before, after in widths], fill)
    limits = [
        (_at_least_none(before) - before, dim + (after - _at_least_none(after)))
        for dim, (before, after) in zip(wide.shape, widths, strict=True)
    ]
    return shrink(wide, limits)


def _at_least_none(width: Dim) -> Dim:
    return max(width, 0) if isinstance(width, int) else width


def conv_of_spread(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """`conv` of `spread_spatial(x, steps)` with stride 1 and (before, after) zeros around each spatial axis.

    Negative widths crop the spread operand.

    Where each kernel size is a multiple of its step, inserted zeros are not multiplied: results of the same phase use
    the same taps of the kernel, which form a filter of their own over `x`; the results of all phases are interleaved.
    """
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    edges = [(before, after) for before, after in padding if isinstance(before, int) and isinstance(after, int)]
    is_whole = len(kernel) == len(steps) and all(size % step == 0 for size, step in zip(kernel, steps, strict=True))
    is_known = len(edges) == len(steps) and 0 not in x.shape
    if prod(steps) == 1 or prod(dilation) != 1 or not (is_whole and is_known):
        around_it = padded(spread_spatial(x, steps), [(0, 0), (0, 0), *padding])
        return conv(around_it, weight, bias, 1, 0, dilation, groups)
    rank = len(steps)
    taps = [size // step for size, step in zip(kernel, steps, strict=True)]
    outputs, per_group = weight.shape[:2]
    split = [outputs, per_group, *(part for pair in zip(taps, steps, strict=True) for part in pair)]
    phases, places = [3 + 2 * axis for axis in range(rank)], [2 + 2 * axis for axis in range(rank)]
    filters = weight.reshape(split).flip(phases).permute([0, *phases, 1, *places])
    shape = (outputs * prod(steps), per_group, *taps)
    # Stored contiguously: a contraction does not read permuted filters.
    filters = x.builder.append("contiguous", weight.dtype, shape, in_var=filters.reshape(shape).var)
    made = conv(x, filters, None, 1, [(count - 1, count - 1) for count in taps], 1, groups)
    batch, _, *counts = made.shape
    apart = made.reshape([batch, outputs, *steps, *counts])
    order = [part for axis in range(rank) for part in (2 + rank + axis, 2 + axis)]
    whole = apart.permute([0, 1, *order]).reshape(
        [batch, outputs, *(count * step for count, step in zip(counts, steps, strict=True))]
    )
    beyond = [[max(width - size + 1, 0) for width in pair] for pair, size in zip(edges, kernel, strict=True)]
    around = [(before, after) for before, after in beyond]
    wide = pad(whole, [(0, 0), (0, 0), *around])
    cuts: list[tuple[Dim, Dim]] = [(0, batch), (0, outputs)]
    for axis, ((before, after), size, step) in enumerate(zip(edges, kernel, steps, strict=True), start=2):
        first = max(size - 1 - before, 0)
        cuts.append((first, first + (x.shape[axis] - 1) * step + before + after + 2 - size))
    result = shrink(wide, cuts)
    return result if bias is None else result + bias.reshape([outputs, *(1,) * rank])
