"""Writes into storage, as new values of the buffer after each write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from ...expr import add, sub
from .element_types import dtype_of
from .node import Asked, Node, Operation, asked
from .sizes import variable_of


def _written(uop: Any) -> tuple[Any, Any]:
    """The written place in the buffer, and the written value."""
    if len(uop.src) != 2:
        raise UnsupportedGraphError("several writes at once are not supported")
    write = uop.src[1]
    if write.op.name == "STORE" and len(write.src) == 2:
        return write.src
    if write.op.name == "AFTER":
        return write.src[0], write
    raise UnsupportedGraphError(f"what {write.op.name} writes is not supported")


def _views(uop: Any) -> list[Any]:
    """The views between the buffer and the written place, the last view first."""
    place, _ = _written(uop)
    buffer = _without_writes(uop.src[0])
    found: list[Any] = []
    while _without_writes(place) is not buffer:
        if place.op.name not in _BACK:
            raise UnsupportedGraphError(f"a write through {place.op.name} is not supported")
        found.append(place)
        place = place.src[0]
    if place is not uop.src[0] and any(view.op.name == "SHRINK" for view in found):
        raise UnsupportedGraphError("a write to a part of a buffer has to follow all writes before it")
    return found


def _without_writes(uop: Any) -> Any:
    while uop.op.name == "AFTER":
        uop = uop.src[0]
    return uop


def _operands(uop: Any, dtype: DType) -> Sequence[Asked]:
    if variable_of(uop) is not None:
        return []
    place, value = _written(uop)
    own = dtype_of(place)
    # The old contents are read only if a part of the buffer is written.
    parts = [asked(view.src[0], dtype) for view in _views(uop) if view.op.name == "SHRINK"]
    return [asked(value, own), *parts]


def _after(node: Node) -> Tensor:
    variable = variable_of(node.uop)
    if variable is not None:
        return variable_value(node, variable)
    value, *parts = node.values
    before = iter(parts)
    for view in _views(node.uop):
        value = _BACK[view.op.name](node, view, value, before)
    return value


def variable_value(node: Node, variable: Any) -> Tensor:
    """The value of a variable at the call."""
    node.sizes.symbol(variable)
    return node.builder.symbol_value(variable.expr).cast(node.dtype)


def _back_of_reshape(node: Node, view: Any, value: Tensor, before: Any) -> Tensor:
    del before
    return value.reshape(node.sizes.shape(view.src[0]))


def _back_of_permute(node: Node, view: Any, value: Tensor, before: Any) -> Tensor:
    del node, before
    return value.permute(*(view.marg.index(axis) for axis in range(len(view.marg))))


def _back_of_flip(node: Node, view: Any, value: Tensor, before: Any) -> Tensor:
    del node, before
    return value.flip([axis for axis, is_flipped in enumerate(view.marg) if is_flipped])


def _back_of_bitcast(node: Node, view: Any, value: Tensor, before: Any) -> Tensor:
    del node, before
    return value.bitcast(dtype_of(view.src[0]))


def _back_of_shrink(node: Node, view: Any, value: Tensor, before: Any) -> Tensor:
    whole = next(before)
    widths = [
        (node.sizes.dim(begin), sub(dim, add(node.sizes.dim(begin), node.sizes.dim(size))))
        for (begin, size), dim in zip(view.marg, whole.shape, strict=True)
    ]
    inside = build.full(node.builder, value.shape, True, "bool")
    return build.where(inside.pad(widths), value.pad(widths), whole)


_BACK: Final = {
    "RESHAPE": _back_of_reshape,
    "PERMUTE": _back_of_permute,
    "FLIP": _back_of_flip,
    "BITCAST": _back_of_bitcast,
    "SHRINK": _back_of_shrink,
}
"""Functions from the written value of a view to the value of its source."""

OPERATIONS: Final = {"AFTER": Operation(_after, _operands)}
