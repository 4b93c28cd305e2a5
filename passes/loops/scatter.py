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


def at(line: Sequence[Dim], axis: int, position: Dim) -> tuple[Dim, ...]:
    """The index of an element of a line."""
    return (*line[:axis], position, *line[axis:])
