"""Swin: attention in windows of a map, which are shifted in every other block, and patches that are merged."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.attention import Perceptron
from tests.models.export.recipe import Recipe

SIDE, WINDOW, WIDTH, HEADS, HIDDEN, CLASSES = 8, 4, 32, 2, 128, 10
AREA = WINDOW * WINDOW


def windows(x: Tensor) -> Tensor:
    """(batch, side, side, width) as (batch * windows, area, width)."""
    batch, rows, columns, width = x.shape
    x = x.view(batch, rows // WINDOW, WINDOW, columns // WINDOW, WINDOW, width)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, AREA, width)


def whole(x: Tensor) -> Tensor:
    """The map that was cut into windows."""
    across = SIDE // WINDOW
    x = x.view(-1, across, across, WINDOW, WINDOW, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, SIDE, SIDE, x.shape[-1])


def relative_places() -> Tensor:
    """The entry of the table of biases for each pair of places in a window."""
    places = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")).flatten(1)
    apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + WINDOW - 1
    return apart[..., 0] * (2 * WINDOW - 1) + apart[..., 1]


def parts_of_a_shifted_map(shift: int) -> Tensor:
    """0 where two places of a window were in one part of the map before the shift, -100 elsewhere."""
    parts, cuts = torch.zeros(1, SIDE, SIDE, 1), (slice(-WINDOW), slice(-WINDOW, -shift), slice(-shift, None))
    for number, (rows, columns) in enumerate((rows, columns) for rows in cuts for columns in cuts):
        parts[:, rows, columns] = number
    flat = windows(parts).squeeze(-1)
    return (flat[:, None, :] != flat[:, :, None]).float() * -100.0


class Block(nn.Module):
    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift = shift
        self.before_attention, self.before_perceptron = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.table = nn.Parameter(torch.zeros((2 * WINDOW - 1) ** 2, HEADS))
        self.register_buffer("places", relative_places())
        self.register_buffer("mask", parts_of_a_shifted_map(shift) if shift else None)
        self.perceptron = Perceptron(WIDTH, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before_attention(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = whole(self.attention(windows(y)))
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.perceptron(self.before_perceptron(x))

    def attention(self, x: Tensor) -> Tensor:
        count, _, width = x.shape
        query, key, value = self.parts(x).reshape(count, AREA, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        scores = query * (width // HEADS) ** -0.5 @ key.transpose(-2, -1)
        scores = scores + self.table[self.places.view(-1)].view(AREA, AREA, HEADS).permute(2, 0, 1)
        if self.mask is not None:
            scores = scores.view(-1, self.mask.shape[0], HEADS, AREA, AREA) + self.mask[:, None]
            scores = scores.view(-1, HEADS, AREA, AREA)
        return self.output((F.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(count, AREA, width))


class Swin(nn.Module):
    """Patches, a block, a block with shifted windows, merged patches, the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, WIDTH, 4, 4), nn.LayerNorm(WIDTH)
        self.blocks = nn.Sequential(Block(0), Block(WINDOW // 2))
        self.before_merging, self.merging = nn.LayerNorm(4 * WIDTH), nn.Linear(4 * WIDTH, 2 * WIDTH, bias=False)
        self.head = nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(self.norm(self.patches(image).permute(0, 2, 3, 1)))
        x = torch.cat([x[:, i::2, j::2, :] for j in range(2) for i in range(2)], dim=-1)
        return self.head(self.merging(self.before_merging(x)).mean((1, 2)))


def inputs(batch: int) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 4 * SIDE, 4 * SIDE)}


RECIPE = Recipe(Swin, inputs, {"image": {0: "batch"}}, ("logits",))
