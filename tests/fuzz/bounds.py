"""How far each element of a compiled result may be from the reference, by what every op on the way may lose.

The reference is evaluated node by node. Beside every value there is one bound for each of its elements, in float64: the
most by which correct code may differ. It is 0 for what is exact: inputs, integers, and IEEE arithmetic on operands that
are exact themselves, which rounds in one way only. A sum of floats may be in any order, `exp2`, `log2`, `sin` and `pow`
are a few steps off (`docs/reference.md`), and every op carries on what its operands lost. A comparison of values that
are closer than their bounds may come out either way, which is a bound of 1, and a choice by it may be either operand.
Infinity is the bound of what says nothing: a value that is not finite, or that is near the end of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.nodes import AnyNode, Scatter, ScatterKind, While
from tensorkiln.reference.evaluate import execute
from tensorkiln.reference.precision import Array
from tensorkiln.reference.scope import Scope

from .losses import LOSSES, combined_at_places

Bounded = tuple[Array, Array]
"""The value of an output, and the bound of each of its elements."""

MOVING = frozenset(
    {"reshape", "permute", "expand", "pad", "shrink", "flip", "cat", "view", "valid", "vectorize", "gep"}
    | {"contiguous", "contiguous_backward", "detach", "fuse", "unroll"}
)
"""Kinds whose result has elements of their operands as they are: so has the bound."""
EXACT = frozenset({"const_scalar", "vconst", "define_var", "placeholder", "threefry", "sink"})
_BY_INDEX = {"gather": ("indices_var",), "index": ("idx_var", "valid_var"), "scatter": ("indices_var",)}


class Bounds(Scope):
    """The bounds of the vars of a graph; what `plain` names is read as the values themselves."""

    def __init__(self, values: Scope, graph: Graph) -> None:
        super().__init__(graph.types, values.symbols)
        self.values = values
        self.plain: frozenset[int | None] = frozenset()

    def dtype(self, var: int) -> DType:
        return self.values.dtype(var) if var in self.plain else DType.FLOAT64

    def read(self, var: int) -> Array:
        return self.values.read(var) if var in self.plain else super().read(var)


def evaluate_bounded(graph: Graph, arrays: tuple[Array, ...], symbols: Mapping[str, int]) -> tuple[Bounded, ...]:
    """The reference's outputs with their bounds; `arrays` and `symbols` fit the graph."""
    values = Scope(graph.types, symbols, graph.symbols)
    bounds = Bounds(values, graph)
    with np.errstate(all="ignore"):
        for var, array in zip(graph.input_vars, arrays, strict=True):
            values.define(var, array)
            bounds.define(var, np.zeros(array.shape))
        for node in graph.nodes:
            execute(node, values)
            if isinstance(node, While):
                _define_results(node, values, bounds)
            elif node.out_var is not None and not bounds.has(node.out_var):
                bounds.define(node.out_var, _bound(node, values, bounds))
        return tuple((values.read(var), bounds.read(var)) for var in graph.output_vars)


def _define_results(node: While, values: Scope, bounds: Bounds) -> None:
    """The bounds of what a loop gives: 0 where all that it computes is exact, else infinity."""
    condition, body = (Graph.of_region(region, values.ranges) for region in (node.condition, node.body))
    carried = [values.read(var) for var in node.in_vars]
    lost = [bounds.read(var) for var in node.in_vars]
    while True:
        ((goes_on, unsure),) = evaluate_bounded(condition, tuple(carried), values.symbols)
        is_exact = not any(np.any(each > 0) for each in (*lost, unsure))
        if not (goes_on.item() and is_exact):
            break
        found = evaluate_bounded(body, tuple(carried), values.symbols)
        carried[: len(found)] = (value for value, _ in found)
        lost = [bound for _, bound in found]
    for var in node.output_vars:
        bounds.define(var, np.full(values.read(var).shape, 0.0 if is_exact else np.inf))


def _bound(node: AnyNode, values: Scope, bounds: Bounds) -> Array:
    assert node.out_var is not None
    value = values.read(node.out_var)
    if node.node in EXACT:
        return np.zeros(value.shape)
    if node.node in MOVING:
        execute(node, bounds)
        return bounds.read(node.out_var)
    if isinstance(node, Scatter) and node.reduction is not ScatterKind.NONE:
        return combined_at_places(node, values, bounds)
    if node.node in _BY_INDEX:
        return _by_index(node, bounds, value)
    loss: Callable[[Any, Scope, Scope], Array] = LOSSES[node.node]
    found = np.broadcast_to(loss(node, values, bounds), value.shape)
    dtype = values.dtype(node.out_var)
    found = np.where(np.isnan(found), np.inf, found)
    if dtype.is_float:
        wide = value.astype(np.float64)
        found = np.where(
            np.isfinite(wide) & (np.abs(wide) + found < float(ml_dtypes.finfo(dtype.numpy).max)), found, np.inf
        )
    return np.where((found > 0) & (dtype is DType.BOOL), 1.0, found)


def _by_index(node: AnyNode, bounds: Bounds, value: Array) -> Array:
    """The bounds of the elements that are taken or put; of everything where an index itself is not certain."""
    names = [getattr(node, name) for name in _BY_INDEX[node.node]]
    if any(np.any(bounds.read(var) > 0) for var in names if var is not None):
        return np.full(value.shape, np.inf)
    bounds.plain = frozenset(names)
    execute(node, bounds)
    bounds.plain = frozenset()
    assert node.out_var is not None
    return bounds.read(node.out_var)
