"""Functions of tinygrad's and what they are called with: the corpus of this importer's tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
_SEED: Final = 20261126


def tinygrad(name: str = "tinygrad") -> Any:
    """A module of tinygrad's, which is imported when a function runs."""
    return import_module(name)


@dataclass(frozen=True, slots=True)
class Recipe:
    """`function` takes tensors of `arrays`, and gives one or several."""

    function: Callable[..., Any]
    arrays: tuple[Array, ...]


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    """The same for the same shape and bounds."""
    generator = np.random.default_rng([_SEED, *shape])
    return (generator.random(shape) * (high - low) + low).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 9, dtype: str = "int32") -> Array:
    """Integers within [low, high)."""
    return np.random.default_rng([_SEED, *shape]).integers(low, high, shape).astype(dtype)


def truths(*shape: int) -> Array:
    """Truth values, both about as often."""
    return floats(*shape) > 0
