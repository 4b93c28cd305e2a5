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


def fused(norm_first: bool, is_gelu: bool, kind: int | None) -> Callable[..., Tensor]:
    """A layer of an encoder as torch runs it for inference."""

    def layer(x: Tensor, mask: Tensor, *weights: Tensor) -> Tensor:
        attention, norms, perceptron = weights[:4], weights[4:8], weights[8:]
        given = (*attention, is_gelu, norm_first, 1e-4, *norms, *perceptron)
        return torch.ops.aten._transformer_encoder_layer_fwd(x, 8, 2, *given, None if kind is None else mask, kind)

    return layer


def attention(x: Tensor, mask: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    run = torch.ops.aten._native_multi_head_attention
    every = mask[None, None].expand(x.shape[0], 2, *mask.shape)
    return (*run(x, x, x, 8, 2, *weights, mask, True, True, 0), *run(x, x, x, 8, 2, *weights, every, True, False, 2))


def places(edges: Tensor, rows: Tensor, x: Tensor, order: Tensor) -> tuple[Tensor, ...]:
    number = torch.tensor([float("nan"), 1.0, -9.0])
    return (
        *(torch.bucketize(x, edges, right=right) for right in (False, True)),
        *(torch.searchsorted(rows, x, right=right, out_int32=True) for right in (False, True)),
        torch.searchsorted(edges.flip(0), number, sorter=order, side="right"),
        torch.bucketize(1, edges),
    )


def ranked(x: Tensor) -> tuple[Tensor, ...]:
    y = x.clone()
    y[1, 2] = float("nan")
    return (
        *x.median(1),
        *x.median(0, keepdim=True),
        x.median(),
        y.median(),
        *y.median(1),
        *x.kthvalue(2, 0),
        *y.kthvalue(6, 1, keepdim=True),
        x.logcumsumexp(1),
        (x * 200).logcumsumexp(0),
    )


WEIGHTS = (drawn(24, 8), drawn(24), drawn(8, 8), drawn(8))
NORMS = (drawn(8, seed=1), drawn(8, seed=2), drawn(8, seed=3), drawn(8, seed=4))
LAYER = (*WEIGHTS, *NORMS, drawn(12, 8), drawn(12), drawn(8, 12), drawn(8, seed=5))
TOKENS = drawn(3, 5, 8)
AHEAD = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDED = torch.arange(5) >= torch.tensor([[5], [2], [3]])
LONGER = torch.arange(7) >= torch.tensor([[7], [4]])


def fake_quantized(x: Tensor, scale: Tensor, zero: Tensor, scales: Tensor, zeros: Tensor) -> tuple[Tensor, ...]:
    masked = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask
    return (
        *masked(x, 0.13, 3, -128, 127),
        torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255),
        torch.fake_quantize_per_channel_affine(x, scales, zeros, 1, -8, 7),
        torch.fake_quantize_per_channel_affine(x, scale.expand(4), zero.expand(4), 0, -128, 127),
        torch.fake_quantize_per_tensor_affine(x.half(), 0.5, 0, -128, 127),
    )


CASES: dict[str, Case] = {
    "fake_quantized": of(
        fake_quantized,
        torch.cat([X * 20, torch.tensor([[1e4, -1e4, -0.0, 1e10, -1e10, 0.065]])])[1:],
        torch.tensor(0.3),
        torch.tensor(7, dtype=torch.int32),
        drawn(6).abs() + 0.01,
        torch.arange(6, dtype=torch.int32) - 3,
    ),
    "encoder_layer": of(fused(False, False, None), TOKENS, AHEAD, *LAYER),
    "encoder_layer_causal": of(fused(True, True, 0), TOKENS, AHEAD, *LAYER),
    "encoder_layer_padded": of(
        fused(False, True, 1),
        TOKENS,
        # As modules give it: -inf is what is left out.
        PADDED.float() * -1e9,
        *LAYER,
        more=[(drawn(2, 7, 8), LONGER.float() * -1e9, *LAYER)],
        dynamic=({0: ("n", 2, 8), 1: ("m", 2, 16)}, {0: ("n", 2, 8), 1: ("m", 2, 16)}, *({},) * len(LAYER)),
    ),
    "dynamic_upsample": of(
        lambda x: (
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, scale_factor=4, mode="nearest-exact"),
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, size=(2 * x.shape[2], 7), mode="bicubic"),
        ),
        IMAGE,
        more=[(drawn(2, 3, 7, 4),)],
        dynamic=({2: (2, 16)},),
    ),
    "fused_attention": of(attention, TOKENS, AHEAD, *WEIGHTS),
    "places": of(
        places,
        torch.tensor([-1.0, 0.0, 0.0, 1.5]),
        X.sort(1).values,
        X,
        torch.tensor([3, 2, 1, 0]),
    ),
    "ranked": of(ranked, X),
    "dynamic_median": of(lambda x: (*x.median(0), x.median()), X, more=[(drawn(5, 6),)], dynamic=({0: (2, 16)},)),
    "dynamic_places": of(
        lambda edges, x: torch.bucketize(x, edges),
        torch.tensor([-1, 0, 4]),
        whole(6),
        more=[(torch.tensor([-3, 1]), whole(3))],
        dynamic=({0: (2, 8)}, {0: (2, 16)}),
    ),
    "places_among_integers": of(
        lambda edges, x, wide: (
            torch.bucketize(x, edges),
            torch.searchsorted(edges, x, right=True),
            torch.bucketize(2.5, edges),
            torch.searchsorted(edges.to(torch.int32), wide),
        ),
        torch.tensor([1, 2, 3]),
        torch.tensor([0.5, 1.0, 2.5, 3.5]),
        torch.tensor([2, 1 << 40]),
    ),
    "as_strided_scatter": of(
        lambda x, y: (x.as_strided_scatter(y, (3, 2), (6, 2), 1), x.clone().fill_diagonal_(2.0)), X, drawn(3, 2)
    ),
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
