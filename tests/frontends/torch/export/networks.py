"""Reductions, order, products, convolution, pooling, normalisation, activations, and small modules."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import EDGES, Case, drawn, of, whole

X = drawn(4, 5, 6)
N = whole(4, 5)
IMAGE = drawn(2, 4, 7, 8)
LINE = drawn(2, 4, 9)
VOLUME = drawn(1, 2, 5, 6, 4)
B = {0: (2, 16)}
WITH_NAN = torch.where(X > 2, torch.nan, X)
TIES = whole(3, 8, low=0, high=4).float()

_REDUCED = {
    "sum": lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.sum(-1, dtype=torch.float64)),
    "mean": lambda x: (x.mean(), x.mean(1), x.mean((0, -1), keepdim=True)),
    "var": lambda x: (x.var(), x.var(1), x.var(1, correction=0), x.std(2, keepdim=True), torch.var_mean(x, 1)[1]),
    "extremes": lambda x: (x.amax(1), x.amin((0, 2)), x.max(), x.min(), *x.aminmax(dim=1)),
    "max_dim": lambda x: (*x.max(1), *x.min(-1, keepdim=True)),
    "arg": lambda x: (x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True), x.argmin()),
    "norms": lambda x: (x.norm(), x.norm(dim=1), x.norm(p=1, dim=2), torch.linalg.vector_norm(x, float("inf"), 1)),
    "log_sum_exp": lambda x: (x.logsumexp(1), x.logsumexp((0, 2), keepdim=True)),
    "prod": lambda x: (x.prod(1), x[0].prod()),
    "running": lambda x: (x.cumsum(1), x.cumprod(2), x.cumsum(-1, dtype=torch.float64)),
}
_ACTIVATIONS = {
    **{
        name: getattr(F, name)
        for name in ("relu", "relu6", "elu", "selu", "silu", "mish", "gelu", "hardswish", "softsign")
    },
    **{
        name: getattr(F, name)
        for name in ("hardsigmoid", "hardtanh", "leaky_relu", "logsigmoid", "softplus", "celu", "tanh")
    },
    **{name: getattr(F, name) for name in ("tanhshrink", "hardshrink", "softshrink")},
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "elu_scaled": lambda x: F.elu(x, alpha=0.5),
    "threshold": lambda x: F.threshold(x, 0.5, -3.0),
}
_CONVOLUTIONS: dict[str, tuple[nn.Module, Tensor]] = {
    "conv1d": (nn.Conv1d(4, 6, 3, padding=1), LINE),
    "conv2d": (nn.Conv2d(4, 6, 3), IMAGE),
    "conv2d_strided": (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), bias=False), IMAGE),
    "conv2d_grouped": (nn.Conv2d(4, 8, 3, groups=2), IMAGE),
    "conv2d_depthwise": (nn.Conv2d(4, 4, 3, padding="same", groups=4), IMAGE),
    "conv2d_reflect": (nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"), IMAGE),
    "conv3d": (nn.Conv3d(2, 3, 2, padding=1), VOLUME),
    "transposed1d": (nn.ConvTranspose1d(4, 3, 4, stride=3, padding=1), LINE),
    "transposed2d": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), IMAGE),
    "transposed2d_grouped": (nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2), IMAGE),
    "transposed2d_cut": (nn.ConvTranspose2d(4, 2, 2, padding=2), IMAGE),
}


class Attention(nn.Module):
    """Causal attention with four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.result = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).reshape(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.result(y.transpose(1, 2).reshape(batch, length, width))


class Counter(nn.Module):
    """A module that counts its calls, and remembers a running mean."""

    calls: Tensor
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor) -> dict[str, Any]:
        self.calls += 1
        self.mean.mul_(0.5).add_(x.mean(0))
        return {"centred": x - self.mean, "nested": [self.calls + 0, (x.sum(), None, 7)]}


