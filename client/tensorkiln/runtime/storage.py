"""Which buffers of a program are the same storage, and when each storage is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..buffers import Buffer
from ..errors import DeviceError
from ..expr import evaluate
from ..spec import CompiledProgram
from ..spec.checks import accesses

StorageKind = Literal["input", "constant", "scratch", "writable"]


@dataclass(frozen=True, slots=True)
class Storage:
    """The buffers of one alias group, or a single buffer.

    `first` and `last` are positions in the order of execution between which the contents matter. A writable storage is
    an output or lives in the arena, which depends on the sizes at a call.
    """

    kind: StorageKind
    members: tuple[Buffer, ...]
    first: int
    last: int

    @property
    def anchor(self) -> Buffer:
        """The input or constant that the storage is, else its first buffer."""
        return next((buffer for buffer in self.members if buffer.role == self.kind), self.members[0])

    def extent(self, symbols: Mapping[str, int]) -> int:
        """Bytes from the start of the storage to the end of its last window."""
        return max(span_of(buffer, symbols)[1] for buffer in self.members)


def span_of(buffer: Buffer, symbols: Mapping[str, int]) -> tuple[int, int]:
    """The first byte of `buffer` and the one behind its last, counted from the start of its storage.

    A window without bytes is at 0, whatever its offset. DeviceError when the size or the first byte is negative.
    """
    offset, size = evaluate(buffer.offset, symbols), evaluate(buffer.size_bytes, symbols)
    if not size:
        # At n = 0 a window from element n - 1 on would start outside its storage, where no address may be.
        return 0, 0
    if offset < 0 or size < 0:
        raise DeviceError(f"buffer {buffer.id} has the offset {offset} and the size {size}; compile the program again")
    return offset, offset + size


def resolve_storages(program: CompiledProgram) -> tuple[Storage, ...]:
    """The storages of `program`, ordered by their first buffer."""
    groups: dict[tuple[str, int], list[Buffer]] = {}
    for buffer in program.buffers:
        alone = buffer.alias_group is None
        groups.setdefault(("buffer", buffer.id) if alone else ("group", buffer.alias_group or 0), []).append(buffer)
    spans = _spans(program)
    return tuple(_storage(members, spans) for members in groups.values())


def _storage(members: Sequence[Buffer], spans: Mapping[int, tuple[int, int]]) -> Storage:
    roles = {buffer.role for buffer in members}
    kind: StorageKind = "writable"
    for fixed in ("input", "constant", "scratch"):
        kind = fixed if fixed in roles else kind
    first = min(spans[buffer.id][0] for buffer in members)
    return Storage(kind, tuple(members), first, max(spans[buffer.id][1] for buffer in members))


def _spans(program: CompiledProgram) -> dict[int, tuple[int, int]]:
    """For each buffer the first and last position that may use it; what is returned is needed behind the last item."""
    order = program.schedule.execution_order
    in_id_order = order == tuple(range(len(order)))
    uses: dict[int, list[int]] = {buffer.id: [] for buffer in program.buffers}
    for position, item_id in enumerate(order):
        for buffer_id in sum(accesses(program.schedule.items[item_id], program.kernels), ()):
            uses[buffer_id].append(position)
    for binding in program.outputs:
        uses[binding.buffer].append(len(order))
    for buffer in program.buffers:
        if in_id_order or not uses[buffer.id]:
            uses[buffer.id].extend(buffer.lifetime if in_id_order else (0, len(order)))
    return {buffer_id: (min(positions), max(positions)) for buffer_id, positions in uses.items()}
