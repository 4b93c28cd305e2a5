"""ViT: patches by a strided convolution, a class token, learned positions, encoder blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.attention import EncoderBlock
from tests.models.export.recipe import Recipe

SIDE, PATCH, WIDTH, HEADS, HIDDEN, CLASSES = 24, 4, 64, 4, 256, 10


class Vit(nn.Module):
    """36 patches and a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, 1 + (SIDE // PATCH) ** 2, WIDTH))
        self.block, self.norm, self.head = (
            EncoderBlock(WIDTH, HEADS, HIDDEN),
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, CLASSES),
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.positions
        return self.head(self.norm(self.block(x))[:, 0])


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, SIDE, SIDE)}


RECIPE = Recipe(Vit, inputs, {"image": {0: "batch"}}, ("logits",))
