"""Compare the results of a graph with those of the reference, for inputs from a normal distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorkiln import expr
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate


def normal_arrays(graph: Graph, seed: int, **symbols: int) -> list[np.ndarray]:
    """A float32 array for each input of the graph, at these values of its symbols."""
    rng = np.random.default_rng(seed)
    shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def compare(found: Sequence[np.ndarray], graph: Graph, arrays: Sequence[np.ndarray], **symbols: int) -> None:
    """Require the results of the reference within 1e-4."""
    for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-4)
