"""GPT-2: a decoder that takes the keys and values of earlier tokens and gives those of all tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.attention import Perceptron
from tests.models.export.recipe import Recipe

VOCABULARY, POSITIONS, WIDTH, HEADS, HIDDEN = 48, 80, 64, 4, 256


def gelu_by_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Block(nn.Module):
    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.before_attention, self.before_perceptron = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.perceptron = Perceptron(WIDTH, HIDDEN, gelu_by_tanh)
        lower = torch.tril(torch.ones(1, 1, POSITIONS, POSITIONS, dtype=torch.bool))
        self.register_buffer("lower", lower if is_causal else None)

    def forward(self, x: Tensor, past_keys: Tensor, past_values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        attended, keys, values = self.attention(self.before_attention(x), past_keys, past_values)
        x = x + attended
        return x + self.perceptron(self.before_perceptron(x)), keys, values

    def attention(self, x: Tensor, past_keys: Tensor, past_values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens, _ = x.shape
        split = (part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.parts(x).split(WIDTH, dim=2))
        query, key, value = split
        keys, values = torch.cat((past_keys, key), dim=2), torch.cat((past_values, value), dim=2)
        scores = query @ keys.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        if self.lower is not None:
            known = keys.shape[2]
            seen = self.lower[:, :, known - tokens : known, :known]
            scores = torch.where(seen, scores, torch.finfo(x.dtype).min)
        mixed = F.softmax(scores, dim=-1) @ values
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH)), keys, values


class Gpt(nn.Module):
    """One block; the words' embedding also gives the logits."""

    def __init__(self, is_causal: bool = True) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.block, self.norm = Block(is_causal), nn.LayerNorm(WIDTH)

    def forward(self, ids: Tensor, positions: Tensor, past_keys: Tensor, past_values: Tensor) -> tuple[Tensor, ...]:
        x = self.words(ids) + self.positions(positions)
        x, keys, values = self.block(x, past_keys, past_values)
        return self.norm(x) @ self.words.weight.T, keys, values


def inputs(batch: int, tokens: int, past: int) -> dict[str, Tensor]:
    cache = (batch, HEADS, past, WIDTH // HEADS)
    return {
        "ids": torch.randint(VOCABULARY, (batch, tokens)),
        "positions": torch.arange(past, past + tokens).expand(batch, tokens),
        "past_keys": torch.randn(cache),
        "past_values": torch.randn(cache),
    }


DIMS, CACHE = {0: "batch", 1: "tokens"}, {0: "batch", 2: "past"}
RECIPE = Recipe(
    Gpt,
    inputs,
    {"ids": DIMS, "positions": DIMS, "past_keys": CACHE, "past_values": CACHE},
    ("logits", "keys", "values"),
)
