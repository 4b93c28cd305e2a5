"""What a case is: a module, its arguments, and which of their dims are dynamic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


@dataclass(frozen=True, slots=True)
class Case:
    """`calls` are the arguments of each call that is compared, the first of which is exported.

    `dynamic` says of each argument which axes vary, and between which sizes; axes with one name vary together.
    """

    module: nn.Module
    calls: Sequence[tuple[Any, ...]]
    dynamic: tuple[dict[int, tuple[int, int] | tuple[str, int, int]], ...] = ()
    training: bool = False


def of(function: Callable[..., Any], *arguments: Any, more: Sequence[tuple[Any, ...]] = (), **options: Any) -> Case:
    """A case of a function, or of a module."""
    module = function if isinstance(function, nn.Module) else Function(function)
    return Case(module, [arguments, *more], **options)


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers, the same for a seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def whole(*shape: int, low: int = -9, high: int = 10, seed: int = 0, dtype: torch.dtype = torch.int64) -> Tensor:
    """Whole numbers from `low` to below `high`."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(low, high, shape, generator=generator).to(dtype)


EDGES = torch.tensor(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.7,
        -3.7,
        1e-30,
        -1e30,
        float("inf"),
        float("-inf"),
        float("nan"),
    ]
)
"""Floats where operations differ: both zeros, halves, what overflows, infinities and NaN."""
