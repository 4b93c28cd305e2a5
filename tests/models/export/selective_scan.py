"""As Mamba: a causal convolution, then a state whose decay depends on the input, step after step."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.frontends.torch.export.models import WIDTH, SelectiveScan
from tests.models.export.recipe import Recipe

STEPS = 6


def inputs(batch: int) -> dict[str, Tensor]:
    return {"x": torch.randn(batch, STEPS, WIDTH)}


RECIPE = Recipe(SelectiveScan, inputs, {"x": {0: "batch"}}, ("y",))
