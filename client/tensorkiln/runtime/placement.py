"""Where every buffer is at one binding of the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import DeviceError
from ..expr import evaluate
from .address import Address
from .loaded import LoadedProgram
from .steps import Window
from .storage import end_of


@dataclass(frozen=True)
class Placement:
    """`arena` gives the offset of a storage in the block, `scratch` that in a worker's share of it, `claims` the result
    that a storage becomes.

    `resident` gives the address of a fixed input by its buffer, `free` the position of a free input by its var.
    """

    loaded: LoadedProgram
    symbols: Mapping[str, int]
    arena: Mapping[int, int]
    scratch: Mapping[int, int]
    claims: Mapping[int, int]
    resident: Mapping[int, int]
    free: Mapping[int, int]

    def extent(self, buffer_id: int) -> int:
        """Bytes of the storage that the buffer is a window of."""
        return self.loaded.storages[self.loaded.storage_of[buffer_id]].extent(self.symbols)

    def address(self, buffer_id: int) -> Address:
        """Where the buffer starts."""
        loaded = self.loaded
        key = loaded.storage_of[buffer_id]
        storage = loaded.storages[key]
        offset = evaluate(loaded.program.buffers[buffer_id].offset, self.symbols)
        anchor = storage.anchor.id
        match storage.kind:
            case "scratch":
                return Address("scratch", self.scratch[key])
            case "constant":
                self._require_room(buffer_id, loaded.constants[anchor].nbytes)
                return Address("fixed", loaded.constants[anchor].ctypes.data + offset)
            case "input":
                self._require_room(buffer_id, self.window_bytes(anchor))
                if anchor in self.resident:
                    return Address("fixed", self.resident[anchor] + offset)
                return Address("input", offset, self.free[loaded.var_of_input[anchor]])
            case "writable":
                if key in self.claims:
                    return Address("output", offset, self.claims[key])
                return Address("block", self.arena[key] + offset)

    def window(self, buffer_id: int) -> Window:
        """The buffer as a row-major array. DeviceError when its shape does not fit into its size."""
        buffer = self.loaded.program.buffers[buffer_id]
        window = Window(self.address(buffer_id), buffer.dtype.numpy, self.shape(buffer_id))
        size = evaluate(buffer.size_bytes, self.symbols)
        if window.nbytes > size:
            raise DeviceError(f"buffer {buffer_id} has {size} bytes and the shape {window.shape}; compile it again")
        return window

    def shape(self, buffer_id: int) -> tuple[int, ...]:
        """The shape of the buffer. DeviceError when a size is negative."""
        shape = tuple(evaluate(dim, self.symbols) for dim in self.loaded.program.buffers[buffer_id].shape)
        if min(shape, default=0) < 0:
            raise DeviceError(f"buffer {buffer_id} has the shape {shape}; compile the program again")
        return shape

    def window_bytes(self, buffer_id: int) -> int:
        """Bytes of the elements of the buffer."""
        count = 1
        for size in self.shape(buffer_id):
            count *= size
        return count * self.loaded.program.buffers[buffer_id].dtype.itemsize

    def _require_room(self, buffer_id: int, available: int) -> None:
        end = end_of(self.loaded.program.buffers[buffer_id], self.symbols)
        if end > available:
            raise DeviceError(
                f"buffer {buffer_id} reaches to byte {end} of an array of {available} bytes; compile the program again"
            )
