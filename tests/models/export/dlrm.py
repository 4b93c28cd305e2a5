"""DLRM: bags of embeddings that are summed, a perceptron for the numbers, the products of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.export.recipe import Recipe

NUMBERS, ROWS, WIDTH, BAG = 13, (60, 25, 110), 16, 4
FEATURES = 1 + len(ROWS)
PAIRS = FEATURES * (FEATURES - 1) // 2


class Dlrm(nn.Module):
    """The probability of a click, (batch, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, WIDTH) for rows in ROWS)
        self.below = nn.Sequential(nn.Linear(NUMBERS, 64), nn.ReLU(), nn.Linear(64, WIDTH), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(WIDTH + PAIRS, 128), nn.ReLU(), nn.Linear(128, 1), nn.Sigmoid())

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        bags = [table(categories[:, place]).sum(dim=1) for place, table in enumerate(self.tables)]
        below = self.below(numbers)
        features = torch.stack([below, *bags], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(FEATURES, FEATURES, -1)
        return self.above(torch.cat((below, products[:, rows, columns]), dim=1))


def inputs(batch: int) -> dict[str, Tensor]:
    bags = [torch.randint(rows, (batch, BAG)) for rows in ROWS]
    return {"numbers": torch.randn(batch, NUMBERS), "categories": torch.stack(bags, dim=1)}


RECIPE = Recipe(Dlrm, inputs, {"numbers": {0: "batch"}, "categories": {0: "batch"}}, ("probability",))
