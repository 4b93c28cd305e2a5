"""The storages of a program in guarded memory, as a placement for the runtime's plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorkiln.runtime.arena import ArenaPlan
from tensorkiln.runtime.layout import Layout
from tensorkiln.runtime.loaded import LoadedProgram
from tensorkiln.runtime.placement import Placement
from tensorkiln.runtime.storage import Storage, span_of
from tensorkiln.spec import ProgramSpec

from .fault import Place
from .memory import GuardedMemory, Region, Way

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Storages:
    """Every storage of a program for one binding of its symbols, with exact size and the alignment of its elements.

    `shared` is by number of the storage, `private` (scratch) by worker and number. Addresses in `placement` are
    absolute; those of scratch are the first worker's.
    """

    memory: GuardedMemory
    shared: Mapping[int, Region]
    private: Sequence[Mapping[int, Region]]
    placement: Placement

    def region(self, buffer: int, worker: int = 0) -> Region:
        """The region of a buffer's storage."""
        number = self.placement.layout.outline.storage_of[buffer]
        return self.shared[number] if number in self.shared else self.private[worker][number]

    def address(self, buffer: int, worker: int) -> int:
        """The start address of a buffer, for a worker."""
        return self.region(buffer, worker).address + self.span(buffer)[0]

    def span(self, buffer: int) -> tuple[int, int]:
        """The half-open byte range of a buffer in its storage."""
        return span_of(self.placement.layout.outline.program.buffers[buffer], self.placement.symbols)

    def places(self, kernel: ProgramSpec, worker: int) -> list[Place]:
        """All buffers at the addresses of a worker that runs the kernel."""
        layout, given = self.placement.layout, frozenset(kernel.buffers)
        return [
            Place(
                buffer,
                layout.shape(buffer.id),
                self.address(buffer.id, worker),
                self.span(buffer.id)[1] - self.span(buffer.id)[0],
                self.region(buffer.id, worker),
                buffer.id in given,
            )
            for buffer in layout.outline.program.buffers
        ]


def laid_out(
    loaded: LoadedProgram, symbols: Mapping[str, int], inputs: Mapping[int, Array], way: Way, workers: int
) -> Storages:
    """Allocate the storages; fill those of inputs (given by buffer) and constants, and poison the others."""
    storages = loaded.outlines.whole.storages
    private = [number for number, storage in enumerate(storages) if storage.kind == "scratch"]
    shared = [number for number, storage in enumerate(storages) if storage.kind != "scratch"]
    owned = [*shared, *private * workers]
    memory = GuardedMemory(way, [_extent(storages[number], symbols) for number in owned])
    regions = iter(memory.regions)
    of_shared = dict(zip(shared, regions, strict=False))
    of_private = [dict(zip(private, regions, strict=False)) for _ in range(workers)]
    addresses = {number: region.address for number, region in (*of_shared.items(), *of_private[0].items())}
    fixed = {
        storages[number].anchor.id: region.address
        for number, region in of_shared.items()
        if storages[number].kind in ("input", "constant")
    }
    for number, region in of_shared.items():
        anchor = storages[number].anchor.id
        if storages[number].kind == "input":
            memory.fill(region, inputs[anchor])
        elif storages[number].kind == "constant":
            memory.fill(region, loaded.constants[anchor])
    plan = ArenaPlan(addresses, 0)
    placement = Placement(Layout(loaded.outlines.whole, symbols, plan, plan, {}), fixed, {})
    return Storages(memory, of_shared, of_private, placement)


def _extent(storage: Storage, symbols: Mapping[str, int]) -> tuple[int, int]:
    """Size and alignment in bytes. Inputs and constants have the minimum of both for their elements."""
    if storage.kind in ("input", "constant"):
        return span_of(storage.anchor, symbols)[1], storage.anchor.dtype.itemsize
    return storage.extent(symbols), max(buffer.dtype.itemsize for buffer in storage.members)
