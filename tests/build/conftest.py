"""Builds a graph around a function of tensors and runs it with the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor
from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate

Compute: TypeAlias = Callable[..., np.ndarray[Any, Any]]


@pytest.fixture
def compute() -> Compute:
    """`compute(f, *arrays, shapes=None)` is f of inputs with these values; a string in `shapes` is a symbol."""

    def run(
        function: Callable[..., Tensor],
        *arrays: np.ndarray[Any, Any],
        shapes: Sequence[Sequence[int | str]] | None = None,
    ) -> np.ndarray[Any, Any]:
        builder = Builder("test")
        stated = [array.shape for array in arrays] if shapes is None else shapes
        symbols: dict[str, int] = {}
        for shape, array in zip(stated, arrays, strict=True):
            symbols |= {dim: size for dim, size in zip(shape, array.shape, strict=True) if isinstance(dim, str)}
        for name, size in symbols.items():
            builder.symbol(name, 1, 4 * size)
        inputs = [
            builder.input(DType.from_numpy(array.dtype), shape) for array, shape in zip(arrays, stated, strict=True)
        ]
        result = function(*inputs)
        builder.output(result)
        (value,) = evaluate(builder.graph(), *arrays, **symbols)
        assert value.dtype == result.dtype.numpy
        return value

    return run


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