class Keyed(nn.Module):
    """Nested arguments, of which one is fixed."""

    def forward(self, pair: list[Tensor], scale: float, options: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return pair[0] * scale + options["bias"], pair[1]


class Documented(nn.Module):
    """The layer of the manual."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"probabilities": self.linear(x).softmax(-1)}


class Writer(nn.Module):
    """It writes into its argument, and returns one more thing than it computes."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x.mul_(2)
        total = x.sum()
        return total, total


class Drawing(nn.Module):
    """Random numbers and dropout."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.rand(x.shape), F.dropout(torch.ones_like(x), 0.25, True)


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def _sequence(*modules: nn.Module) -> nn.Module:
    return nn.Sequential(*modules)


def _perceptron() -> nn.Module:
    return _sequence(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 3), nn.Softmax(-1))


CASES: dict[str, Case] = {
    **{f"reduce_{name}": of(function, X) for name, function in _REDUCED.items()},
    **{f"activation_{name}": of(function, drawn(40) * 3) for name, function in _ACTIVATIONS.items()},
    **{name: of(module, x) for name, (module, x) in _CONVOLUTIONS.items()},
    **{
        f"dynamic_{name}": of(
            module,
            x,
            more=[(drawn(3, *x.shape[1:-1], x.shape[-1] + 3),)],
            dynamic=({0: (1, 16), x.dim() - 1: (4, 64)},),
        )
        for name, (module, x) in _CONVOLUTIONS.items()
        if name in ("conv1d", "conv2d", "conv2d_strided", "transposed2d")
    },
    "reduce_nan": of(lambda x: (x.amax(1), *x.max(2), x.argmax(1), x.sum(0)), WITH_NAN),
    "reduce_integers": of(lambda n: (n.sum(), n.sum(1), n.prod(1), n.amax(0), n.float().mean(), n.cumsum(0)), N),
    "reduce_bools": of(lambda x: ((x > 0).sum(1), (x > 0).any(1), (x > 0).all(), (x > 9).any(), x.bool().all(2)), X),
    "sort": of(lambda x: (*x.sort(), *x.sort(0, descending=True), x.argsort(1)), drawn(4, 7)),
    "sort_ties": of(lambda x: (*x.sort(stable=True), *torch.sort(x, stable=True, descending=True)), TIES),
    "sort_edges": of(lambda x: x.sort()[0], EDGES),
    "topk": of(lambda x: (*x.topk(3), *x.topk(2, 0, largest=False)), drawn(4, 7)),
    "running_extremes": of(lambda x: (*x.cummax(1), *x.cummin(0)), drawn(4, 7)),
    "matmul": of(lambda x, y: (x @ y, x[0] @ y, x[0, 0] @ y, x @ y[:, 0]), X, drawn(6, 3)),
    "bmm": of(lambda x, y: (torch.bmm(x, y), torch.baddbmm(x[:, :, :3], x, y, beta=0.5, alpha=2)), X, drawn(4, 6, 3)),
    "addmm": of(
        lambda b, x, y: (torch.addmm(b, x, y), torch.addmm(b, x, y, beta=0.5, alpha=2)),
        drawn(3),
        drawn(4, 6),
        drawn(6, 3),
    ),
    "einsum": of(lambda x, y: (torch.einsum("bij,jk->bik", x, y), torch.einsum("bij,bij->b", x, x)), X, drawn(6, 3)),
    "outer_dot": of(lambda x, y: (torch.outer(x, y), torch.dot(x, x), torch.vdot(x, x)), drawn(4), drawn(5)),
    "cdist": of(lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1.0)), drawn(4, 3), drawn(5, 3)),
    "cosine": of(lambda x, y: (F.cosine_similarity(x, y, 1), F.normalize(x, dim=1)), drawn(4, 6), drawn(4, 6, seed=1)),
    "attention": of(Attention(), drawn(2, 5, 16), more=[(drawn(3, 9, 16),)], dynamic=({0: (1, 8), 1: (2, 32)},)),
    "attention_mask": of(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), drawn(2, 2, 5, 4), drawn(5, 5) > -0.5
    ),
    "attention_grouped": of(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3, enable_gqa=True),
        drawn(2, 4, 5, 8),
        drawn(2, 2, 6, 8),
    ),
    "max_pool2d": of(
        lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True)), IMAGE
    ),
    "max_pool_indices": of(lambda x: F.max_pool2d(x, 3, 2, 1, dilation=1, return_indices=True), IMAGE),
    "max_pool1d_3d": of(lambda x, v: (F.max_pool1d(x, 2), F.max_pool3d(v, 2)), LINE, VOLUME),
    "avg_pool": of(
        lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
        IMAGE,
    ),
    "avg_pool_divisor": of(lambda x: F.avg_pool2d(x, 2, divisor_override=3), IMAGE),
    "avg_pool1d_3d": of(lambda x, v: (F.avg_pool1d(x, 2), F.avg_pool3d(v, 2)), LINE, VOLUME),
    "adaptive_pool": of(
        lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_max_pool2d(x, (3, 5))),
        IMAGE,
    ),
    "lp_pool": of(lambda x: F.lp_pool2d(x.abs(), 2.0, 2), IMAGE),
    "layer_norm": of(nn.LayerNorm((5, 6)), X),
    "layer_norm_plain": of(nn.LayerNorm(6, elementwise_affine=False, eps=1e-3), X),
    "rms_norm": of(nn.RMSNorm(6), X),
    "group_norm": of(nn.GroupNorm(2, 4), IMAGE),
    "instance_norm": of(nn.InstanceNorm2d(4, affine=True), IMAGE),
    "batch_norm": of(nn.BatchNorm2d(4), IMAGE, more=[(drawn(5, 4, 7, 8),)], dynamic=(B,)),
    "batch_norm_training": of(nn.BatchNorm2d(4), IMAGE, more=[(drawn(5, 4, 7, 8),)], dynamic=(B,), training=True),
    "batch_norm_1d_training": of(nn.BatchNorm1d(6, affine=False), drawn(8, 6), training=True),
    "local_response_norm": of(nn.LocalResponseNorm(3), IMAGE),
    "softmax": of(lambda x: (x.softmax(1), x.log_softmax(-1), F.softmin(x, 0), x.softmax(0, dtype=torch.float64)), X),
    "glu_prelu": of(lambda x, w: (F.glu(x, 2), F.prelu(x, w)), X, drawn(5)),
    "losses": of(
        lambda x, n, y: (
            F.cross_entropy(x, n),
            F.mse_loss(x, y),
            F.l1_loss(x, y),
            F.smooth_l1_loss(x, y),
            F.kl_div(x, y.exp()),
        ),
        drawn(4, 5),
        torch.tensor([0, 4, 2, 2]),
        drawn(4, 5, seed=2),
    ),
    "binary_losses": of(
        lambda x, y: (
            F.binary_cross_entropy_with_logits(x, y),
            F.binary_cross_entropy(x.sigmoid(), y),
            F.huber_loss(x, y),
        ),
        drawn(4, 5),
        (drawn(4, 5, seed=2) > 0).float(),
    ),
    "nearest": of(
        lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (5, 11)), F.interpolate(x, scale_factor=1.7)),
        IMAGE,
    ),
    "nearest_exact": of(lambda x: F.interpolate(x, (5, 11), mode="nearest-exact"), IMAGE),
    "bilinear": of(
        lambda x: (
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, (5, 11), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            F.interpolate(x, (4, 5), mode="bilinear", antialias=True),
        ),
        IMAGE,
    ),
    "bicubic": of(
        lambda x: (
            F.interpolate(x, (9, 5), mode="bicubic"),
            F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True),
        ),
        IMAGE,
    ),
    "linear_1d": of(lambda x: F.interpolate(x, 13, mode="linear"), LINE),
    "embedding_bag_like": of(
        nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 2)), whole(5, 3, low=0, high=9)
    ),
    "perceptron": of(_perceptron(), drawn(4, 6), more=[(drawn(9, 6),)], dynamic=(B,)),
    "convolutional": of(
        _sequence(
            nn.Conv2d(4, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        ),
        IMAGE,
    ),
    "encoder_layer": of(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), drawn(2, 5, 8)),
    "lstm_cell": of(nn.LSTMCell(4, 5), drawn(3, 4), (drawn(3, 5), drawn(3, 5, seed=1))),
    "gru_cell": of(nn.GRUCell(4, 5), drawn(3, 4), drawn(3, 5)),
    "documented": of(Documented(), drawn(4, 6), more=[(drawn(9, 6),)], dynamic=({0: (2, 64)},)),
    "writer": of(Writer(), drawn(3, 2)),
    "drawing": of(Drawing(), drawn(40, 25)),
    "tied": of(Tied(), drawn(3, 4)),
    "counter": of(Counter(), drawn(4, 3), more=[(drawn(4, 3, seed=5),)]),
    "keyed": of(Keyed(), [drawn(2, 3), drawn(4)], 2.5, {"bias": drawn(3)}),
}
