"""Transposed convolutions: convolutions of a spread (zero-interleaved) operand with a reversed kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from ...build import Tensor, conv, pad, shrink, stack, zeros
from ...expr import Dim

MOST_PHASES: Final = 16
"""Most phases with a convolution of their own."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """One phase along an axis: the first tap that meets elements, and how far ahead the first of these is."""

    first: int
    ahead: int


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


def between(x: Tensor, axis: int, begin: Dim, end: Dim) -> Tensor:
    """The elements from `begin` to before `end` along an axis."""
    return x[tuple(slice(begin, end) if place == axis else slice(None) for place in range(x.rank))]


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

    Inserted zeros are not multiplied: results of the same phase use the same taps of the kernel, which form a filter of
    their own over `x`; the results of all phases are interleaved. Where each kernel size is a multiple of its step, one
    convolution computes all phases.
    """
    kernel = [dim for dim in weight.shape[2:] if isinstance(dim, int)]
    edges = [(before, after) for before, after in padding if isinstance(before, int) and isinstance(after, int)]
    is_whole = len(kernel) == len(steps) and all(size % step == 0 for size, step in zip(kernel, steps, strict=True))
    is_known = len(edges) == len(steps) and 0 not in x.shape
    is_apart = prod(steps) != 1 and prod(dilation) == 1
    if is_apart and is_known and len(kernel) == len(steps) and not is_whole:
        found = _by_phases(x, weight, kernel, steps, edges, groups)
        if found is not None:
            return found if bias is None else found + bias.reshape([weight.shape[0], *(1,) * len(steps)])
    if not is_apart or not (is_whole and is_known):
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


def _by_phases(
    x: Tensor,
    weight: Tensor,
    kernel: Sequence[int],
    steps: Sequence[int],
    edges: Sequence[tuple[int, int]],
    groups: int,
) -> Tensor | None:
    """A convolution for each phase; None for too many phases, and where none is known to have a result."""
    phases = [[_phase(number, *each) for number in range(each[1])] for each in zip(kernel, steps, edges, strict=True)]
    # Every phase has as many results as the first one, which has the most.
    longest = [before + after + 2 - size for size, (before, after) in zip(kernel, edges, strict=True)]
    extents = [(dim - 1) * step + most for dim, step, most in zip(x.shape[2:], steps, longest, strict=True)]
    if prod(steps) > MOST_PHASES or any(x.builder.bounds(extent)[0] < 1 for extent in extents):
        return None
    batch, outputs = x.shape[0], weight.shape[0]
    counts = [dim - 1 + -(-most // step) for dim, step, most in zip(x.shape[2:], steps, longest, strict=True)]
    made: list[Tensor] = []
    for chosen in product(*phases):
        taps = [len(range(phase.first, size, step)) for phase, size, step in zip(chosen, kernel, steps, strict=True)]
        if 0 in taps:
            made.append(zeros(x.builder, (batch, outputs, *counts), x.dtype))
            continue
        around = [
            (-phase.ahead, -(-most // step) + count - 2 + phase.ahead)
            for phase, most, step, count in zip(chosen, longest, steps, taps, strict=True)
        ]
        if any(min(pair) < 0 and not isinstance(dim, int) for pair, dim in zip(around, x.shape[2:], strict=True)):
            return None
        cut = [slice(phase.first, None, step) for phase, step in zip(chosen, steps, strict=True)]
        part = weight[(slice(None), slice(None), *cut)]
        # Stored contiguously: a contraction does not read every other tap.
        own = x.builder.append("contiguous", weight.dtype, part.shape, in_var=part.var)
        made.append(conv(padded(x, [(0, 0), (0, 0), *around]), own, None, 1, 0, 1, groups))
    rank = len(steps)
    # Along the first axis, each phase is computed in its place.
    apart = stack(made, 0).reshape([*steps, batch, outputs, *counts])
    order = [part for axis in range(rank) for part in (2 + rank + axis, axis)]
    whole = apart.permute([rank, rank + 1, *order]).reshape(
        [batch, outputs, *(count * step for count, step in zip(counts, steps, strict=True))]
    )
    return shrink(whole, [(0, batch), (0, outputs), *((0, extent) for extent in extents)])


def _phase(number: int, size: int, step: int, edges: tuple[int, int]) -> _Phase:
    """The results at `number`, `number + step`, ... along an axis, for a kernel of `size`."""
    before, _ = edges
    first = (before - number) % step
    return _Phase(first, (number + first - before) // step)
