"""The schedule that a strategy chooses for one kernel, and its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from ..loops.body import KernelBody
from ..loops.domain import Loop
from .cost import Cost, Evaluate


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch buffer of one kernel: private to each worker, or shared by all work-groups."""

    dtype: DType
    elements: Dim
    is_private: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule for one kernel and its cost at given symbol values; `item` lacks only the buffers.

    `updating` is the cost of a scatter whose result takes the place of its initial values.
    """

    strategy: str
    item: KernelItem
    scratch: tuple[Scratch, ...]
    cost: Callable[[Evaluate], Cost]
    updating: Callable[[Evaluate], Cost] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule that a strategy offered: its `key`, under which a measured time can be stored, and its estimate.

    The key identifies the kernel, the machine, the strategy's version and its decisions.
    """

    key: str
    strategy: str
    estimate_ns: float


@dataclass(frozen=True, slots=True)
class Offer:
    """All candidates for a kernel, and the `choice` that was picked, which is at position `picked`.

    `most_ns` is its estimated time when every symbol has its largest value, `updating_ns` that of a scatter whose
    result takes the place of its initial values.
    """

    choice: Choice
    picked: int
    candidates: tuple[Candidate, ...]
    most_ns: float
    updating_ns: float


def bounded(body: KernelBody, loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops with extents in terms of symbols only: a piece of a chunked loop counts as a full piece."""
    known, largest = body.space.symbols.keys(), body.space.largest
    extents = [loop.extent if expr.free_symbols(loop.extent) <= known else largest(loop.extent) for loop in loops]
    return tuple(replace(loop, extent=extent) for loop, extent in zip(loops, extents, strict=True))


def points_of(body: KernelBody, loops: Sequence[Loop], at: Evaluate) -> int:
    """The points of the loops, if each piece of a chunked loop has as many as the first."""
    known = body.space.symbols.keys()
    return prod(
        at(expr.substitute(loop.extent, dict.fromkeys(expr.free_symbols(loop.extent) - known, 0))) for loop in loops
    )
