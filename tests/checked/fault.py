"""Error messages for invalid memory accesses of kernels."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tensorkiln.buffers import Buffer
from tensorkiln.schedule import KernelItem

from .memory import GUARD, Access, Region
from .trap import Fault


class CheckedFault(AssertionError):
    """A checked run found a defect.

    `kernel` is the name of the kernel, empty if no single kernel is the cause; `buffer` the id of the nearest buffer,
    if any; `offset` the accessed byte, from the start of the buffer.
    """

    def __init__(self, message: str, *, kernel: str = "", buffer: int | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.buffer = buffer
        self.offset = offset


_MAX_NODES: Final = 12
"""The most nodes named in a message."""


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer in memory: `size` bytes from `address` on, in `region`. `is_given`: it is an argument of the kernel."""

    buffer: Buffer
    shape: tuple[int, ...]
    address: int
    size: int
    region: Region
    is_given: bool

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"buffer {self.buffer.id} ({self.buffer.role} {self.buffer.dtype} [{shape}], {self.size} bytes)"

    def distance(self, address: int) -> int:
        """Bytes between the address and the buffer; 0 inside it."""
        return max(self.address - address, address - (self.address + self.size) + 1, 0)

    def position(self, address: int) -> str:
        """The position of the address relative to the buffer, as text."""
        offset = address - self.address
        if offset < 0:
            return f"{_bytes(-offset)} before the start of {self}"
        if offset >= self.size:
            return f"{_bytes(offset - self.size)} behind the end of {self}"
        return f"at byte {offset} of {self}"


def computes(item: KernelItem) -> str:
    """The nodes that the kernel computes."""
    nodes = [f"{op.node} ({op.kind})" for op in item.ops]
    if len(nodes) > _MAX_NODES:
        nodes[_MAX_NODES // 2 : -_MAX_NODES // 2] = [f"{len(nodes) - _MAX_NODES} more"]
    return f"{item.kernel_name} computes {'the nodes ' if nodes else 'no node'}{', '.join(nodes)}"


def raised(item: KernelItem, fault: Fault, places: Sequence[Place], groups: tuple[int, int], way: str) -> CheckedFault:
    """The error for a signal of a kernel in the half-open range `groups` of work-groups; `places` are all buffers."""
    run = f"work-group {groups[0]}" if groups[1] - groups[0] == 1 else f"work-groups {groups[0]} to {groups[1] - 1}"
    where = f" in {run}, where {way}; {computes(item)}"
    if fault.address is None:
        why = "an aligned access to what is not aligned, or an address that none can have"
        detail = why if fault.signal in (signal.SIGSEGV, signal.SIGBUS) else "no access to memory"
        return CheckedFault(f"{item.kernel_name} raised {fault.signal.name} ({detail}){where}", kernel=item.kernel_name)
    address = fault.address
    verb = {None: "touches memory", True: "stores", False: "loads"}[fault.is_store]
    place = _nearest(address, places)
    if place is None:
        return CheckedFault(
            f"{item.kernel_name} {verb} at {address:#x}, near no buffer{where}", kernel=item.kernel_name, buffer=None
        )
    reason = ""
    if place.distance(address) == 0:
        reason = ", which it only reads" if place.region.access is Access.READ else ", which it is not given"
    return CheckedFault(
        f"{item.kernel_name} {verb} {place.position(address)}{reason}{where}",
        kernel=item.kernel_name,
        buffer=place.buffer.id,
        offset=address - place.address,
    )


def _nearest(address: int, places: Sequence[Place]) -> Place | None:
    """The buffer that contains the address, else the nearest within `GUARD` bytes; arguments of the kernel first."""
    holders = [place for place in places if not place.distance(address)]
    near = [place for place in places if place.distance(address) <= GUARD]
    for candidates in ([place for place in holders if place.is_given], holders, near):
        if candidates:
            return min(candidates, key=lambda place: (not place.is_given, place.distance(address)))
    return None


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
