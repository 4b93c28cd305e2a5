"""GPT-2 for one token more, whose keys and values join those of all earlier ones: it may see them all."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from tests.models.export import gpt
from tests.models.export.recipe import Recipe


def inputs(batch: int, past: int) -> dict[str, Tensor]:
    return gpt.inputs(batch, 1, past)


DIMS, CACHE = {0: "batch"}, {0: "batch", 2: "past"}
RECIPE = Recipe(
    partial(gpt.Gpt, is_causal=False),
    inputs,
    {"ids": DIMS, "positions": DIMS, "past_keys": CACHE, "past_values": CACHE},
    gpt.RECIPE.outputs,
)
