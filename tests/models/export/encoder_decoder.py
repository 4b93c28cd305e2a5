"""As T5: an encoder with padding, a decoder that attends to it, relative positions."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.frontends.torch.export.models import TOKENS, EncoderDecoder
from tests.models.export.recipe import Recipe


def inputs(batch: int, tokens: int, target: int) -> dict[str, Tensor]:
    lengths = torch.arange(batch) % tokens + 1
    return {
        "source": torch.randint(TOKENS, (batch, tokens)),
        "mask": torch.arange(tokens) < lengths[:, None],
        "target": torch.randint(TOKENS, (batch, target)),
    }


_AXES = {0: "batch", 1: "tokens"}
RECIPE = Recipe(
    EncoderDecoder, inputs, {"source": _AXES, "mask": _AXES, "target": {0: "batch", 1: "target"}}, ("logits",)
)
