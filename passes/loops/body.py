"""The form of a kernel that strategies start from: a sequence of stages over shared rows.

A map computes an element per point of its loops; a reduction combines elements along its reduction loops. All stages
have the same leading loops: the rows. Within a row a stage may read anything that an earlier stage stored for that row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tensorkiln.expr import Dim

from ..values import Function, Value
from .domain import Domain, Loop
from .index_space import IndexSpace
from .scalar_dag import Interner, Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Store:
    """The element that a stage computes for `root`, stored at the stage's address in the kernel's operand `operand`."""

    root: Value
    operand: int
    element: Node


@dataclass(frozen=True, slots=True)
class Stage:
    """Loops and their computation: one reduction of kind `combine`, or the elements of a map (`combine` is None).

    `elements` is everything computed at a point, in an order in which each element depends mostly on earlier ones, so
    that going through them one by one needs no deep recursion. Values that leave the kernel, or that a later stage
    reads, are stored; the others are in registers at a point.
    """

    domain: Domain
    combine: str | None
    elements: tuple[Node, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KernelBody:
    """The stages of a kernel over its rows. Bodies compare by identity, since each has an index space of its own.

    Operands are numbered: the function's arguments, its distinct results, then the local roots that a later stage
    reads. No other root has memory. `text` is the linalg that the body was read from.
    """

    function: Function
    space: IndexSpace
    nodes: Interner
    rows: tuple[Loop, ...]
    stages: tuple[Stage, ...]
    operands: tuple[Value, ...]
    local_from: int
    text: str = ""
    _made: dict[Callable[..., Any], Any] = field(init=False, repr=False, default_factory=dict[Callable[..., Any], Any])

    def once(self, make: Callable[[KernelBody], T]) -> T:
        """The memoised result of `make` for this body; what it adds to the space and to the nodes stays."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @contextmanager
    def apart(self) -> Generator[None]:
        """Try or emit something: additions to the space and to the nodes are dropped afterwards.

        So compiler stages that share a body all see it unchanged, and code does not depend on earlier attempts.
        """
        with self.space.apart(), self.nodes.apart():
            yield

    @property
    def extents(self) -> frozenset[Dim]:
        """The extents of all loops."""
        return frozenset(loop.extent for stage in self.stages for loop in stage.domain.loops)

    def is_local(self, operand: int) -> bool:
        """Whether the operand never leaves the kernel."""
        return operand >= self.local_from

    @property
    def in_panels(self) -> frozenset[int]:
        """The arguments that an earlier pass has packed in panels."""
        return frozenset(number for number, value in enumerate(self.operands) if value.fields.get("in_panels", False))

    @property
    def numbers(self) -> dict[Value, int]:
        """The number of each operand."""
        return {value: number for number, value in enumerate(self.operands)}


def inner_loops(body: KernelBody, stage: Stage) -> tuple[Loop, ...]:
    """The loops of a stage inside a row."""
    return tuple(loop for loop in stage.domain.loops if loop not in body.rows)
