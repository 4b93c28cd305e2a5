"""Reshape and related operators, and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...build import Tensor, cat, split
from ...expr import Dim, floordiv, mul, product
from ...limits import MAX_NODES
from . import axes
from .node import Node
from .value import MAX_GROWN_ELEMENTS, Host, Value, dims_of, host_dims


def target_shape(node: Node, shape: Sequence[Dim], wanted: Sequence[Dim]) -> list[Dim]:
    """The target shape of a Reshape: 0 copies a dim unless `allowzero` is set, -1 is inferred."""
    copies = node.integer("allowzero", 0) == 0
    if any(dim == 0 and copies and place >= len(shape) for place, dim in enumerate(wanted)):
        node.fail(f"a dimension of 0 copies one that the input of rank {len(shape)} does not have")
    dims = [shape[place] if dim == 0 and copies else dim for place, dim in enumerate(wanted)]
    if -1 not in dims:
        return dims
    place = dims.index(-1)
    others, own = [*dims[:place], *dims[place + 1 :]], [*shape]
    # Cancel equal dims first: divisibility of expanded sums cannot be recognized.
    for dim in tuple(others):
        if dim != 0 and dim in own:
            others.remove(dim)
            own.remove(dim)
    rest, size = product(others), product(own)
    if rest == 0:
        node.fail("the dimension -1 of a tensor without elements is not determined")
    quotient = floordiv(size, rest)
    if mul(quotient, rest) != size:
        node.fail(f"the dimension -1 is not {size} / {rest} exactly")
    return [*dims[:place], quotient, *dims[place + 1 :]]


def reshape(node: Node) -> Value:
    x = node.tensor(0)
    return x.reshape(target_shape(node, x.shape, dims_of(node.host(1))))


def transpose(node: Node) -> Value:
    x = node.tensor(0)
    return x.permute(node.integers("perm", list(reversed(range(x.rank)))))


def unsqueeze(node: Node) -> Value:
    return node.tensor(0).unsqueeze(axes.required(node, "axes", 13, 1))


def squeeze(node: Node) -> Value:
    return node.tensor(0).squeeze(axes.given(node, "axes", 13, 1))


def flatten(node: Node) -> Value:
    x = node.tensor(0)
    axis = node.integer("axis", 1)
    if not -x.rank <= axis <= x.rank:
        node.fail(f"axis {axis} is out of range for rank {x.rank}")
    place = axis + x.rank if axis < 0 else axis
    return x.reshape(product(x.shape[:place]), product(x.shape[place:]))


def concat(node: Node) -> Value:
    return cat(node.tensors(), node.integer("axis"))


def split_(node: Node) -> list[Tensor]:
    x = node.tensor(0)
    axis = node.integer("axis", 0)
    return list(split(x, part_sizes(node, x.shape[axis]), axis))


def part_sizes(node: Node, dim: Dim) -> list[Dim]:
    """The sizes of the parts of a Split along an axis of `dim` elements."""
    if node.opset >= 13 and node.has(1):
        return dims_of(node.host(1))
    if node.opset < 13 and node.is_set("split"):
        return list(node.integers("split"))
    return _even(node, dim)


def _even(node: Node, dim: Dim) -> list[Dim]:
    """The sizes of equal parts, one per output; the last may be smaller."""
    count = node.integer("num_outputs", node.output_count) if node.opset >= 18 else node.output_count
    if not 0 < count <= MAX_NODES:
        node.invalid(f"{count} parts are too few or too many; 1 to {MAX_NODES} are possible")
    if not isinstance(dim, int):
        return [dim // count] * count
    size = -(-dim // count)
    if dim < size * (count - 1):
        node.invalid(f"an axis of {dim} does not split into {count} parts of which only the last is smaller")
    return [*[size] * (count - 1), dim - size * (count - 1)]


def slice_(node: Node) -> Value:
    x = node.tensor(0)
    return x[tuple(axes.slices(node, x.shape))]


def expand(node: Node) -> Value:
    x = node.tensor(0)
    wanted = dims_of(node.host(1))
    if -1 in wanted:  # The builder would keep the dim; ONNX does not allow -1.
        node.invalid(f"the shape {wanted} has a negative dimension")
    aligned = [1] * (x.rank - len(wanted)) + wanted
    own = [1] * (len(aligned) - x.rank) + list(x.shape)
    return x.expand([mine if dim == 1 else dim for mine, dim in zip(own, aligned, strict=True)])


def tile(node: Node) -> Value:
    """Tile: expand a new axis before each axis, and join the two."""
    x = node.tensor(0)
    repeats = dims_of(node.host(1))
    if len(repeats) != x.rank:
        node.fail(f"{len(repeats)} repeats do not fit rank {x.rank}")
    apart = x.reshape([dim for own in x.shape for dim in (1, own)])
    repeated = apart.expand([dim for count, own in zip(repeats, x.shape, strict=True) for dim in (count, own)])
    return repeated.reshape([mul(count, own) for count, own in zip(repeats, x.shape, strict=True)])


def depth_to_space(node: Node) -> Value:
    """Move channels to blocks of an image; `mode` selects whether blocks or channels are the outer dimension."""
    x, size = node.tensor(0), node.integer("blocksize")
    batch, channels, rows, columns = x.shape
    by_block = node.opset < 11 or node.choice("mode", ("DCR", "CRD"), "DCR") == "DCR"
    kept = floordiv(channels, size * size)
    if by_block:
        apart = x.reshape([batch, size, size, kept, rows, columns]).permute([0, 3, 4, 1, 5, 2])
    else:
        apart = x.reshape([batch, kept, size, size, rows, columns]).permute([0, 1, 4, 2, 5, 3])
    return apart.reshape([batch, kept, mul(rows, size), mul(columns, size)])


def space_to_depth(node: Node) -> Value:
    """Move blocks of an image to channels; block positions are the outer dimension, except in the mode CRD."""
    x, size = node.tensor(0), node.integer("blocksize")
    if node.opset >= 28 and node.choice("mode", ("DCR", "CRD"), "DCR") == "CRD":
        order = [0, 1, 3, 5, 2, 4]
    else:
        order = [0, 3, 5, 1, 2, 4]
    batch, channels, rows, columns = x.shape
    tall, wide = floordiv(rows, size), floordiv(columns, size)
    apart = x.reshape([batch, channels, tall, size, wide, size]).permute(order)
    return apart.reshape([batch, mul(channels, size * size), tall, wide])


def shape(node: Node) -> Value:
    dims = list(node.value(0).shape)
    end = node.integer("end", len(dims))
    return host_dims(dims[node.integer("start", 0) : end])


def size(node: Node) -> Value:
    return host_dims([product(node.value(0).shape)]).reshape(())


def constant(node: Node) -> Host:
    if node.is_set("value"):
        return node.array("value")
    if node.is_set("value_float"):
        return np.asarray(node.number("value_float"), np.float32)
    if node.is_set("value_int"):
        return np.asarray(node.integer("value_int"), np.int64)
    if node.is_set("value_ints"):
        return np.asarray(node.integers("value_ints"), np.int64)
    return np.asarray(node.numbers("value_floats"), np.float32)


def constant_of_shape(node: Node) -> Value:
    fill = node.array("value", np.zeros(1, np.float32)).reshape(())
    dims = dims_of(node.host(0))
    static = [dim for dim in dims if isinstance(dim, int)]
    if len(static) == len(dims) and math.prod(static) <= MAX_GROWN_ELEMENTS:
        return np.full(static, fill, fill.dtype)
    return node.parameter(fill).reshape([1] * len(dims)).expand(dims)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": flatten,
    "Reshape": reshape,
    "Shape": shape,
    "Size": size,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split_,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
