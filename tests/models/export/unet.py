"""UNet of a diffusion model: GroupNorm and SiLU, an embedded time, strided and transposed convolutions, skips."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.recipe import Recipe

CHANNELS, TIME = (8, 16, 32), 16


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.before_first, self.first = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.before_second, self.second = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(F.silu(self.before_first(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.second(F.silu(self.before_second(y))) + self.shortcut(x)


class UNet(nn.Module):
    """A level below the first, and a middle below that without skips."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c = CHANNELS
        self.register_buffer("frequencies", torch.exp(-math.log(1e4) * torch.arange(TIME // 2) / (TIME // 2)))
        self.time = nn.Linear(TIME, TIME)
        self.enter, self.smaller_a, self.smaller_b = (
            nn.Conv2d(3, a, 3, padding=1),
            nn.Conv2d(a, b, 3, 2, 1),
            nn.Conv2d(b, c, 3, 2, 1),
        )
        self.larger_b, self.larger_a = nn.ConvTranspose2d(c, b, 2, 2), nn.ConvTranspose2d(2 * b, a, 4, 2, 1)
        self.down, self.up = Block(a, a), Block(2 * a, a)
        self.norm, self.leave = nn.GroupNorm(4, a), nn.Conv2d(a, 3, 3, padding=1)

    def forward(self, image: Tensor, step: Tensor) -> Tensor:
        angles = step[:, None].to(torch.float32) * self.frequencies
        time = self.time(torch.cat((angles.sin(), angles.cos()), dim=-1))
        a = self.down(self.enter(image), time)
        b = self.smaller_a(a)
        x = torch.cat((F.silu(self.larger_b(F.silu(self.smaller_b(b)))), b), dim=1)
        x = self.up(torch.cat((self.larger_a(x), a), dim=1), time)
        return self.leave(F.silu(self.norm(x)))


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 16, 20), "step": torch.randint(1000, (batch,))}


RECIPE = Recipe(UNet, inputs, {"image": {0: "batch"}, "step": {0: "batch"}}, ("noise",))
