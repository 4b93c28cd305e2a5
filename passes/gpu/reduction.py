"""Combine the partial results of the threads of a work-group, so that all of them have the result.

The order of combination depends only on the size of the work-group, so results repeat bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialect.mlir import ir
from passes.emit.accumulation import combined
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import load, store
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .branch import where
from .frame import THREAD
from .intrinsics import shuffle_xor
from .machine import Machine


@dataclass(frozen=True, slots=True)
class Lanes:
    """How threads share rows: a work-group has `rows` rows of `lanes` lanes; the row varies fastest with the thread.

    The threads of a `wave` run in lock step.
    """

    rows: int
    lanes: int
    wave: int

    @property
    def threads(self) -> int:
        return self.rows * self.lanes

    @property
    def lane(self) -> Dim:
        """The lane of the thread in its row."""
        return expr.floordiv(symbol(THREAD), self.rows) if self.lanes > 1 else 0

    @property
    def slot(self) -> Dim:
        """The row of the thread in its work-group."""
        return expr.floormod(symbol(THREAD), self.rows) if self.rows > 1 else 0

    @property
    def exchange_elements(self) -> int:
        """Elements of shared memory that a combination needs."""
        if self.lanes == 1 or (self.threads == self.wave and self.rows == 1):
            return 0
        return self.lanes // self.wave if self.rows == 1 else self.threads


@dataclass(frozen=True, slots=True)
class Exchange:
    """Shared memory for a combination: `lanes.exchange_elements` elements of `base` from `start` on.

    Some threads may still be reading it after others have left the combination.
    """

    base: ir.Value
    start: int


def combine_lanes(
    kind: str, dtype: DType, value: ir.Value, lanes: Lanes, exchange: Exchange | None, index: IndexEmitter, how: Machine
) -> ir.Value:
    """The combination of the values, in their register type, of all lanes of a row. All threads must take part."""
    if lanes.lanes == 1:
        return value
    if lanes.rows > 1:
        assert exchange is not None, "rows side by side exchange through memory"
        return _through_memory(kind, dtype, value, lanes, exchange, index, how)
    value = _within_wave(kind, dtype, value, lanes.wave, how)
    if exchange is None:
        return value
    waves = lanes.lanes // lanes.wave
    thread = symbol(THREAD)
    with where([("eq", expr.floormod(thread, lanes.wave), 0)], index) as here:
        store(dtype, value, exchange.base, expr.add(exchange.start, expr.floordiv(thread, lanes.wave)), here)
    how.intrinsics.barrier()
    value = load(dtype, exchange.base, expr.add(exchange.start, expr.floormod(thread, waves)), index)
    return _within_wave(kind, dtype, value, waves, how)


def _within_wave(kind: str, dtype: DType, value: ir.Value, width: int, how: Machine) -> ir.Value:
    """Combine within each aligned run of `width` lanes of a wave."""
    distance = width // 2
    while distance:
        other = shuffle_xor(how.intrinsics, how.device.wave, dtype, value, distance)
        value = combined(kind, dtype, value, other, how.traits)
        distance //= 2
    return value


def _through_memory(
    kind: str, dtype: DType, value: ir.Value, lanes: Lanes, exchange: Exchange, index: IndexEmitter, how: Machine
) -> ir.Value:
    """Halve the number of lanes that hold a partial result until one is left."""
    place = expr.add(exchange.start, symbol(THREAD))
    store(dtype, value, exchange.base, place, index)
    how.intrinsics.barrier()
    half = lanes.lanes // 2
    while half:
        with where([("ult", lanes.lane, half)], index) as here:
            other = load(dtype, exchange.base, expr.add(place, half * lanes.rows), here)
            mine = load(dtype, exchange.base, place, here)
            store(dtype, combined(kind, dtype, mine, other, how.traits), exchange.base, place, here)
        how.intrinsics.barrier()
        half //= 2
    return load(dtype, exchange.base, expr.add(exchange.start, lanes.slot), index)
