"""Small models of kinds that the folder `tests/models` lacks: encoder and decoder, scan, recurrence, graph."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import Case, drawn, of, whole

WIDTH, HEADS, TOKENS = 16, 2, 11


def buckets(queries: Tensor, keys: Tensor, count: int, farthest: int, is_causal: bool) -> Tensor:
    """How far each key is from each query: exactly where it is near, by logarithms up to `farthest`."""
    away = keys[None, :] - queries[:, None]
    first = torch.zeros_like(away)
    if is_causal:
        away = (-away).clamp(min=0)
    else:
        count //= 2
        first, away = (away > 0).long() * count, away.abs()
    near = count // 2
    far = near + (torch.log(away.clamp(min=1).float() / near) / math.log(farthest / near) * (count - near)).long()
    return first + torch.where(away < near, away, far.clamp(max=count - 1))


class Heads(nn.Module):
    """Attention without a scale, with a bias for each distance where `distances` is given."""

    def __init__(self, has_distances: bool, is_causal: bool = False) -> None:
        super().__init__()
        self.query, self.key, self.value, self.result = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.distances = nn.Embedding(8, HEADS) if has_distances else None
        self.is_causal = is_causal

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, value = (
            layer(given).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer, given in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        scores = query @ key.transpose(2, 3)
        if self.distances is not None:
            places = (torch.arange(x.shape[1], device=x.device), torch.arange(memory.shape[1], device=x.device))
            scores = scores + self.distances(buckets(*places, 8, 32, self.is_causal)).permute(2, 0, 1)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        if self.is_causal:
            ahead = torch.ones(x.shape[1], memory.shape[1], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(ahead, torch.finfo(scores.dtype).min)
        return self.result((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))


class EncoderDecoder(nn.Module):
    """As T5 (Raffel 2020): relative positions, a root mean square before each part, a gated perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(TOKENS, WIDTH)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(6))
        self.encoder, self.decoder, self.cross = Heads(True), Heads(True, is_causal=True), Heads(False)
        self.gates = nn.ModuleList(nn.Linear(WIDTH, 4 * WIDTH, bias=False) for _ in range(2))
        self.outs = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH, bias=False) for _ in range(2))

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
        x = self.table(source)
        normed = self.norms[0](x)
        x = x + self.encoder(normed, normed, mask)
        memory = self._fed(x, 0)
        y = self.table(target)
        normed = self.norms[1](y)
        y = y + self.decoder(normed, normed)
        y = y + self.cross(self.norms[2](y), memory, mask)
        return self.norms[5](self._fed(y, 1)) @ self.table.weight.T / math.sqrt(WIDTH)

    def _fed(self, x: Tensor, place: int) -> Tensor:
        gate, up = self.gates[place](self.norms[3 + place](x)).chunk(2, -1)
        return x + self.outs[place](F.gelu(gate, approximate="tanh") * up)


class SelectiveScan(nn.Module):
    """As Mamba (Gu 2023): a causal convolution, then a state whose decay depends on the input, step after step."""

    def __init__(self, state: int = 3) -> None:
        super().__init__()
        self.norm, self.split = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH, padding=3)
        self.chosen, self.step = nn.Linear(WIDTH, 2 * state + 2), nn.Linear(2, WIDTH)
        self.decay, self.skip = nn.Parameter(torch.zeros(WIDTH, state)), nn.Parameter(torch.ones(WIDTH))
        self.result, self.state = nn.Linear(WIDTH, WIDTH), state

    def forward(self, x: Tensor) -> Tensor:
        inner, gate = self.split(self.norm(x)).chunk(2, -1)
        inner = F.silu(self.convolution(inner.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, into, out = self.chosen(inner).split([2, self.state, self.state], -1)
        step = F.softplus(self.step(step))
        kept = torch.exp(step[..., None] * -torch.exp(self.decay))
        added = (step * inner)[..., None] * into[:, :, None, :]
        state, seen = torch.zeros_like(kept[:, 0]), []
        for place in range(x.shape[1]):
            state = kept[:, place] * state + added[:, place]
            seen.append((state * out[:, place, None, :]).sum(-1))
        return x + self.result((torch.stack(seen, 1) + self.skip * inner) * F.silu(gate))


class Recurrence(nn.Module):
    """A tagger: an LSTM in both directions, then a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(TOKENS, 8)
        self.lstm = nn.LSTM(8, 6, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 5, batch_first=True)
        self.tags = nn.Linear(5, 4)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found, (_, cells) = self.lstm(self.table(tokens))
        found, last = self.gru(found)
        return self.tags(found).log_softmax(-1), cells, last


class MessagePassing(nn.Module):
    """A graph of nodes and edges: messages are added at their ends, weighed by attention over each node's edges."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, 8) for width in (5, 8))
        self.scores = nn.ModuleList(nn.Linear(16, 1) for _ in range(2))
        self.result = nn.Linear(8, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        sources, ends = edges.unbind(0)
        for layer, score in zip(self.layers, self.scores, strict=True):
            hidden = layer(nodes)
            weight = F.leaky_relu(score(torch.cat([hidden[sources], hidden[ends]], 1)), 0.2)
            most = torch.full((nodes.shape[0], 1), -1e30).scatter_reduce(0, ends[:, None], weight, "amax")
            weight = torch.exp(weight - most[ends])
            total = torch.zeros(nodes.shape[0], 1).index_add(0, ends, weight)
            message = hidden[sources] * weight / total[ends]
            nodes = F.elu(torch.zeros_like(hidden).index_add(0, ends, message))
        degrees = torch.zeros(nodes.shape[0]).index_add(0, ends, torch.ones(edges.shape[1]))
        return self.result(nodes * torch.log1p(degrees)[:, None]).mean(0)


def _tokens(batch: int, length: int, seed: int = 0) -> Tensor:
    return whole(batch, length, low=0, high=TOKENS, seed=seed)


def _translation(batch: int, source: int, target: int) -> tuple[Tensor, Tensor, Tensor]:
    lengths = torch.arange(batch) % source + 1
    return _tokens(batch, source), torch.arange(source) < lengths[:, None], _tokens(batch, target, 1)


def _graph(nodes: int, edges: int) -> tuple[Tensor, Tensor]:
    return drawn(nodes, 5), whole(2, edges, low=0, high=nodes)


BATCH, LENGTH, TARGET, NODES, EDGES = ("batch", 2, 8), ("tokens", 2, 40), ("target", 2, 40), (2, 64), (2, 128)

CASES: dict[str, Case] = {
    "encoder_decoder": of(
        EncoderDecoder(),
        *_translation(3, 7, 5),
        more=[_translation(2, 13, 22)],
        dynamic=({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH}, {0: BATCH, 1: TARGET}),
    ),
    "selective_scan": of(SelectiveScan(), drawn(3, 6, WIDTH), more=[(drawn(5, 6, WIDTH),)], dynamic=({0: BATCH},)),
    "recurrence": of(Recurrence(), _tokens(3, 4), more=[(_tokens(5, 4),)], dynamic=({0: BATCH},)),
    "message_passing": of(MessagePassing(), *_graph(6, 9), more=[_graph(11, 30)], dynamic=({0: NODES}, {1: EDGES})),
}
