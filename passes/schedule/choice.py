"""What a strategy decides of one kernel, and the record that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from ..loops.body import KernelBody
from ..loops.domain import Loop
from .cost import Cost, Evaluate


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer of one kernel: every worker has its own while it runs the kernel, or all work-groups share it."""

    dtype: DType
    elements: Dim
    is_private: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule for one kernel, and what it costs at the sizes that are looked at; `item` lacks only the buffers."""

    strategy: str
    item: KernelItem
    scratch: tuple[Scratch, ...]
    cost: Callable[[Evaluate], Cost]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A choice that was offered: its `key`, under which a measured time can be kept, and what it was estimated at.

    The key stands for the kernel, the machine, the version of the strategy and what it decided.
    """

    key: str
    strategy: str
    estimate_ns: float


@dataclass(frozen=True, slots=True)
class Offer:
    """All that was offered for a kernel, and the `choice` that was picked: the candidate at the position `picked`.

    It takes `most_ns` where every symbol is as large as it may be.
    """

    choice: Choice
    picked: int
    candidates: tuple[Candidate, ...]
    most_ns: float


def bounded(body: KernelBody, loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops with extents in terms of symbols only: the piece of a chunked loop counts in full."""
    return tuple(Loop(loop.name, _bound(body, loop.extent), loop.is_reduction) for loop in loops)


def _bound(body: KernelBody, extent: Dim) -> Dim:
    return extent if expr.free_symbols(extent) <= body.space.symbols.keys() else body.space.largest(extent)
