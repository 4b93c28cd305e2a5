"""Operators on values that are known on the host: shape arithmetic, and the rearrangement of weights.

A fold computes what the operator of the same name would, in NumPy. Elements may be dimension expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from ...expr import Expr, add, idiv, mul, sub
from . import axes, reshaping
from .node import Node
from .value import Host, as_objects, dims_of, settled

Fold: TypeAlias = Callable[[Node], Host]


def _arithmetic(numpys: Callable[[Any, Any], Any], of_dims: Callable[[Any, Any], Any]) -> Fold:
    def fold(node: Node) -> Host:
        result, *rest = node.hosts()
        for value in rest:
            if object in (result.dtype, value.dtype):
                result = settled(np.asarray(np.frompyfunc(of_dims, 2, 1)(as_objects(result), as_objects(value))))
            elif result.dtype != value.dtype:
                node.fail(f"the operands are {result.dtype} and {value.dtype}")
            else:
                result = np.asarray(numpys(result, value))
        return result

    return fold


def _divide(left: Any, right: Any) -> Any:
    """Integers truncate, and a division by zero gives zero as it does in a graph."""
    if left.dtype.kind == "f":
        return np.divide(left, right)
    safe = np.where(right == 0, right.dtype.type(1), right)
    quotient = np.floor_divide(np.abs(left), np.abs(safe)) * np.sign(left) * np.sign(safe)
    return np.where(right == 0, 0, quotient).astype(left.dtype)


def _cast(node: Node) -> Host:
    node.ignore("saturate", "round_mode")
    target = tensor_dtype_to_np_dtype(node.integer("to"))
    data = node.host(0)
    if data.dtype == object:
        if target != np.int64:
            node.fail(f"a shape that depends on symbols is cast to {target}")
        return data
    return data.astype(target)


def _concat(node: Node) -> Host:
    joined = np.concatenate(node.hosts(), axis=node.integer("axis"))
    return settled(joined)


def _gather(node: Node) -> Host:
    data, indices = node.host(0), node.host(1)
    axis = node.integer("axis", 0)
    if indices.dtype == object or np.any((indices < -data.shape[axis]) | (indices >= data.shape[axis])):
        node.fail(f"the indices do not lie on axis {axis} of {data.shape}")
    return settled(np.asarray(np.take(data, indices, axis)))


def _slice(node: Node) -> Host:
    data = node.host(0)
    parts = axes.slices(node, data.ndim)
    if any(isinstance(bound, Expr) for part in parts for bound in (part.start, part.stop)):
        node.fail("the bounds of a slice of known values depend on symbols")
    return settled(np.asarray(data[tuple(parts)]))


def _reshape(node: Node) -> Host:
    data = node.host(0)
    shape = reshaping.target_shape(node, data.shape, dims_of(node.host(1)))
    if not all(isinstance(dim, int) for dim in shape):
        node.fail("weights are reshaped to a shape that depends on symbols")
    return data.reshape([dim for dim in shape if isinstance(dim, int)])


def _transpose(node: Node) -> Host:
    data = node.host(0)
    return data.transpose(node.integers("perm", list(reversed(range(data.ndim)))))


def _unsqueeze(node: Node) -> Host:
    return np.expand_dims(node.host(0), tuple(axes.required(node, "axes", 13, 1)))


def _squeeze(node: Node) -> Host:
    found = axes.given(node, "axes", 13, 1)
    return np.squeeze(node.host(0), None if found is None else tuple(found))


def _identity(node: Node) -> Host:
    return node.host(0)


FOLDS: dict[str, Fold] = {
    "Add": _arithmetic(np.add, add),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _arithmetic(_divide, idiv),
    "Gather": _gather,
    "Identity": _identity,
    "Mul": _arithmetic(np.multiply, mul),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _arithmetic(np.subtract, sub),
    "Sum": _arithmetic(np.add, add),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
