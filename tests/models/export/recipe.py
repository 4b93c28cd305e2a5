"""What a file of this folder says of its model, and how its weights and inputs are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is made, and fed.

    `inputs` takes the sizes of the dynamic dims by name and gives the arguments of the model by name, in order. `axes`
    are the dynamic dims of each input: axis -> name of the dim.
    """

    model: Callable[[], nn.Module]
    inputs: Callable[..., dict[str, Tensor]]
    axes: dict[str, dict[int, str]]
    outputs: tuple[str, ...]


def with_drawn_weights(model: nn.Module, seed: int) -> nn.Module:
    """The model for inference, with weights that neither amplify nor weaken, factors near 1 and small offsets."""
    torch.manual_seed(seed)
    for name, weight in model.named_parameters():
        weight.data = _drawn(name, weight.data)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(torch.randn(buffer.shape) / 10)
        elif name.endswith("running_var"):
            buffer.copy_(torch.rand(buffer.shape) + 0.5)
    return model.eval()


def _drawn(name: str, weight: Tensor) -> Tensor:
    if weight.dim() > 1:
        inputs_of_each_output = weight[0].numel()
        return torch.randn(weight.shape) / math.sqrt(inputs_of_each_output)
    if name.endswith("bias"):
        return torch.randn(weight.shape) / 10
    return torch.rand(weight.shape) * 0.7 + 0.5
