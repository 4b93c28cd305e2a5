"""The loops of a kernel: its axes, the machine level each one runs on, and its tiles."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import model_validator

from ..expr import Dim, symbol
from ..nodes import SymVar
from ..nodes.base import Record
from ..sizes import WireSize


class Axis(Record):
    """A logical loop. `size` is its extent (may be symbolic), or None when `sym` alone bounds it.

    With both given, `size` is the upper bound. ValueError when neither is.
    """

    name: str
    size: WireSize | None = None
    sym: SymVar | None = None
    role: Literal["normal", "reduction"] = "normal"

    @model_validator(mode="after")
    def _is_bounded(self) -> Axis:
        if self.size is None and self.sym is None:
            raise ValueError(f"axis {self.name} has neither a size nor a symbolic variable that bounds it")
        if isinstance(self.size, int) and self.size < 0:
            raise ValueError(f"axis {self.name} has the negative size {self.size}")
        return self

    @property
    def extent(self) -> Dim:
        """The trip count: `size` where known, else the symbol."""
        if self.size is not None:
            return self.size
        assert self.sym is not None, "an axis without a size has a symbol"
        return symbol(self.sym.name)


class Mapping(Record):
    """Which axes (by index) run on which machine level; the order within a level is x, y, z.

    block: grid on a GPU, core on a CPU; thread: lane of a group; vec: SIMD lanes; serial: the remaining loops.
    """

    block: tuple[int, ...] = ()
    thread: tuple[int, ...] = ()
    vec: tuple[int, ...] = ()
    serial: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Every mapped axis, outer level first."""
        return self.block + self.thread + self.vec + self.serial


class IterSpace(Record):
    """The axes, their mapping, and for each axis its tile sizes from outer to inner (empty: not tiled)."""

    axes: tuple[Axis, ...]
    mapping: Mapping
    tiles: tuple[tuple[WireSize, ...], ...]

    @model_validator(mode="after")
    def _is_consistent(self) -> IterSpace:
        last = len(self.axes) - 1
        for index in self.mapping.all:
            if not 0 <= index <= last:
                raise ValueError(f"Scheduled.iter_space: axis index {index} out of range 0..{last}")
        if len(self.tiles) != len(self.axes):
            raise ValueError("Scheduled.iter_space: tiles length must match axes length")
        uses = Counter(self.mapping.all)
        for index, axis in enumerate(self.axes):
            if uses[index] != 1:
                raise ValueError(
                    f"Scheduled.iter_space: axis {index} ({axis.name}) is mapped {uses[index]} times, not 1"
                )
        for axis, sizes in zip(self.axes, self.tiles, strict=True):
            if any(isinstance(size, int) and size < 1 for size in sizes):
                raise ValueError(f"Scheduled.iter_space: axis {axis.name} has a tile size below 1")
        return self
