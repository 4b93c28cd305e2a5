"""Storages of a program: the buffers that share one, and its live range."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..buffers import Buffer
from ..errors import DeviceError
from ..expr import evaluate
from ..spec import CompiledProgram
from ..spec.checks import accesses
from .phases import Phase

StorageKind = Literal["input", "constant", "scratch", "writable"]


@dataclass(frozen=True, slots=True)
class Storage:
    """The buffers of one alias group, or a single buffer.

    `first` and `last` are the live range, as positions in the order of execution. A writable storage is an output or in
    the arena, depending on the sizes at a call. The anchor is the storage's input, constant or scratch buffer, else its
    first buffer.
    """

    kind: StorageKind
    members: tuple[Buffer, ...]
    anchor: Buffer
    first: int
    last: int

    def extent(self, symbols: Mapping[str, int]) -> int:
        """Bytes from the start of the storage to the end of its last window."""
        return max(span_of(buffer, symbols)[1] for buffer in self.members)


def span_of(buffer: Buffer, symbols: Mapping[str, int]) -> tuple[int, int]:
    """The first byte of `buffer` and the byte after its last, counted from the start of its storage.

    An empty window is at 0, whatever its offset. DeviceError when the size or the first byte is negative.
    """
    offset, size = evaluate(buffer.offset, symbols), evaluate(buffer.size_bytes, symbols)
    if not size:
        # At n = 0 a window from element n - 1 on would start outside its storage, an invalid address.
        return 0, 0
    if offset < 0 or size < 0:
        raise DeviceError(f"buffer {buffer.id} has the offset {offset} and the size {size}; compile the program again")
    return offset, offset + size


def resolve_storages(program: CompiledProgram, phase: Phase) -> tuple[Storage, ...]:
    """The storages of `program` that `phase` uses (all, if it is the whole program), ordered by their first buffer."""
    spans = _spans(program, phase)
    bound = frozenset(binding.buffer for binding in phase.inputs)
    groups: dict[tuple[str, int], list[Buffer]] = {}
    for buffer in program.buffers:
        if buffer.id in spans:
            groups.setdefault(buffer.storage, []).append(buffer)
    return tuple(_storage(members, spans, bound) for members in groups.values())


def _storage(members: Sequence[Buffer], spans: Mapping[int, tuple[int, int]], bound: Container[int]) -> Storage:
    given = next((buffer for buffer in members if buffer.id in bound), None)
    fixed = next((buffer for buffer in members if buffer.role in ("constant", "scratch")), None)
    kind: StorageKind = "writable"
    if given is not None:
        kind = "input"
    elif fixed is not None:
        kind = "constant" if fixed.role == "constant" else "scratch"
    first = min(spans[buffer.id][0] for buffer in members)
    last = max(spans[buffer.id][1] for buffer in members)
    return Storage(kind, tuple(members), given or fixed or members[0], first, last)


def _spans(program: CompiledProgram, phase: Phase) -> dict[int, tuple[int, int]]:
    """For each buffer the first and last position that may use it; outputs are live until after the last item.

    For a part of the program, only the buffers that it uses.
    """
    order = phase.items
    uses: dict[int, list[int]] = {}
    for position, item_id in enumerate(order):
        for buffer_id in sum(accesses(program.schedule.items[item_id], program.kernels), ()):
            uses.setdefault(buffer_id, []).append(position)
    for binding in phase.inputs:
        uses.setdefault(binding.buffer, [0, len(order)])
    for binding in phase.outputs:
        uses.setdefault(binding.buffer, []).append(len(order))
    if len(order) == len(program.schedule.items):
        in_id_order = order == tuple(range(len(order)))
        for buffer in program.buffers:
            positions = uses.setdefault(buffer.id, [])
            if in_id_order or not positions:
                positions.extend(buffer.lifetime if in_id_order else (0, len(order)))
    return {buffer_id: (min(positions), max(positions)) for buffer_id, positions in uses.items()}
