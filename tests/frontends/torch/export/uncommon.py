"""Views by strides, masks, bags, places between the elements of an image, and pairs of vectors."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .case import Case, drawn, of, whole

X = drawn(4, 6)
IMAGE = drawn(2, 3, 5, 4)
GRID = drawn(2, 4, 3, 2) * 0.9
WORDS = whole(10, low=0, high=7)
STARTS = torch.tensor([0, 3, 3, 8])
FLAGS = X > 0


def sampled(padding: str, aligns: bool) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    modes = ("bilinear", "nearest", "bicubic")
    return lambda x, grid: tuple(F.grid_sample(x, grid, mode, padding, aligns) for mode in modes)


def bags(n: Tensor, starts: Tensor, table: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
    ends = torch.cat([starts, torch.tensor([10])])
    return (
        *(F.embedding_bag(n, table, starts, mode=mode) for mode in ("sum", "mean", "max")),
        F.embedding_bag(n, table, starts, mode="sum", per_sample_weights=scale),
        F.embedding_bag(n, table, ends, mode="mean", include_last_offset=True, padding_idx=2),
        F.embedding_bag(n.reshape(5, 2), table, mode="mean"),
    )


def masked(x: Tensor, flags: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    first, second, third = x.clone(), x.clone(), x.clone()
    first[flags] = 2.5
    second[rows] = y
    third.masked_fill_(flags, 1.0)
    return first, second, third, torch.index_put(x, (flags,), torch.tensor(3.0), accumulate=True)


CASES: dict[str, Case] = {
    "as_strided": of(
        lambda x: (
            x.as_strided((3, 4), (1, 6)),
            x.as_strided((2, 6), (6, 1), 12),
            x.as_strided((5, 3), (4, 2), 1),
            x.as_strided((2, 0), (1, 1)),
            x.as_strided((), (), 7),
            x.reshape(24).as_strided((3, 2, 2), (0, 2, 1)),
        ),
        X,
    ),
    "dynamic_as_strided": of(
        lambda x: x.as_strided((x.shape[0] - 1, 2, 6), (6, 6, 1)), X, more=[(drawn(7, 6),)], dynamic=({0: (3, 16)},)
    ),
    "unfold": of(lambda x: (x.unfold(0, 2, 1), x.unfold(1, 3, 2), x.unfold(1, 6, 9), x[:, 0].unfold(0, 2, 2)), X),
    "dynamic_unfold": of(lambda x: x.unfold(0, 2, 3), X, more=[(drawn(9, 6),)], dynamic=({0: (2, 16)},)),
    **{
        f"grid_{padding}{'_aligned' * aligns}": of(sampled(padding, aligns), IMAGE, GRID * scale)
        for padding, aligns, scale in (
            ("zeros", False, 1.0),
            ("zeros", True, 1.5),
            ("border", False, 2.0),
            ("reflection", False, 3.0),
            ("reflection", True, 3.0),
        )
    },
    "bags": of(bags, WORDS, STARTS, drawn(7, 3), drawn(10)),
    "masked_scatter": of(lambda x, p, y: (x.masked_scatter(p, y), x.masked_scatter(p[0], y)), X, FLAGS, drawn(30)),
    "masked_index_put": of(masked, X, FLAGS, FLAGS[:, 0], drawn(6)),
    "pdist": of(lambda x: (F.pdist(x), F.pdist(x, 1.0), F.pdist(x, float("inf")), F.pdist(x, 3.0)), drawn(5, 3)),
    "adaptive_pool_gradient": of(
        lambda g, h, x: tuple(torch.ops.aten._adaptive_avg_pool2d_backward(each, x) for each in (g, h)),
        drawn(2, 3, 2, 3),
        drawn(2, 3, 5, 1),
        IMAGE,
    ),
}
