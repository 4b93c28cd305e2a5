"""The form of a kernel that strategies start from: a sequence of stages over shared rows.

A map computes an element per point of its loops, a reduction combines elements along its reduction loops. The leading
loops of all stages agree: they are the rows. Within one row a stage may read anything that an earlier stage has stored
for that row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..values import Function, Value
from .domain import Domain, Loop
from .index_space import IndexSpace
from .scalar_dag import Interner, Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Store:
    """The element that a stage computes for `root`, kept at the stage's address in the kernel's operand `operand`."""

    root: Value
    operand: int
    element: Node


@dataclass(frozen=True, slots=True)
class Stage:
    """Loops and what they compute: one reduction of kind `combine`, or the elements of a map (`combine` is None).

    `elements` is everything that is computed at a point, in an order in which no element needs much that none before
    has needed: so to go through them one by one takes no deep recursion. What leaves the kernel, or is read by a later
    stage, is stored; the rest is in registers while the stage is at a point.
    """

    domain: Domain
    combine: str | None
    elements: tuple[Node, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KernelBody:
    """The stages of a kernel over its rows. Two that say the same are not equal: each has a space of its own.

    Operands are numbered: the function's arguments, its distinct results, then the roots that never leave the kernel
    and are read by a later stage than their own. No other root has memory. `text` is what the linalg says that the body
    was read of.
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
        """What `make` makes of this body, made once: what it adds to the space and to the nodes stays."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @contextmanager
    def apart(self) -> Generator[None]:
        """Try or emit something: what that adds to the space and to the nodes is gone afterwards.

        So a body that stages share is to each of them as it was read, and code does not depend on what was tried.
        """
        with self.space.apart(), self.nodes.apart():
            yield

    def is_local(self, operand: int) -> bool:
        """Whether the operand never leaves the kernel."""
        return operand >= self.local_from

    @property
    def in_panels(self) -> frozenset[int]:
        """The arguments that lie in panels, as a pass before has packed them."""
        return frozenset(number for number, value in enumerate(self.operands) if value.fields.get("in_panels", False))

    @property
    def numbers(self) -> dict[Value, int]:
        """The number of each operand."""
        return {value: number for number, value in enumerate(self.operands)}
