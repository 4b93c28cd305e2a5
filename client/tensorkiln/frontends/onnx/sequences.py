"""Sequences of known length, and optionals known to be filled or empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from ... import build
from ...build import Tensor
from ...expr import Dim
from .control import MAX_TURNS
from .node import Node
from .value import MAX_GROWN_ELEMENTS, Held, Host, Items, Nothing, Value, settled


def construct(node: Node) -> Held:
    return Items(tuple(node.value(place) for place in range(len(node.inputs))))


def empty(node: Node) -> Held:
    node.ignore("dtype")
    return Items(())


def at(node: Node) -> Held:
    values = node.items(0)
    return values[_place(node, 1, len(values), len(values) - 1)]


def insert(node: Node) -> Held:
    """The sequence with an element inserted before the position, or appended if there is no position."""
    values = node.items(0)
    place = _place(node, 2, len(values), len(values)) if node.has(2) else len(values)
    return Items((*values[:place], node.value(1), *values[place:]))


def erase(node: Node) -> Held:
    """The sequence without the element at the position, or without its last."""
    values = node.items(0)
    place = _place(node, 1, len(values), len(values) - 1) if node.has(1) else len(values) - 1
    return (
        Items(values[:place] + values[place + 1 :]) if values else node.invalid("the sequence has no element to erase")
    )


def _place(node: Node, position: int, count: int, last: int) -> int:
    """A position that must be known, counted from the end where it is negative."""
    found = node.known_integer(position)
    if not -count <= found <= last:
        node.invalid(f"there is no position {found} in a sequence of {count}")
    return found + count if found < 0 else found


def length(node: Node) -> Held:
    return np.asarray(len(node.items(0)), np.int64)


def split(node: Node) -> Held:
    """Parts along an axis, of the given sizes, of one size, or of one element each."""
    x, axis = node.value(0), node.integer("axis", 0)
    keeps = node.integer("keepdims", 1) == 1 or node.has(1)
    rank = len(x.shape)
    if not -rank <= axis < rank:
        node.invalid(f"axis {axis} is out of range for rank {rank}")
    axis %= rank
    starts = [0]
    for size in _sizes(node, x.shape[axis]):
        starts.append(starts[-1] + size)
    whole = (slice(None),) * axis
    parts = [x[(*whole, slice(start, end) if keeps else start)] for start, end in pairwise(starts)]
    return Items(tuple(part if isinstance(part, Tensor) else np.asarray(part) for part in parts))


def _sizes(node: Node, extent: Dim) -> list[int]:
    sizes = node.host(1) if node.has(1) else np.asarray(1)
    if sizes.ndim:
        listed = [int(size) for size in sizes.tolist()]
        if min(listed, default=0) < 0 or (isinstance(extent, int) and sum(listed) != extent):
            node.invalid(f"parts of {listed} do not make up {extent} elements")
        if not isinstance(extent, int):
            node.fail(f"whether parts of {listed} make up {extent} elements depends on symbols; fix these by `symbols`")
        return listed
    size = int(sizes)
    if not isinstance(extent, int):
        node.fail(f"how many parts {extent} elements have depends on symbols; fix these by `symbols`")
    if size < 1:
        node.invalid(f"a part cannot have {size} elements")
    if -(-extent // size) > MAX_TURNS:
        node.fail(f"{extent} elements in parts of {size} are more than {MAX_TURNS}")
    return [min(size, extent - start) for start in range(0, extent, size)]


def concat(node: Node) -> Held:
    """Concatenate the elements along an axis, or stack them along a new one."""
    values, axis, is_new = node.items(0), node.integer("axis"), node.integer("new_axis", 0) == 1
    if not values:
        node.invalid("the sequence has no element to join")
    if _are_known(values) and _are_few(values):
        joined: Any = np.stack(values, axis) if is_new else np.concatenate(values, axis)
        return settled(joined)
    tensors = [value if isinstance(value, Tensor) else node.parameter(value) for value in values]
    return build.stack(tensors, axis) if is_new else build.cat(tensors, axis)


def _are_known(values: Sequence[Value]) -> TypeGuard[Sequence[Host]]:
    return not any(isinstance(value, Tensor) for value in values)


def _are_few(values: Sequence[Host]) -> bool:
    """Whether the values are joined on the host; the graph joins small values whose result is large."""
    sizes = [value.size for value in values]
    return sum(sizes) <= max(MAX_GROWN_ELEMENTS, *sizes)


def sequence_map(node: Node) -> Sequence[Held]:
    """Run the body for each element, together with the same element of the other sequences and with whole tensors."""
    body = node.subgraph("body")
    count = len(node.items(0))
    others = [node.held(place) for place in range(len(node.inputs))]
    if any(isinstance(other, Items) and len(other.values) != count for other in others):
        node.invalid("the sequences are of different lengths")
    results: list[list[Value]] = [[] for _ in body.output]
    for turn in range(count):
        given = [other.values[turn] if isinstance(other, Items) else other for other in others]
        for collected, result in zip(results, node.run(body, given, f"{node.name}/{turn}"), strict=True):
            collected.append(node.as_value(result, "an element of the result"))
    return [Items(tuple(values)) for values in results]


def optional(node: Node) -> Held:
    node.ignore("type")
    return node.held(0) if node.has(0) else Nothing()


def has_element(node: Node) -> Held:
    return np.asarray(node.has(0) and not isinstance(node.held(0), Nothing))


def get_element(node: Node) -> Held:
    found = node.held(0)
    return node.fail("the optional value is not there") if isinstance(found, Nothing) else found


OPERATORS: dict[str, Callable[[Node], Held | Sequence[Held]]] = {
    "ConcatFromSequence": concat,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SequenceMap": sequence_map,
    "SplitToSequence": split,
}
