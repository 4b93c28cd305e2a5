"""ConvNeXt: a depthwise 7x7 convolution, LayerNorm over channels, a perceptron with the exact gelu, layer scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.attention import Perceptron
from tests.models.export.recipe import Recipe

WIDTH, CLASSES = 64, 10


class NormOfChannels(nn.LayerNorm):
    """LayerNorm over axis 1 of (batch, channels, rows, columns), by its formula."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * ((x - mean) / torch.sqrt(variance + self.eps)) + self.bias[:, None, None]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(WIDTH, WIDTH, 7, padding=3, groups=WIDTH)
        self.norm, self.perceptron = nn.LayerNorm(WIDTH, eps=1e-6), Perceptron(WIDTH, 4 * WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.scale * self.perceptron(self.norm(self.spatial(x).permute(0, 2, 3, 1)))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """A stem of patches, a block, the mean, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, WIDTH, 4, 4), NormOfChannels(WIDTH, eps=1e-6))
        self.block, self.norm, self.head = Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.norm(self.block(self.stem(image)).mean((-2, -1))))


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 28, 36)}


RECIPE = Recipe(ConvNext, inputs, {"image": {0: "batch"}}, ("logits",))
