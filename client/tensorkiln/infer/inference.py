"""The result of inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..types import TensorType
from .constraint import Constraint


@dataclass(frozen=True, slots=True)
class Inference:
    """The type of each var, the constraints to check at the call, and the bounds of each symbol."""

    types: Mapping[int, TensorType]
    constraints: tuple[Constraint, ...]
    symbols: Mapping[str, tuple[int, int]]
