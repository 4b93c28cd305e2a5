"""Addresses of all buffers at one binding of the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import DeviceError
from ..expr import evaluate
from .address import Address
from .layout import Layout
from .steps import Window
from .storage import span_of


@dataclass(frozen=True)
class Placement:
    """`fixed` maps the buffer of a constant or fixed input to its address; `free` maps the var of a free input to its
    position.
    """

    layout: Layout
    fixed: Mapping[int, int]
    free: Mapping[int, int]

    @property
    def symbols(self) -> Mapping[str, int]:
        return self.layout.symbols

    def address(self, buffer_id: int) -> Address:
        """The address of the buffer. DeviceError when it exceeds the array that it is a window of."""
        layout, outline = self.layout, self.layout.outline
        key = outline.storage_of[buffer_id]
        storage = outline.storages[key]
        offset, end = span_of(outline.program.buffers[buffer_id], self.symbols)
        anchor = storage.anchor.id
        match storage.kind:
            case "scratch":
                return Address("scratch", layout.scratch.offsets[key])
            case "constant" | "input":
                _require_room(buffer_id, end, layout.window_bytes(anchor))
                if anchor in self.fixed:
                    return Address("fixed", self.fixed[anchor] + offset)
                return Address("input", offset, self.free[outline.var_of_input[anchor]])
            case "writable":
                if key in layout.claims:
                    return Address("output", offset, layout.claims[key])
                return Address("block", layout.arena.offsets[key] + offset)

    def window(self, buffer_id: int) -> Window:
        """The buffer as a row-major array. DeviceError when its shape does not fit into its size."""
        buffer = self.layout.outline.program.buffers[buffer_id]
        window = Window(self.address(buffer_id), buffer.dtype.numpy, self.layout.shape(buffer_id))
        size = evaluate(buffer.size_bytes, self.symbols)
        if window.nbytes > size:
            raise DeviceError(f"buffer {buffer_id} has {size} bytes and the shape {window.shape}; compile it again")
        return window


def _require_room(buffer_id: int, end: int, available: int) -> None:
    if end > available:
        raise DeviceError(
            f"buffer {buffer_id} reaches to byte {end} of an array of {available} bytes; compile the program again"
        )
