"""BERT: an encoder that normalizes behind each part, a padding mask, the exact gelu, a pooled classifier."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.attention import Perceptron
from tests.models.export.recipe import Recipe

VOCABULARY, POSITIONS, WIDTH, HEADS, HIDDEN, CLASSES = 40, 48, 64, 4, 256, 3


class Attention(nn.Module):
    """Attention written out, as the first exports of BERT have it."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        parts = (
            part(x).view(batch, tokens, HEADS, -1).permute(0, 2, 1, 3) for part in (self.query, self.key, self.value)
        )
        query, key, value = parts
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        mixed = (F.softmax(scores, dim=-1) @ value).permute(0, 2, 1, 3).contiguous()
        return self.output(mixed.view(batch, tokens, WIDTH))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.perceptron = Attention(), Perceptron(WIDTH, HIDDEN)
        self.behind_attention, self.behind_perceptron = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.behind_attention(x + self.attention(x, mask))
        return self.behind_perceptron(x + self.perceptron(x))


class Bert(nn.Module):
    """Two layers with the same weights, as in ALBERT: half the file."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.segments = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.register_buffer("position_ids", torch.arange(POSITIONS).unsqueeze(0))
        self.norm, self.layer = nn.LayerNorm(WIDTH, eps=1e-12), Layer()
        self.pooler, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor, segments: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
        positions = self.position_ids[:, : ids.shape[1]]
        x = self.norm(self.words(ids) + self.segments(segments) + self.positions(positions))
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for _ in range(2):
            x = self.layer(x, mask)
        return x, self.classifier(torch.tanh(self.pooler(x[:, 0])))


def inputs(batch: int, tokens: int) -> dict[str, Tensor]:
    lengths = torch.randint(1, tokens + 1, (batch, 1))
    return {
        "ids": torch.randint(VOCABULARY, (batch, tokens)),
        "segments": torch.randint(2, (batch, tokens)),
        "attended": (torch.arange(tokens) < lengths).to(torch.int64),
    }


DIMS = {0: "batch", 1: "tokens"}
RECIPE = Recipe(Bert, inputs, {"ids": DIMS, "segments": DIMS, "attended": DIMS}, ("states", "logits"))
