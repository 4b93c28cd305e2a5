"""What a schedule asks of a machine, at the sizes that are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

TYPICAL_EXTENT: Final = 256
"""Of a symbol, where its bounds allow it: what schedules are compared at."""

Evaluate = Callable[[Dim], int]
"""The value of an expression at the sizes that are looked at."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`cycles` of one processor for all work-groups, and `moved` bytes between it and memory.

    A work-group waits for `waits` cycles, in which its processor can do the work of others.
    """

    cycles: float
    moved: float
    waits: float = 0.0


class Machine(Protocol):
    """What a target's passes need to know of the machine that runs its kernels."""

    @property
    def key(self) -> str:
        """What tells machines apart whose times differ."""
        ...

    @property
    def reload(self) -> int:
        """Additions of 32 bits that take as long as to store an element of 32 bits and load it again."""
        ...

    def nanoseconds(self, cost: Cost, item: KernelItem, at: Evaluate) -> float:
        """How long a kernel with this schedule takes."""
        ...

    def occupancy(self, item: KernelItem, at: Evaluate, registers: int = 0) -> float:
        """The part of the machine's threads that its work-groups, of threads with so many registers, can fill at once;
        1 where there is no such limit.
        """
        ...


def at_typical(symbols: Mapping[str, tuple[int, int]], extent: int = TYPICAL_EXTENT) -> Evaluate:
    """Evaluates where every symbol is as near to `extent` as it may be."""
    typical = {name: min(max(extent, low), high) for name, (low, high) in symbols.items()}
    return at_upper_bounds({name: (value, value) for name, value in typical.items()})


def at_upper_bounds(symbols: Mapping[str, tuple[int, int]]) -> Evaluate:
    """Evaluates where every symbol is as large as it may be."""
    return lambda dim: expr.bounds(dim, symbols)[1]
