"""The arrays that a case is called with: moderate numbers, so that what is lost in a sum says nothing of its result."""

from __future__ import annotations

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph
from tensorkiln.reference.precision import Array

SPREAD = 0.5
"""The standard deviation of floats: a sum of 256 products stays below 16 or so."""
_MOST = 8


def arrays_for(graph: Graph, symbols: dict[str, int], seed: int) -> tuple[Array, ...]:
    """The inputs in their order: normal floats, integers up to 8 in magnitude, which also are indices, and bools."""
    generator = np.random.default_rng(seed)
    return tuple(_array(generator, graph, var, symbols) for var in graph.input_vars)


def _array(generator: np.random.Generator, graph: Graph, var: int, symbols: dict[str, int]) -> Array:
    kind = graph.types[var]
    shape = tuple(evaluate(dim, symbols) for dim in kind.shape)
    if kind.dtype.is_float:
        return (SPREAD * generator.standard_normal(shape)).astype(kind.dtype.numpy)
    if kind.dtype is DType.BOOL:
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(0 if kind.dtype.is_unsigned else -_MOST, _MOST + 1, shape).astype(kind.dtype.numpy)
