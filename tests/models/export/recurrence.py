"""A tagger: an LSTM in both directions, then a GRU."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.frontends.torch.export.models import TOKENS, Recurrence
from tests.models.export.recipe import Recipe

STEPS = 3


def inputs(batch: int) -> dict[str, Tensor]:
    return {"tokens": torch.randint(TOKENS, (batch, STEPS))}


RECIPE = Recipe(Recurrence, inputs, {"tokens": {0: "batch"}}, ("tags", "cells", "last"))
