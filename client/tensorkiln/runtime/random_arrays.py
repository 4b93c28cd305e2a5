"""Random inputs, to see a program run or how long it takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from .memory import Array


def random_array(dtype: DType, shape: Sequence[int], generator: np.random.Generator) -> Array:
    """Standard normal floats; 0 and 1 for integers and bools, which are also legal indices of most things."""
    if dtype.wide.is_float:
        return generator.standard_normal(tuple(shape)).astype(dtype.numpy)
    return generator.integers(0, 2, tuple(shape)).astype(dtype.numpy)
