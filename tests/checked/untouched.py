"""Checks that a launch changes nothing around its outputs: the rest of their pages and storages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensorkiln.schedule import KernelItem
from tensorkiln.spec import ProgramSpec

from .fault import CheckedFault, computes
from .layout import Storages
from .memory import Region


@dataclass(frozen=True, slots=True)
class Run:
    """A copy of a region's bytes from `offset` on."""

    region: Region
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Untouched:
    """The bytes that a launch must not change."""

    storages: Storages
    item: KernelItem
    spec: ProgramSpec
    runs: tuple[Run, ...]

    @staticmethod
    def by(item: KernelItem, spec: ProgramSpec, storages: Storages) -> Untouched:
        """Copy the bytes before a launch; storages that the kernel writes must be open."""
        written = [spec.buffers[slot] for slot in spec.outs]
        spans: dict[int, list[tuple[int, int]]] = {}
        for buffer in written:
            spans.setdefault(storages.region(buffer).number, []).append(storages.span(buffer))
        runs: list[Run] = []
        for number, inside in spans.items():
            region = storages.memory.regions[number]
            content = storages.memory.content(region)
            reached = 0
            for begin, end in [*sorted(inside), (region.size, region.size)]:
                if begin > reached:
                    runs.append(Run(region, reached, content[reached:begin].tobytes()))
                reached = max(reached, end)
        return Untouched(storages, item, spec, tuple(runs))

    def require(self, workers: int, way: str) -> None:
        """CheckedFault if the launch, by `workers` workers, changed any of these bytes."""
        for worker in range(workers):
            for buffer in {self.spec.buffers[slot] for slot in self.spec.outs}:
                region = self.storages.region(buffer, worker)
                offset = self.storages.memory.damage(region)
                if offset is not None:
                    raise self._error(region, offset, worker, way)
        for run in self.runs:
            content = self.storages.memory.content(run.region)[run.offset : run.offset + len(run.content)]
            if content.tobytes() != run.content:
                changed = np.flatnonzero(content != np.frombuffer(run.content, np.uint8))
                raise self._error(run.region, run.offset + int(changed[0]), 0, way)

    def _error(self, region: Region, offset: int, worker: int, way: str) -> CheckedFault:
        address, written = region.address + offset, {self.spec.buffers[slot] for slot in self.spec.outs}
        places = [place for place in self.storages.places(self.spec, worker) if place.region is region]
        place = min(places, key=lambda place: (place.buffer.id not in written, place.distance(address)))
        return CheckedFault(
            f"{self.item.kernel_name} has changed memory {place.position(address)}, where {way}; {computes(self.item)}",
            kernel=self.item.kernel_name,
            buffer=place.buffer.id,
            offset=address - place.address,
        )
