"""Reads and writes at computed positions: an index outside is never an error, it reads 0 or writes nothing."""

from __future__ import annotations

import numpy as np

from ..nodes import Gather, Gep, Index, Scatter, Vectorize
from .precision import Array
from .scope import Evaluator, Scope


def evaluate_index(node: Index, scope: Scope) -> Array:
    """`in.ravel()[idx]` where the gate holds and the index is inside, else 0; the shape is that of idx."""
    source = scope.read(node.in_var).ravel()
    index = scope.read(node.idx_var)
    allowed = _inside(index, source.size)
    if node.valid_var is not None:
        allowed = allowed & (scope.read(node.valid_var) != 0)
    result = np.zeros(index.shape, source.dtype)
    result[allowed] = source[index[allowed].astype(np.int64)]
    return result


def evaluate_gather(node: Gather, scope: Scope) -> Array:
    """`take_along_axis` in the corner of src that indices cover; out of range, negative included, gives 0."""
    source, index = scope.read(node.src_var), scope.read(node.indices_var)
    inside = _inside(index, source.shape[node.axis])
    position: list[Array] = [np.indices(index.shape)[axis] for axis in range(index.ndim)]
    position[node.axis] = np.where(inside, index, 0).astype(np.int64)
    result = np.zeros(index.shape, source.dtype)
    result[inside] = source[tuple(axis[inside] for axis in position)]
    return result


def evaluate_scatter(node: Scatter, scope: Scope) -> Array:
    """Zeros of `shape`, then each update in row-major order: the last one to a place wins, one outside is dropped."""
    index, updates = scope.read(node.indices_var), scope.read(node.updates_var)
    result = np.zeros(scope.dims(node.shape), updates.dtype)
    inside = _inside(index, result.shape[node.axis])
    for source in np.ndindex(index.shape):
        if inside[source]:
            place = (*source[: node.axis], int(index[source]), *source[node.axis + 1 :])
            result[place] = updates[source]
    return result


def _inside(index: Array, extent: int) -> Array:
    return (index >= 0) & (index < extent)


def evaluate_gep(node: Gep, scope: Scope) -> Array:
    """Lanes of the last axis; a single index drops the axis."""
    x = scope.read(node.in_var)
    return x[..., node.indices[0]] if len(node.indices) == 1 else x[..., list(node.indices)]


def evaluate_vectorize(node: Vectorize, scope: Scope) -> Array:
    """Stacks on a new last axis."""
    return np.stack([scope.read(var) for var in node.in_vars], axis=-1)


EVALUATORS: dict[type, Evaluator] = {
    Index: evaluate_index,
    Gather: evaluate_gather,
    Scatter: evaluate_scatter,
    Gep: evaluate_gep,
    Vectorize: evaluate_vectorize,
}
