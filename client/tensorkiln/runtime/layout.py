"""Sizes of a program's storages, and their offsets in a block, at one binding of its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import DeviceError
from ..expr import evaluate
from .arena import ArenaPlan, Interval, plan_arena
from .memory import ALIGNMENT
from .outline import Outline
from .storage import StorageKind, span_of


@dataclass(frozen=True)
class Layout:
    """`arena` places the writable storages in the block, `scratch` a worker's scratch in its share of the block.

    `claims` maps each storage that is returned without a copy to the position of its result.
    """

    outline: Outline
    symbols: Mapping[str, int]
    arena: ArenaPlan
    scratch: ArenaPlan
    claims: Mapping[int, int]

    def extent(self, buffer_id: int) -> int:
        """Bytes of the storage that the buffer is a window of."""
        return self.outline.storages[self.outline.storage_of[buffer_id]].extent(self.symbols)

    def shape(self, buffer_id: int) -> tuple[int, ...]:
        """The shape of the buffer. DeviceError when a size is negative."""
        shape = tuple(evaluate(dim, self.symbols) for dim in self.outline.program.buffers[buffer_id].shape)
        if min(shape, default=0) < 0:
            raise DeviceError(f"buffer {buffer_id} has the shape {shape}; compile the program again")
        return shape

    def window_bytes(self, buffer_id: int) -> int:
        """Bytes of the elements of the buffer."""
        count = 1
        for size in self.shape(buffer_id):
            count *= size
        return count * self.outline.program.buffers[buffer_id].dtype.itemsize

    def is_fresh(self, position: int) -> bool:
        """Whether kernels write the result at `position` in place, so that it is not copied."""
        buffer_id = self.outline.phase.outputs[position].buffer
        return self.claims.get(self.outline.storage_of[buffer_id]) == position

    def result_bytes(self, position: int) -> int:
        """Bytes to allocate for the result at `position`."""
        buffer_id = self.outline.phase.outputs[position].buffer
        return self.extent(buffer_id) if self.is_fresh(position) else self.window_bytes(buffer_id)


def lay_out(outline: Outline, symbols: Mapping[str, int], alignment: int = ALIGNMENT) -> Layout:
    """The layout at `symbols`, with storages that start at multiples of `alignment` bytes."""
    claims = _claims(outline, symbols)
    arena = plan_arena(_intervals(outline, "writable", symbols, claims), alignment)
    scratch = plan_arena(_intervals(outline, "scratch", symbols, claims), alignment)
    return Layout(outline, symbols, arena, scratch, claims)


def _intervals(
    outline: Outline, kind: StorageKind, symbols: Mapping[str, int], claims: Mapping[int, int]
) -> list[Interval]:
    return [
        Interval(key, storage.extent(symbols), storage.first, storage.last)
        for key, storage in enumerate(outline.storages)
        if storage.kind == kind and key not in claims
    ]


def _claims(outline: Outline, symbols: Mapping[str, int]) -> dict[int, int]:
    """For each writable storage that a result covers completely, the position of the first such result."""
    claims: dict[int, int] = {}
    for position, binding in enumerate(outline.phase.outputs):
        key = outline.storage_of[binding.buffer]
        storage, buffer = outline.storages[key], outline.program.buffers[binding.buffer]
        covers = span_of(buffer, symbols) == (0, storage.extent(symbols))
        if storage.kind == "writable" and covers:
            claims.setdefault(key, position)
    return claims
