"""Operators that depend on the positions of elements: ranges, triangles, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Expr, ceildiv, maximum, product, sub
from ..composed.placing import wrapped
from ..composed.running import running
from .node import Node
from .parameters import element_type
from .value import MAX_GROWN_ELEMENTS, Value


def range_(node: Node) -> Value:
    """Range from a start up to a limit: known values, or integers with a known step."""
    start, limit, step = node.hosts()
    if object not in (start.dtype, limit.dtype, step.dtype):
        first, last, by = (value.reshape(())[()] for value in (start, limit, step))
        if by == 0:
            node.invalid("the step of a range is 0")
        # In Python's numbers, which neither overflow nor round to 32 bits.
        count = max(math.ceil((last.item() - first.item()) / by.item()), 0)
        if count > MAX_GROWN_ELEMENTS:
            node.fail(f"{count} elements are more than the {MAX_GROWN_ELEMENTS} that are computed here")
        return np.asarray(first + np.arange(count).astype(start.dtype) * by, start.dtype)
    first, last, by = (value.reshape(()).tolist() for value in (start, limit, step))
    if isinstance(by, Expr) or by < 1:
        node.fail(f"a range of symbolic length goes up by a known step, not by {by}")
    count = maximum(ceildiv(sub(last, first), by), 0)
    numbers = build.arange(node.builder, count)
    return numbers * by + build.dim_value(node.builder, first)


def eye_like(node: Node) -> Value:
    x = node.value(0)
    own = x.dtype.numpy if isinstance(x, Tensor) else x.dtype
    dtype = element_type(tensor_dtype_to_np_dtype(node.integer("dtype"))) if node.is_set("dtype") else element_type(own)
    rows, columns = (build.arange(node.builder, dim) for dim in x.shape)
    return build.equal(columns, rows.unsqueeze([1]) + node.integer("k", 0)).cast(dtype)


def trilu(node: Node) -> Value:
    """The upper or the lower triangle of matrices, shifted by `k`, zeros elsewhere."""
    x = node.tensor(0)
    shift = node.tensor(1).reshape().cast(DType.INT64) if node.has(1) else node.parameter(np.asarray(0, np.int64))
    rows, columns = (build.arange(node.builder, dim) for dim in x.shape[-2:])
    over = columns - rows.unsqueeze([1])
    is_kept = over >= shift if node.integer("upper", 1) else over <= shift
    return build.where(is_kept, x, False if x.dtype.is_bool else 0)


def _running(node: Node, combine: Callable[[Tensor], Tensor], neutral: int) -> Value:
    is_reversed, is_exclusive = node.integer("reverse", 0) == 1, node.integer("exclusive", 0) == 1
    return running(node.tensor(0), node.known_integer(1), combine, neutral, is_reversed, is_exclusive, refuse=node.fail)


def cum_sum(node: Node) -> Value:
    return _running(node, lambda table: table.sum([-1], dtype=table.dtype), 0)


def cum_prod(node: Node) -> Value:
    return _running(node, lambda table: table.prod([-1], dtype=table.dtype), 1)


def one_hot(node: Node) -> Value:
    """`values[1]` at the index, `values[0]` elsewhere, along a new axis."""
    indices, values = node.tensor(0), node.tensor(2)
    depth = node.known_integer(1)
    off, on = values[0], values[1]
    places = wrapped(indices.cast(DType.INT64), depth).unsqueeze([-1])
    hot = build.where(build.equal(places, build.arange(node.builder, depth)), on, off)
    return build.moveaxis(hot, -1, node.integer("axis", -1))


def hardmax(node: Node) -> Value:
    """1 at the first greatest element. Before opset 13 the input is a matrix whose rows begin at `axis`."""
    x = node.tensor(0)
    if node.opset >= 13:
        axis = node.integer("axis", -1) % x.rank
        return _hot(node, x, axis)
    start = node.integer("axis", 1) % x.rank
    rows = x.reshape([product(x.shape[:start]), product(x.shape[start:])])
    return _hot(node, rows, 1).reshape(x.shape)


def _hot(node: Node, x: Tensor, axis: int) -> Tensor:
    first = build.argmax(x, axis, True)
    places = build.arange(node.builder, x.shape[axis]).reshape([-1, *(1,) * (x.rank - 1 - axis)])
    return build.equal(places, first.cast(DType.INT64)).cast(x.dtype)


def reverse_sequence(node: Node) -> Value:
    """Each sequence with its first elements, up to its length, reversed."""
    x, lengths = node.tensor(0), node.tensor(1).cast(DType.INT64)
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch, time} != {0, 1}:
        node.invalid(f"batch_axis {batch} and time_axis {time} are 0 and 1")
    places = build.arange(node.builder, x.shape[time])
    places, lengths = (places.unsqueeze([1]), lengths) if time == 0 else (places, lengths.unsqueeze([1]))
    turned = build.where(places < lengths, lengths - 1 - places, places)
    aligned = turned.reshape([*turned.shape, *(1,) * (x.rank - 2)]).expand(x.shape)
    return build.gather(x, aligned, time)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "CumProd": cum_prod,
    "CumSum": cum_sum,
    "EyeLike": eye_like,
    "Hardmax": hardmax,
    "OneHot": one_hot,
    "Range": range_,
    "ReverseSequence": reverse_sequence,
    "Trilu": trilu,
}
