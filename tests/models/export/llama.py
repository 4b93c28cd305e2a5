"""Llama: RMSNorm, rotary positions, keys and values shared by pairs of heads, SwiGLU, causal attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.export.recipe import Recipe

VOCABULARY, WIDTH, HEADS, KEY_HEADS, HIDDEN = 48, 64, 4, 2, 172
HEAD = WIDTH // HEADS


class RootMeanSquareNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def repeated(x: Tensor) -> Tensor:
    """Each head of (batch, heads, tokens, size) for all heads of the queries that share it."""
    batch, heads, tokens, size = x.shape
    times = HEADS // heads
    return x[:, :, None].expand(batch, heads, times, tokens, size).reshape(batch, heads * times, tokens, size)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.before_attention, self.before_perceptron = RootMeanSquareNorm(), RootMeanSquareNorm()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        normal = self.before_attention(x)
        query, key, value = (
            part(normal).view(batch, tokens, -1, HEAD).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = rotated(query, cos, sin), rotated(key, cos, sin)
        mixed = F.scaled_dot_product_attention(query, repeated(key), repeated(value), is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        normal = self.before_perceptron(x)
        return x + self.down(F.silu(self.gate(normal)) * self.up(normal))


class Llama(nn.Module):
    """One block between the embedding, which also gives the logits, and a last norm."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.block, self.norm = nn.Embedding(VOCABULARY, WIDTH), Block(), RootMeanSquareNorm()
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, HEAD, 2) / HEAD))

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, :, None].to(torch.float32) * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        x = self.block(self.words(ids), angles.cos(), angles.sin())
        return F.linear(self.norm(x), self.words.weight)


def inputs(batch: int, tokens: int) -> dict[str, Tensor]:
    return {
        "ids": torch.randint(VOCABULARY, (batch, tokens)),
        "positions": torch.arange(tokens).expand(batch, tokens),
    }


DIMS = {0: "batch", 1: "tokens"}
RECIPE = Recipe(Llama, inputs, {"ids": DIMS, "positions": DIMS}, ("logits",))
