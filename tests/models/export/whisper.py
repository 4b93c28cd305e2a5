"""The encoder of Whisper: two convolutions over the frames of a spectrogram, sinusoids, encoder blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.attention import EncoderBlock
from tests.models.export.recipe import Recipe

BANDS, FRAMES, WIDTH, HEADS, HIDDEN = 20, 96, 64, 4, 256


def sinusoids() -> Tensor:
    scales = torch.exp(-math.log(1e4) / (WIDTH // 2 - 1) * torch.arange(WIDTH // 2))
    angles = torch.arange(FRAMES // 2)[:, None] * scales
    return torch.cat((angles.sin(), angles.cos()), dim=1)


class Whisper(nn.Module):
    """(batch, bands, frames) as (batch, half the frames rounded up, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(BANDS, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, 2, 1)
        self.register_buffer("positions", sinusoids())
        self.block, self.norm = EncoderBlock(WIDTH, HEADS, HIDDEN), nn.LayerNorm(WIDTH)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = F.gelu(self.second(F.gelu(self.first(spectrogram)))).permute(0, 2, 1)
        return self.norm(self.block(x + self.positions[: x.shape[1]]))


def inputs(batch: int, frames: int) -> dict[str, Tensor]:
    return {"spectrogram": torch.randn(batch, BANDS, frames)}


RECIPE = Recipe(Whisper, inputs, {"spectrogram": {0: "batch", 2: "frames"}}, ("states",))
