"""MobileNetV3: hard swish, and a hard sigmoid that gates the squeezed channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.inverted import Inverted, SqueezeExcite, normal
from tests.models.export.recipe import Recipe


def block(inputs: int, hidden: int, outputs: int, kernel: int, stride: int) -> Inverted:
    excite = SqueezeExcite(hidden, hidden // 4, nn.ReLU(), nn.Hardsigmoid())
    return Inverted(inputs, outputs, kernel, stride, nn.Hardswish(), excite)


class MobileNet(nn.Sequential):
    """A stem, a block with a stride, a block with a residual, the classifier."""

    def __init__(self) -> None:
        super().__init__(
            normal(3, 16, 3, 2),
            nn.Hardswish(),
            block(16, 64, 24, 5, 2),
            block(24, 72, 24, 3, 1),
            normal(24, 96),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(96, 64),
            nn.Hardswish(),
            nn.Dropout(0.2),
            nn.Linear(64, 10),
        )

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image)


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 33, 28)}


RECIPE = Recipe(MobileNet, inputs, {"image": {0: "batch"}}, ("logits",))
