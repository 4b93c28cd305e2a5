"""EfficientNet: SiLU, and a sigmoid that gates the squeezed channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.inverted import Inverted, SqueezeExcite, normal
from tests.models.export.recipe import Recipe


def block(inputs: int, hidden: int, outputs: int, kernel: int, stride: int) -> Inverted:
    excite = SqueezeExcite(hidden, inputs // 4, nn.SiLU(), nn.Sigmoid())
    return Inverted(inputs, outputs, kernel, stride, nn.SiLU(), excite)


class EfficientNet(nn.Sequential):
    """A stem, a block with a stride, a block with a residual, the classifier."""

    def __init__(self) -> None:
        super().__init__(
            normal(3, 16, 3, 2),
            nn.SiLU(),
            block(16, 96, 24, 3, 2),
            block(24, 144, 24, 5, 1),
            normal(24, 128),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(128, 10),
        )

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image)


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 30, 33)}


RECIPE = Recipe(EfficientNet, inputs, {"image": {0: "batch"}}, ("logits",))
