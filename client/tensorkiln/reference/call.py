"""Checks of a call: its symbols, its arrays, and the constraints that validation of the graph could not prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import CallBoundsError, CallInputError
from ..expr import Dim, ExprError
from ..expr import evaluate as evaluate_dim
from ..graph import Constraint, Graph
from .precision import Array


def check_symbols(bounds: Mapping[str, tuple[int, int]], symbols: Mapping[str, object]) -> dict[str, int]:
    """The symbols as integers. CallBoundsError when one is missing, unknown, not an integer or out of bounds."""
    missing = [name for name in bounds if name not in symbols]
    if missing:
        raise CallBoundsError(f"missing value for symbol {missing[0]}; pass it by name", details={"symbol": missing[0]})
    return {name: _checked_symbol(name, value, bounds) for name, value in symbols.items()}


def _checked_symbol(name: str, value: object, bounds: Mapping[str, tuple[int, int]]) -> int:
    if name not in bounds:
        known = ", ".join(bounds) or "none"
        raise CallBoundsError(f"unknown symbol {name}; the graph has {known}", details={"symbol": name})
    if not isinstance(value, int | np.integer) or isinstance(value, bool | np.timedelta64):
        raise CallBoundsError(f"symbol {name} is an integer, not {value!r}", details={"symbol": name})
    low, high = bounds[name]
    if not low <= value <= high:
        raise CallBoundsError(
            f"symbol {name}={value} is outside its bounds [{low}, {high}]",
            details={"symbol": name, "value": int(value), "minimum": low, "maximum": high},
        )
    return int(value)


def check_inputs(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[Array]:
    """The arrays in the order of `input_vars`. CallInputError when their count, a dtype or a shape is wrong."""
    if len(arrays) != len(graph.input_vars):
        raise CallInputError(f"the graph takes {len(graph.input_vars)} inputs, got {len(arrays)}")
    return [_checked_input(graph, place, array, symbols) for place, array in enumerate(arrays)]


def _checked_input(graph: Graph, place: int, given: Any, symbols: Mapping[str, int]) -> Array:
    kind = graph.types[graph.input_vars[place]]
    pointer = f"/input_vars/{place}"
    array = np.asarray(given)
    if array.dtype != kind.dtype.numpy:
        raise CallInputError(f"input {place} is {kind.dtype}, got {array.dtype}", pointers=[pointer])
    shape = tuple(_value(dim, symbols, pointer) for dim in kind.shape)
    if array.shape != shape:
        raise CallInputError(f"input {place} has shape {list(shape)}, got {list(array.shape)}", pointers=[pointer])
    return array


def check_constraints(constraints: Sequence[Constraint], symbols: Mapping[str, int]) -> None:
    """CallInputError, with the node's pointer, for the first constraint that the symbols violate."""
    for constraint in constraints:
        left = _value(constraint.left, symbols, constraint.pointer)
        right = _value(constraint.right, symbols, constraint.pointer)
        holds = left == right if constraint.kind == "eq" else left >= right
        if not holds:
            relation = "equal" if constraint.kind == "eq" else "be at least"
            raise CallInputError(
                f"{constraint.message}: {constraint.left} = {left} must {relation} {constraint.right} = {right}",
                pointers=[constraint.pointer],
            )


def _value(dim: Dim, symbols: Mapping[str, int], pointer: str) -> int:
    try:
        return evaluate_dim(dim, symbols)
    except ExprError as error:
        raise CallInputError(f"{dim} has no value under these symbols: {error}", pointers=[pointer]) from error
