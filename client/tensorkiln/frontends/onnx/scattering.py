"""Scatter, GatherND, and selection of elements by flags."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import product
from ..composed.placing import REDUCTIONS, flat_indices, put, wrapped
from . import dimensions
from .node import Node
from .value import Value


def _reduction(node: Node) -> str:
    return node.choice("reduction", REDUCTIONS, "none") if node.opset >= 16 else "none"


def scatter_elements(node: Node) -> Value:
    x, updates = node.tensor(0), node.tensor(2)
    axis = node.integer("axis", 0) % max(x.rank, 1)
    indices = wrapped(node.tensor(1).cast(DType.INT64), x.shape[axis])
    return put(x, indices, updates, axis, _reduction(node))


def scatter_nd(node: Node) -> Value:
    x, indices, updates = node.tensor(0), node.tensor(1), node.tensor(2)
    depth = _depth(node, indices, x.rank)
    head, rest = x.shape[:depth], x.shape[depth:]
    flat = x.reshape([product(head), product(rest)])
    count = product(indices.shape[:-1])
    places = flat_indices(indices, head).reshape([count, 1]).expand([count, product(rest)])
    combined = put(flat, places, updates.reshape([count, product(rest)]), 0, _reduction(node))
    return combined.reshape(x.shape)


def gather_nd(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    shared = node.integer("batch_dims", 0) if node.opset >= 12 else 0
    depth = _depth(node, indices, x.rank - shared)
    batch, head, rest = x.shape[:shared], x.shape[shared : shared + depth], x.shape[shared + depth :]
    flat = x.reshape([product(batch), product(head), product(rest)])
    outer = indices.shape[shared:-1]
    places = flat_indices(indices, head).reshape([product(batch), product(outer), 1])
    found = build.gather(flat, places.expand([product(batch), product(outer), product(rest)]), 1)
    return found.reshape([*batch, *outer, *rest])


def _depth(node: Node, indices: Tensor, rank: int) -> int:
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        node.fail(f"the length of index tuples is {depth}, which is not known")
    return depth if depth <= rank else node.invalid(f"tuples of {depth} indices do not fit an operand of rank {rank}")


def tensor_scatter(node: Node) -> Value:
    """Write each sequence of a batch to its cache, starting at its own position; `circular` wraps around."""
    cache, update = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", -2) % cache.rank
    is_circular = node.choice("mode", ("linear", "circular"), "linear") == "circular"
    steps = build.arange(cache.builder, update.shape[axis]).reshape([-1, *(1,) * (cache.rank - 1 - axis)])
    if node.has(2):
        steps = steps + node.tensor(2).cast(DType.INT64).reshape([-1, *(1,) * (cache.rank - 1)])
    if is_circular:
        steps = steps % build.dim_value(cache.builder, cache.shape[axis])
    whole = [1] * (cache.rank - steps.rank) + list(steps.shape)
    return put(cache, steps.reshape(whole).expand(update.shape), update, axis)


def compress(node: Node) -> Value:
    """The elements, or whole slices along an axis, whose flag is set; the flags must be known."""
    x, flags = node.tensor(0), node.host(1)
    axis = node.integer("axis") if node.is_set("axis") else None
    source = x.reshape([product(x.shape)]) if axis is None else x
    kept = np.flatnonzero(flags)
    extent = source.shape[0 if axis is None else axis]
    if flags.size > node.builder.bounds(extent)[1]:
        node.invalid(f"{flags.size} flags are more than the {extent} elements")
    if kept.size and kept[-1] >= node.builder.bounds(extent)[0]:
        node.fail(f"whether there is an element {kept[-1]} of {extent} depends on symbols")
    return build.take(source, node.parameter(kept.astype(np.int64)), axis or 0)


def non_zero(node: Node) -> Value:
    found = node.host(0)
    if found.dtype == object:
        found = np.array([dimensions.is_nonzero(node, dim) for dim in found.reshape(-1)]).reshape(found.shape)
    # A scalar counts as a list of one element.
    return np.asarray(np.nonzero(np.atleast_1d(found)), np.int64)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "Compress": compress,
    "GatherND": gather_nd,
    "NonZero": non_zero,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
