"""MLP-Mixer: one perceptron over the tokens of each channel, and one over the channels of each token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.attention import Perceptron
from tests.models.export.recipe import Recipe

TOKENS, WIDTH, CLASSES = 35, 64, 10


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_tokens, self.before_channels = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.tokens, self.channels = Perceptron(TOKENS, 2 * TOKENS), Perceptron(WIDTH, 4 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.before_tokens(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.before_channels(x))


class Mixer(nn.Module):
    """Patches, a block, the mean of the tokens, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.block = nn.Conv2d(3, WIDTH, 4, 4), Block()
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.block(self.patches(image).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(dim=1))


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 20, 28)}


RECIPE = Recipe(Mixer, inputs, {"image": {0: "batch"}}, ("logits",))
