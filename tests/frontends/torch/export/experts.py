"""Mixtures of experts: histograms, and products of rows in groups."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from .case import Case, drawn, of, whole


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """The operator of the package transformers, which other torch installations lack."""
    result = torch.zeros(input.size(0), weight.size(2), dtype=input.dtype)
    starts = [0, *offs.tolist()]
    for place, (start, end) in enumerate(pairwise(starts)):
        result[start:end] = input[start:end] @ weight[place]
    return result


@torch.library.register_fake("transformers::grouped_mm_fallback")
def _(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    return torch.empty(input.size(0), weight.size(2), dtype=input.dtype)


def product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    return fallback(x, weight, ends)


def counts(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    edges = torch.tensor([-2.0, 2.0, -2.5, 0.0, float("nan"), 1.9999999])
    return (
        torch.histc(x, 7, -1.0, 1.5),
        torch.histc(edges, 4, -2, 2),
        torch.histc(n.float(), bins=5, min=0, max=4).cumsum(0, dtype=torch.int32),
        torch.histc(x.double(), 3, -3, 3),
    )


def grouped(x: Tensor, weight: Tensor, ends: Tensor, batches: Tensor) -> tuple[Tensor, ...]:
    return (torch._grouped_mm(x, weight, ends), torch._grouped_mm(batches, weight))


def routed(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Each token by its two best of four experts."""
    chosen, experts = torch.softmax(x @ gate, -1).topk(2, -1)
    order = experts.flatten().argsort()
    rows = x.repeat_interleave(2, 0)[order]
    ends = torch.histc(experts.flatten().float(), bins=4, min=0, max=3).cumsum(0, dtype=torch.int32)
    hidden = torch.nn.functional.silu(fallback(rows, up, ends))
    results = fallback(hidden, down, ends) * chosen.flatten()[order, None]
    return torch.empty_like(results).index_copy(0, order, results).reshape(-1, 2, x.shape[1]).sum(1)


ROUTED = (drawn(8, 4), drawn(4, 8, 16), drawn(4, 16, 8))
CASES: dict[str, Case] = {
    "histogram": of(counts, drawn(40), whole(30, low=0, high=5)),
    "grouped_product": of(
        grouped,
        drawn(12, 8, dtype=torch.bfloat16),
        drawn(3, 8, 16, dtype=torch.bfloat16),
        torch.tensor([4, 4, 12]).int(),
        drawn(3, 5, 8, dtype=torch.bfloat16),
    ),
    "few_grouped_rows": of(product, drawn(3, 8), drawn(6, 8, 4), torch.tensor([0, 1, 1, 1, 2, 2])),
    "unassigned_rows": of(product, drawn(9, 8), drawn(3, 8, 4), torch.tensor([2, 2, 6])),
    "experts": of(routed, drawn(6, 8), *ROUTED),
    "dynamic_experts": of(
        routed, drawn(6, 8), *ROUTED, more=[(drawn(17, 8), *ROUTED)], dynamic=({0: (2, 32)}, {}, {}, {})
    ),
}
