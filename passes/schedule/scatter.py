"""A scatter as every target runs it: line by line along its axis."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln.expr import Dim

from ..values import Value
from .domain import Loop
from .stages import KernelBody


def root_of(body: KernelBody) -> Value:
    """What the kernel stores first: the scatter, where it is the kernel of one."""
    return next(value for value in body.function.values if value.is_root)


def is_scatter(body: KernelBody) -> bool:
    """Whether the kernel is that of a scatter, which has no other root."""
    return root_of(body).kind == "scatter"


def lines_of(root: Value) -> list[Loop]:
    """The loops over every dimension but the axis."""
    axis = root.int("axis")
    return [Loop(f"r{number}", extent) for number, extent in enumerate(root.shape) if number != axis]


def at(line: Sequence[Dim], axis: int, position: Dim) -> tuple[Dim, ...]:
    """The index of an element of a line."""
    return (*line[:axis], position, *line[axis:])
