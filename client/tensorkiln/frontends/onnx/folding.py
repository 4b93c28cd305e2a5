"""Operators on values that are known on the host: shape arithmetic, and the rearrangement of weights.

A fold computes what the operator of the same name would, in NumPy. Elements may be dimension expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from ...expr import Expr, add, idiv, mul, sub
from . import axes, reshaping
from .node import Node
from .value import Host, as_objects, dims_of, settled

Fold: TypeAlias = Callable[[Node, Sequence[Host]], "Host | list[Host]"]


def _arithmetic(numpys: Callable[[Any, Any], Any], of_dims: Callable[[Any, Any], Any]) -> Fold:
    def fold(node: Node, values: Sequence[Host]) -> Host:
        result = values[0]
        for value in values[1:]:
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


def _cast(node: Node, values: Sequence[Host]) -> Host:
    node.ignore("saturate", "round_mode")
    target = tensor_dtype_to_np_dtype(node.integer("to"))
    if values[0].dtype == object:
        if target != np.int64:
            node.fail(f"a shape that depends on symbols is cast to {target}")
        return values[0]
    return values[0].astype(target)


def _concat(node: Node, values: Sequence[Host]) -> Host:
    joined = np.concatenate(list(values), axis=node.integer("axis"))
    return settled(joined)


def _gather(node: Node, values: Sequence[Host]) -> Host:
    data, indices = values
    axis = node.integer("axis", 0)
    if indices.dtype == object or np.any((indices < -data.shape[axis]) | (indices >= data.shape[axis])):
        node.fail(f"the indices do not lie on axis {axis} of {data.shape}")
    return settled(np.asarray(np.take(data, indices, axis)))


def _slice(node: Node, values: Sequence[Host]) -> Host:
    data = values[0]
    parts = axes.slices(node, data.ndim, values[1:])
    if any(isinstance(bound, Expr) for part in parts for bound in (part.start, part.stop)):
        node.fail("the bounds of a slice of known values depend on symbols")
    return settled(np.asarray(data[tuple(parts)]))


def _reshape(node: Node, values: Sequence[Host]) -> Host:
    data = values[0]
    shape = reshaping.target_shape(node, data.shape, dims_of(values[1]))
    if not all(isinstance(dim, int) for dim in shape):
        node.fail("weights are reshaped to a shape that depends on symbols")
    return data.reshape([dim for dim in shape if isinstance(dim, int)])


def _transpose(node: Node, values: Sequence[Host]) -> Host:
    return values[0].transpose(node.integers("perm", list(reversed(range(values[0].ndim)))))


def _unsqueeze(node: Node, values: Sequence[Host]) -> Host:
    return np.expand_dims(values[0], tuple(axes.required(node, "axes", 13, 1)))


def _squeeze(node: Node, values: Sequence[Host]) -> Host:
    found = axes.given(node, "axes", 13, 1)
    return np.squeeze(values[0], None if found is None else tuple(found))


def _identity(node: Node, values: Sequence[Host]) -> Host:
    return values[0]


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
