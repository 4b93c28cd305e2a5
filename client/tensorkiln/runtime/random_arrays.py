"""Random inputs, for trying or timing a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from .memory import Array


def random_array(dtype: DType, shape: Sequence[int], generator: np.random.Generator) -> Array:
    """Standard normal floats; 0 and 1 for integers and bools, so that integers are valid indices of most axes."""
    if dtype.wide.is_float:
        return generator.standard_normal(tuple(shape)).astype(dtype.numpy)
    return generator.integers(0, 2, tuple(shape)).astype(dtype.numpy)
