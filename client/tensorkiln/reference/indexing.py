"""Reads and writes at computed positions: an index outside is never an error, it reads 0 or writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..dtypes import DType
from ..nodes import BinopKind, Gather, Gep, Index, Scatter, ScatterKind, Vectorize
from .binop import apply_binop
from .precision import Array, rounded
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
    """Zeros of `shape` or the initial values, then each update in row-major order; one outside is dropped.

    An update replaces the element at its place, or is combined with it by a binop. Sums and products of 16-bit floats
    are accumulated in float32, in the same order, and rounded once.
    """
    dtype = scope.dtype(node.updates_var)
    index, updates, shape = scope.read(node.indices_var), scope.read(node.updates_var), scope.dims(node.shape)
    result = np.zeros(shape, updates.dtype) if node.init_var is None else scope.read(node.init_var).copy()
    is_accumulated = dtype.is_half and node.reduction in (ScatterKind.ADD, ScatterKind.MUL)
    worked = DType.FLOAT32 if is_accumulated else dtype
    inside = _inside(index, shape[node.axis])
    flat = result.reshape(-1).astype(worked.numpy)
    numbers = np.arange(flat.size).reshape(shape)
    places = [np.indices(index.shape)[axis][inside] for axis in range(index.ndim)]
    places[node.axis] = index[inside].astype(np.int64)
    targets, given = numbers[tuple(places)], updates[inside].astype(worked.numpy)
    for chosen in _one_per_target(targets):
        at, update = targets[chosen], given[chosen]
        is_none = node.reduction is ScatterKind.NONE
        flat[at] = update if is_none else apply_binop(BinopKind(node.reduction), flat[at], update, worked)
    return (rounded(flat, dtype) if is_accumulated else flat).reshape(shape)


def _one_per_target(targets: Array) -> Iterator[Array]:
    """The numbers of all updates, in groups: the first update of each target, then the second of each, and so on."""
    order = np.argsort(targets, kind="stable")
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = targets[order[1:]] != targets[order[:-1]]
    begins = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - begins
    in_turns = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    return (order[part] for part in np.split(in_turns, ends[:-1]))


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
