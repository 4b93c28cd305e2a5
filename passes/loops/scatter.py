"""A scatter, as every target runs it: line by line along its axis."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln.expr import Dim

from ..values import Value
from .body import KernelBody
from .domain import Loop


def root_of(body: KernelBody) -> Value:
    """The scatter of a scatter kernel."""
    return body.function.results[0]


def is_scatter(body: KernelBody) -> bool:
    """Whether the kernel is a scatter: it has no stages, since its store addresses are data."""
    return not body.stages


def lines_of(root: Value) -> list[Loop]:
    """The loops over every dimension but the axis."""
    axis = root.int("axis")
    return [Loop(f"r{number}", extent) for number, extent in enumerate(root.shape) if number != axis]


def around(value: Value, axis: int) -> list[Dim]:
    """The extents of the lines of a value along the axis."""
    return [extent for number, extent in enumerate(value.shape) if number != axis]


def init_of(root: Value) -> Value | None:
    """The initial values of a scatter; None for zeros."""
    return root.operands[2] if len(root.operands) > 2 else None


def takes_rows(root: Value) -> bool:
    """Whether all updates that lie side by side along the last dimension have one index."""
    indices, updates = root.operands[:2]
    return root.int("axis") != len(root.shape) - 1 and indices.shape[-1] == 1 and updates.shape[-1] != 1


def place_of_index(root: Value, place: Sequence[Dim]) -> tuple[Dim, ...]:
    """The index of the element of the indices that belongs to the update at `place`."""
    return tuple(0 if extent == 1 else each for each, extent in zip(place, root.operands[0].shape, strict=True))


def at(line: Sequence[Dim], axis: int, position: Dim) -> tuple[Dim, ...]:
    """The index of an element of a line."""
    return (*line[:axis], position, *line[axis:])
