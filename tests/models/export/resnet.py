"""ResNet-18 with an eighth of its channels at most: eight basic blocks in four stages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.inverted import normal
from tests.models.export.recipe import Recipe

CHANNELS, CLASSES = (4, 8, 16, 24), 10


class Basic(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = normal(inputs, outputs, 3, stride), normal(outputs, outputs, 3)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity() if inputs == outputs else normal(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.second(self.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    """7x7 stem, pooling, stages, the mean, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        first, *_, last = CHANNELS
        self.stem = nn.Sequential(normal(3, first, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks: list[Basic] = []
        for inputs, outputs in zip((first, *CHANNELS), CHANNELS, strict=False):
            blocks += [Basic(inputs, outputs, 1 if inputs == outputs else 2), Basic(outputs, outputs, 1)]
        self.stages = nn.Sequential(*blocks)
        self.mean, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(last, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(torch.flatten(self.mean(self.stages(self.stem(image))), 1))


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 40, 56)}


RECIPE = Recipe(ResNet, inputs, {"image": {0: "batch"}}, ("logits",))
