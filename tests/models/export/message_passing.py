"""A graph of nodes and edges: messages are added at their ends, weighed by attention over each node's edges."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.frontends.torch.export.models import MessagePassing
from tests.models.export.recipe import Recipe

FEATURES = 5


def inputs(nodes: int, edges: int) -> dict[str, Tensor]:
    return {"features": torch.randn(nodes, FEATURES), "ends": torch.randint(nodes, (2, edges))}


RECIPE = Recipe(MessagePassing, inputs, {"features": {0: "nodes"}, "ends": {1: "edges"}}, ("scores",))
