"""ModernBERT: rotary positions, a gelu that gates (GeGLU), no biases; positions are an input, as for packed texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.llama import rotated
from tests.models.export.recipe import Recipe

VOCABULARY, WIDTH, HEADS, HIDDEN, CLASSES = 48, 64, 4, 128, 3
HEAD = WIDTH // HEADS


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_perceptron = (nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.parts, self.output = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        parts = self.parts(self.before_attention(x)).view(batch, tokens, 3, HEADS, HEAD)
        query, key, value = parts.transpose(1, 3).unbind(2)
        query, key = rotated(query, cos, sin), rotated(key, cos, sin)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        content, gate = self.up(self.before_perceptron(x)).chunk(2, dim=-1)
        return x + self.down(F.gelu(content) * gate)


class ModernBert(nn.Module):
    """One layer between the normalized embedding and a classifier of each token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.layer, self.classifier = Layer(), nn.Linear(WIDTH, CLASSES)
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, HEAD, 2) / HEAD))

    def forward(self, ids: Tensor, positions: Tensor, attended: Tensor) -> Tensor:
        angles = positions[:, :, None].to(torch.float32) * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        x = self.norm(self.words(ids))
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        return self.classifier(self.last_norm(self.layer(x, mask, angles.cos(), angles.sin())))


def inputs(batch: int, tokens: int) -> dict[str, Tensor]:
    lengths = torch.randint(1, tokens + 1, (batch, 1))
    return {
        "ids": torch.randint(VOCABULARY, (batch, tokens)),
        "positions": torch.arange(tokens).expand(batch, tokens),
        "attended": (torch.arange(tokens) < lengths).to(torch.int64),
    }


DIMS = {0: "batch", 1: "tokens"}
RECIPE = Recipe(ModernBert, inputs, {"ids": DIMS, "positions": DIMS, "attended": DIMS}, ("logits",))
