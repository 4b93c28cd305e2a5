"""Movement, slices, joining, indexing, scattering and creation."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Case, drawn, of, whole

X = drawn(4, 5, 6)
SQUARE = drawn(5, 5)
N = whole(3, 4, low=0, high=5)
B = {0: (2, 16)}


def _stepped_write(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:, 1:4] = y
    x[0] = 1.0
    x[:, ::2] += 1
    return x


def _masked_write(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[x > 0] = -1.0
    return x


def _indexed_write(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[n] = y
    return x


CASES: dict[str, Case] = {
    "view": of(lambda x: (x.view(20, 6), x.reshape(4, -1), x.flatten(1), x.unflatten(2, (2, 3))), X),
    "permute": of(lambda x: (x.permute(2, 0, 1), x.transpose(0, 2), x.mT, x[0].t()), X),
    "expand": of(lambda x: (x.expand(3, 4, 5), x.expand(-1, 5), x.unsqueeze(0)), drawn(4, 1)),
    "squeeze": of(lambda x: (x.squeeze(), x.squeeze(1), x.squeeze(0), x.squeeze((1, 3))), drawn(3, 1, 4, 1)),
    "flip_roll": of(lambda x: (x.flip(0, 2), x.roll(2, 1), x.roll((1, -2), (0, 2)), x.roll(7), x.rot90(1, (0, 1))), X),
    "repeat": of(lambda x: (x.repeat(2, 3), x.repeat(2, 1, 1), x.tile(2), x.repeat_interleave(2, 1)), drawn(3, 4)),
    "diagonal": of(lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-2), torch.diag(x), torch.diag_embed(x)), SQUARE),
    "triangles": of(lambda x: (x.tril(), x.triu(1), x.tril(-2), x.trace()), SQUARE),
    "pad_constant": of(lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, -1, 0, 2), value=3.5), F.pad(x, (-1, -1))), X),
    "pad_reflect": of(lambda x: (F.pad(x, (2, 1), mode="reflect"), F.pad(x, (3, 2), mode="replicate")), X),
    "pad_circular": of(lambda x: F.pad(x, (2, 1), mode="circular"), X),
    "pad_image": of(
        lambda x: (F.pad(x, (1, 2, 2, 1), mode="reflect"), F.pad(x, (1, 2, 2, 1), mode="replicate")), drawn(1, 2, 4, 5)
    ),
    "slices": of(lambda x: (x[1:3], x[:, ::2], x[..., -2:], x[:, 4:1], x[-3:-1, 1::3], x[:, None, 2]), X),
    "select": of(lambda x: (x[1], x[:, -1], x[..., 2], x[2, 3, 4]), X),
    "split": of(lambda x: (*x.split(2, 1), *x.chunk(3, 2), *x.unbind(0), *x.tensor_split(2, 1)), X),
    "cat_stack": of(
        lambda x, y: (torch.cat([x, y]), torch.cat([x, x, y], -2), torch.stack([x, y], 1)), X, drawn(4, 5, 6, seed=2)
    ),
    "cat_mixed": of(lambda x, n: torch.cat([x, n, x]), drawn(3, 2), whole(2, 2)),
    "cat_empty": of(lambda x, e: torch.cat([e, x]), drawn(3, 2), torch.zeros(0)),
    "slice_write": of(_stepped_write, drawn(3, 6), drawn(3, 3)),
    "masked_write": of(_masked_write, SQUARE),
    "indexed_write": of(_indexed_write, SQUARE, torch.tensor([3, -5]), drawn(2, 5)),
    "index_put_add": of(
        lambda x, n, y: torch.index_put(x, (n,), y, accumulate=True), SQUARE, torch.tensor([1, 1, -1]), drawn(3, 5)
    ),
    "index_put_pair": of(
        lambda x, n, m, y: torch.index_put(x, (n, m), y), SQUARE, torch.tensor([0, 4]), torch.tensor([-1, 2]), drawn(2)
    ),
    "index_one": of(lambda x, n: (x[n], x[:, n], x[..., n]), drawn(5, 5, 5), N),
    "index_pair": of(
        lambda x, n, m: (x[n, m], x[:, n, m], x[n, :, m]), drawn(5, 5, 5), N, torch.tensor([0, -1, 2, -5])
    ),
    "index_list": of(lambda x: (x[:, [0, 2, -1]], x[[1, 1]]), X),
    "index_select": of(lambda x, n: (x.index_select(1, n), torch.index_select(x, -1, n)), X, torch.tensor([4, 0, 0])),
    "gather": of(lambda x, n: (x.gather(1, n), x.gather(0, n)), SQUARE, N),
    "take_along": of(lambda x, n: torch.take_along_dim(x, n, 1), drawn(3, 5), N),
    "scatter": of(lambda x, n, y: x.scatter(1, n, y), SQUARE, torch.tensor([[0, 2], [4, 1], [3, 0]]), drawn(3, 5)),
    "scatter_value": of(lambda x, n: x.scatter(0, n, 2.5), SQUARE, torch.tensor([[0, 2, 1], [4, 1, 3]])),
    "scatter_add": of(lambda x, n, y: x.scatter_add(1, n, y), SQUARE, N, drawn(3, 4)),
    "scatter_reduce": of(
        lambda x, n, y: (x.scatter_reduce(1, n, y, "amax"), x.scatter_reduce(1, n, y, "prod")), SQUARE, N, drawn(3, 4)
    ),
    "index_add": of(lambda x, n, y: x.index_add(1, n, y), SQUARE, torch.tensor([1, 1, 4]), drawn(5, 3)),
    "select_scatter": of(lambda x, y: torch.select_scatter(x, y, 1, -2), SQUARE, drawn(5)),
    "slice_scatter": of(lambda x, y: torch.slice_scatter(x, y, 0, 1, 5, 2), SQUARE, drawn(2, 5)),
    "diagonal_scatter": of(lambda x, y: torch.diagonal_scatter(x, y), SQUARE, drawn(5)),
    "embedding": of(lambda n, w: F.embedding(n, w, padding_idx=1), N, drawn(5, 7)),
    "one_hot": of(lambda n: F.one_hot(n, 5), N),
    "arange": of(
        lambda x: (torch.arange(5), torch.arange(1, 9, 3), torch.arange(0, 1, 0.25), torch.arange(5, 0, -2.0), x), X
    ),
    "filled": of(
        lambda x: (torch.zeros(2), torch.ones_like(x), torch.full((2, 2), 7), x.new_full((3,), 0.5), torch.eye(3, 4)), X
    ),
    "linspace": of(lambda x: (torch.linspace(-1, 2, 7), x), X),
    "meshgrid": of(lambda x, y: torch.meshgrid(x, y, indexing="ij"), drawn(3), drawn(4)),
    "cartesian": of(lambda x: torch.tensor([[1.0, 2.0]]) + x, drawn(3, 2)),
    "pixel_shuffle": of(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), drawn(1, 8, 4, 6)),
    "unfold_fold": of(
        lambda x: (F.unfold(x, 3, padding=1, stride=2), F.fold(F.unfold(x, 2), (6, 6), 2)), drawn(2, 3, 6, 6)
    ),
    "dynamic_view": of(
        lambda x: (x.flatten(), x.reshape(x.shape[0] * 5, 6), x.view(-1, 30)), X, more=[(drawn(7, 5, 6),)], dynamic=(B,)
    ),
    "dynamic_slice": of(
        lambda x: (x[1:], x[: x.shape[0] - 1], x[-1], x[::2], x[-2:]),
        X,
        more=[(drawn(9, 5, 6),)],
        dynamic=({0: (3, 16)},),
    ),
    "dynamic_arange": of(
        lambda x: x + torch.arange(x.shape[0])[:, None], drawn(4, 3), more=[(drawn(11, 3),)], dynamic=(B,)
    ),
    "dynamic_cat": of(
        lambda x, y: torch.cat([x, y]), drawn(4, 3), drawn(5, 3), more=[(drawn(2, 3), drawn(7, 3))], dynamic=(B, B)
    ),
    "dynamic_mask": of(
        lambda x: x.masked_fill(torch.ones(x.shape[0], x.shape[0]).triu(1).bool(), float("-inf")),
        drawn(4, 4),
        dynamic=({},),
    ),
    "dynamic_repeat": of(lambda x: x.repeat(2, x.shape[0]), drawn(4, 3), more=[(drawn(6, 3),)], dynamic=(B,)),
    "dynamic_embedding": of(
        lambda n, w: F.embedding(n, w),
        N,
        drawn(5, 3),
        more=[(whole(6, 4, low=0, high=5), drawn(5, 3))],
        dynamic=(B, {}),
    ),
    "dynamic_pad": of(lambda x: F.pad(x, (0, 1, 2, 0)), drawn(4, 3), more=[(drawn(6, 3),)], dynamic=(B,)),
}
