"""What the gradient of a convolution is made of: elements moved apart, and kernels turned round."""

from __future__ import annotations

from collections.abc import Sequence

from ...build import Tensor, pad


def mirrored(weight: Tensor, groups: int) -> Tensor:
    """(C, O / groups, *kernel) as (O, C / groups, *kernel) with the kernel reversed."""
    channels, per_group, *kernel = weight.shape
    split = weight.flip(range(2, weight.rank)).reshape(groups, channels // groups, per_group, *kernel)
    return split.transpose(1, 2).reshape(per_group * groups, channels // groups, *kernel)


def spread(x: Tensor, axis: int, step: int, fill: bool | int | float = 0) -> Tensor:
    """`x` with `step - 1` elements `fill` between neighbours of one axis."""
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
    """`x` with zeros between neighbours of each axis after the first two."""
    for axis, step in enumerate(steps, start=2):
        x = spread(x, axis, step)
    return x
