"""Attention and the two-layer perceptron behind it, as the encoders of this folder share them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """Attention of tokens (batch, tokens, width) to one another, `mask` added to the scores before the softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.output(mixed.transpose(1, 2).reshape(x.shape))


class Perceptron(nn.Module):
    """A linear layer, an activation, a linear layer back; the exact gelu unless told otherwise."""

    def __init__(self, width: int, hidden: int, activation: Callable[[Tensor], Tensor] = F.gelu) -> None:
        super().__init__()
        self.up, self.down, self.activation = nn.Linear(width, hidden), nn.Linear(hidden, width), activation

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class EncoderBlock(nn.Module):
    """A block that normalizes before each of its two parts (ViT, Whisper)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention, self.perceptron = SelfAttention(width, heads), Perceptron(width, hidden)
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.perceptron(self.before_perceptron(x))
