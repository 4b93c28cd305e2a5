"""What a launch is, and what a driver or the kernel's own promises refuse about one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import Final, SupportsIndex

from .entries import Entry, Parameter
from .errors import LaunchRefused
from .native import MAX_THREADS
from .shared import DYNAMIC_BYTES

_BLOCK_LIMIT: Final = (1024, 1024, 64)
_GRID_LIMIT: Final = (2**31 - 1, 65_535, 65_535)
_BLOCKS: Final = 2**31
_BITS: Final = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
STATIC_BYTES: Final = 48 << 10
"""Static shared memory of a block on every architecture (CUDA C++ Programming Guide, technical specifications)."""

Argument = SupportsIndex | float


@dataclass(frozen=True, slots=True)
class Geometry:
    """Blocks of a launch and threads of a block, each as x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    def block_at(self, linear: int) -> tuple[int, int, int]:
        """The indices of the block with this linear number."""
        return linear % self.grid[0], linear // self.grid[0] % self.grid[1], linear // self.grid[0] // self.grid[1]

    def thread_at(self, linear: int) -> tuple[int, int, int]:
        """The indices of the thread with this linear number in its block."""
        width, height, _ = self.block
        return linear % width, linear // width % height, linear // width // height


def geometry(entry: Entry, grid: Sequence[int], block: Sequence[int], dynamic_shared_bytes: int) -> Geometry:
    """The launch's shape, its missing dimensions 1. LaunchRefused when a driver or the kernel does not allow it."""
    shape = Geometry(_three(grid), _three(block))
    for name, sizes, limits in (("grid", shape.grid, _GRID_LIMIT), ("block", shape.block, _BLOCK_LIMIT)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if not 1 <= size <= limit:
                raise LaunchRefused(f"{entry.name}: {name} {axis} is {size}; it must be from 1 to {limit}")
    if shape.threads > MAX_THREADS:
        raise LaunchRefused(f"{entry.name}: a block has {shape.threads} threads; the limit is {MAX_THREADS}")
    if shape.blocks > _BLOCKS:
        raise LaunchRefused(f"{entry.name}: {shape.blocks} blocks; the emulator runs at most {_BLOCKS}")
    if entry.max_threads is not None and shape.threads > entry.max_threads:
        raise LaunchRefused(f"{entry.name}: a block has {shape.threads} threads; maxntid is {entry.max_threads}")
    if entry.block is not None and _three(entry.block) != shape.block:
        raise LaunchRefused(f"{entry.name}: the block is {shape.block}; reqntid is {entry.block}")
    _check_shared(entry, dynamic_shared_bytes)
    _check_promises(entry, shape)
    return shape


def packed(entry: Entry, arguments: Sequence[Argument]) -> bytes:
    """The arguments, 8 bytes each. LaunchRefused when their number, range or alignment is wrong."""
    if len(arguments) != len(entry.parameters):
        raise LaunchRefused(f"{entry.name} takes {len(entry.parameters)} arguments, got {len(arguments)}")
    pairs = enumerate(zip(entry.parameters, arguments, strict=True))
    return b"".join(_pack(f"{entry.name}: argument {slot}", parameter, value) for slot, (parameter, value) in pairs)


def pointers(entry: Entry, arguments: Sequence[Argument]) -> dict[int, int]:
    """The addresses among arguments that `packed` has accepted, by position."""
    pairs = enumerate(zip(entry.parameters, arguments, strict=True))
    return {
        slot: index(value)
        for slot, (parameter, value) in pairs
        if parameter.kind == "ptr" and not isinstance(value, float)
    }


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1, 1)[:3] if len(sizes) <= 3 else (0, 0, 0)
    return x, y, z


def _check_shared(entry: Entry, dynamic_shared_bytes: int) -> None:
    static = entry.static_shared_bytes
    if static > STATIC_BYTES:
        raise LaunchRefused(f"{entry.name}: {static} bytes of static shared memory; the limit is {STATIC_BYTES}")
    if dynamic_shared_bytes < 0 or static + dynamic_shared_bytes > DYNAMIC_BYTES:
        raise LaunchRefused(
            f"{entry.name}: {static} static and {dynamic_shared_bytes} dynamic bytes of shared memory; "
            f"together they must be from 0 to {DYNAMIC_BYTES}"
        )


def _check_promises(entry: Entry, shape: Geometry) -> None:
    extents = {"ntid": shape.block, "nctaid": shape.grid, "tid": shape.block, "ctaid": shape.grid}
    for promise in entry.promises:
        group, axis = promise.register.rsplit(".", 2)[1:]
        extent = extents[group]["xyz".index(axis)]
        low, high = (extent, extent) if group.startswith("n") else (0, extent - 1)
        if low < promise.low or high >= promise.high:
            raise LaunchRefused(
                f"{entry.name} was compiled for {promise.low} <= {group}.{axis} < {promise.high}; "
                f"this launch has {low} to {high}"
            )


def _pack(what: str, parameter: Parameter, value: Argument) -> bytes:
    if parameter.kind == "float":
        return struct.pack("<f4x", float(value))
    if parameter.kind == "double":
        return struct.pack("<d", float(value))
    number = index(value) if not isinstance(value, float) else None
    if number is None:
        raise LaunchRefused(f"{what} is {value}; the kernel takes {parameter.kind}")
    if parameter.kind == "ptr":
        if not 0 <= number < 2**64 or number % parameter.alignment:
            raise LaunchRefused(f"{what} is {number:#x}; the kernel wants an address aligned to {parameter.alignment}")
        return struct.pack("<Q", number)
    bits = _BITS[parameter.kind]
    if not -(2 ** (bits - 1)) <= number < 2**bits:
        raise LaunchRefused(f"{what} is {number}, which does not fit in {parameter.kind}")
    return struct.pack("<q", number if number < 2**63 else number - 2**64)
