"""Constant folding of operators on host values: shape arithmetic, and rearrangement of weights.

A fold computes the operator of the same name in NumPy. Elements may be dimension expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...build import Builder, Tensor
from ...expr import add, idiv, mul, product, sub
from ...reference import evaluate
from ...reference.conversion import cast
from . import axes, dimensions, drawing, reshaping
from .elementwise import cast_target, saturates
from .node import Node
from .operators import results_of
from .parameters import Parameters, element_type
from .value import MAX_GROWN_ELEMENTS, Absent, Held, Host, as_objects, dims_of, settled

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
    """Divide; integers truncate, and integer division by zero gives zero, as in a graph."""
    if left.dtype.kind == "f":
        return np.divide(left, right)
    safe = np.where(right == 0, right.dtype.type(1), right)
    quotient, remainder = np.divmod(left, safe)
    is_below = (remainder != 0) & ((left < 0) != (safe < 0))
    return np.where(right == 0, 0, quotient + is_below).astype(left.dtype)


def _cast(node: Node) -> Host:
    target = cast_target(node)
    data = node.host(0)
    if data.dtype == object:
        return data
    source, known = element_type(data.dtype), element_type(target)
    if known.is_narrow and known.wide.is_float and saturates(node):
        data = np.clip(data.astype(np.float64), known.min, known.max)
    return cast(data, source, known) if source.is_narrow or known.is_narrow else data.astype(target)


def _concat(node: Node) -> Host:
    joined = np.concatenate(node.hosts(), axis=node.integer("axis"))
    return settled(joined)


def _gather(node: Node) -> Host:
    data, indices = node.host(0), node.host(1)
    axis = _axis(node, data)
    if indices.dtype == object or np.any((indices < -data.shape[axis]) | (indices >= data.shape[axis])):
        node.fail(f"the indices do not lie on axis {axis} of {data.shape}")
    return settled(np.asarray(np.take(data, indices, axis)))


def _axis(node: Node, data: Host) -> int:
    axis = node.integer("axis", 0)
    return axis if -data.ndim <= axis < data.ndim else node.invalid(f"axis {axis} is out of range for {data.shape}")


def _slice(node: Node) -> Host:
    data = node.host(0)
    return settled(np.asarray(data[tuple(axes.slices(node, data.shape))]))


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


def _split(node: Node) -> list[Host]:
    """The parts of a list of dims."""
    data, sizes = node.host(0), reshaping.part_sizes(node, len(node.host(0)))
    axis = node.integer("axis", 0)
    if data.ndim != 1 or axis not in (0, -1) or add(*sizes) != len(data):
        node.invalid(f"parts of {sizes} along axis {axis} do not add up to {data.shape}")
    ends = np.cumsum([int(size) for size in sizes if isinstance(size, int)])
    return [settled(part) for part in np.split(data, ends[:-1])]


def _identity(node: Node) -> Host:
    return node.host(0)


_FOLDS: dict[str, Fold] = {
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


def _broadcast_size(node: Node) -> int:
    return math.prod(np.broadcast_shapes(*(value.shape for value in node.hosts())))


def _joined_size(node: Node) -> int:
    return sum(value.size for value in node.hosts())


def _gathered_size(node: Node) -> int:
    data, indices = node.host(0), node.host(1)
    return data.size // max(data.shape[_axis(node, data)], 1) * indices.size


MAX_EVALUATED_ELEMENTS = 1 << 12
"""The most elements of an input of a node that the reference evaluator folds: shapes and tables, not large weights."""
MAX_EVALUATED_RESULT = 1 << 20
"""The most elements of each value, intermediate ones included, in such a fold."""
_NOT_EVALUATED = frozenset({"Constant", "ConstantOfShape", "Shape", "Size", "If", "Loop", "Scan", *drawing.OPERATORS})
"""Operators that produce known values directly, run other nodes, or draw random numbers at every call."""

_GROWN: dict[str, Callable[[Node], int]] = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub", "Sum"), _broadcast_size),
    "Concat": _joined_size,
    "Gather": _gathered_size,
}
"""The elements of the result, for folds whose result may have more than each of their inputs."""


def is_foldable(node: Node) -> bool:
    """Whether the node is folded: its inputs are known, and small inputs do not give a large result."""
    if not node.is_known() or not node.inputs:
        return False
    count = _GROWN[node.op](node) if node.op in _GROWN else 0
    most = max((value.size for value in node.inputs if isinstance(value, np.ndarray)), default=0)
    if node.op in _FOLDS:
        is_small = count <= MAX_GROWN_ELEMENTS or count <= most
        return is_small and not dimensions.has_symbolic_bounds(node) and not _is_cast_to_numbers(node)
    if dimensions.is_symbolic(node):
        return node.op in (*dimensions.FOLDS, "Split") and not dimensions.has_symbolic_bounds(node)
    return most <= MAX_EVALUATED_ELEMENTS and node.op not in _NOT_EVALUATED and not _is_weight(node)


def _is_weight(node: Node) -> bool:
    """Whether the result is a dequantised matrix or more, which products read as the integers that it is made of."""
    return node.op == "DequantizeLinear" and node.host(0).ndim > 1


def _is_cast_to_numbers(node: Node) -> bool:
    """Whether symbolic dims are cast to a type other than int64, which is computed at the call."""
    return node.op == "Cast" and dimensions.is_symbolic(node) and cast_target(node) != np.int64


def fold(node: Node) -> Sequence[Held | Absent]:
    """Fold a foldable node."""
    if node.op in _FOLDS:
        return [_FOLDS[node.op](node)]
    if node.op == "Split" and dimensions.is_symbolic(node):
        return _split(node)
    return [dimensions.FOLDS[node.op](node)] if dimensions.is_symbolic(node) else _evaluated(node)


def _evaluated(node: Node) -> Sequence[Held | Absent]:
    """Evaluate the node in a separate graph; if that would be too large, translate it to the model's graph instead."""
    builder = Builder("fold")
    parameters = Parameters(builder, ())
    apart = node.apart(parameters)
    results = results_of(apart)
    apart.refuse_unread()
    computed = [result for result in results if isinstance(result, Tensor)]
    if computed:
        builder.output(*computed)
        graph = builder.graph()
        sizes = (product(kind.shape) for kind in graph.types.values())
        if any(not isinstance(size, int) or size > MAX_EVALUATED_RESULT for size in sizes):
            return results_of(node)
        arrays = iter(evaluate(graph, *(parameters.arrays[var] for var in graph.input_vars)))
        results = [next(arrays) if isinstance(result, Tensor) else result for result in results]
    node.ignore(*node.attribute_names)
    return results
