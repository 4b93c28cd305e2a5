"""The cost of a schedule, and the interface of the machine model that turns it into a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

TYPICAL_EXTENT: Final = 256
"""The value of a symbol, as far as its bounds allow, at which schedules are compared."""
LEAST_EXTENT: Final = 16
"""The least extent of a kernel's loops at which its schedules are compared, if the bounds of the symbols allow it."""

Evaluate = Callable[[Dim], int]
"""Evaluates an expression at chosen values of the symbols."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`cycles` of one processor, summed over all work-groups, and `moved` bytes between processors and memory.

    A work-group stalls for `waits` cycles, in which its processor can run other work-groups.
    """

    cycles: float
    moved: float
    waits: float = 0.0


class Machine(Protocol):
    """The machine model that a target's passes consult."""

    @property
    def key(self) -> str:
        """Identifies the machine; machines whose timings differ have different keys."""
        ...

    @property
    def reload(self) -> int:
        """The cost of storing a 32-bit element and loading it again, in 32-bit additions."""
        ...

    def nanoseconds(self, cost: Cost, item: KernelItem, at: Evaluate) -> float:
        """The estimated time of a kernel with this schedule."""
        ...

    def occupancy(self, item: KernelItem, at: Evaluate, registers: int = 0) -> float:
        """The share of the machine's thread slots that the work-groups can fill at once, given the `registers` of each
        thread; 1 where the machine has no such limit.
        """
        ...


def at_typical(
    symbols: Mapping[str, tuple[int, int]], extent: int = TYPICAL_EXTENT, loops: Iterable[Dim] = ()
) -> Evaluate:
    """An evaluator that gives every symbol the value nearest to `extent` within its bounds.

    The extent is doubled until those of `loops` are at least LEAST_EXTENT, as of layers behind steps of many samples.
    """
    most = at_upper_bounds(symbols)
    wanted = {loop: min(LEAST_EXTENT, most(loop)) for loop in loops if not isinstance(loop, int)}
    while True:
        typical = {name: min(max(extent, low), high) for name, (low, high) in symbols.items()}
        at = at_upper_bounds({name: (value, value) for name, value in typical.items()})
        if all(at(loop) >= least for loop, least in wanted.items()) or all(
            value == symbols[name][1] for name, value in typical.items()
        ):
            return at
        extent *= 2


def at_upper_bounds(symbols: Mapping[str, tuple[int, int]]) -> Evaluate:
    """An evaluator of upper bounds: every symbol ranges over its bounds."""
    return lambda dim: expr.bounds(dim, symbols)[1]
