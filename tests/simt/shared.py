"""Where the shared arrays of a module lie: in one piece of host memory, each between borders."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from .errors import UnsupportedKernel
from .text import SYMBOL, unquoted

BORDER: Final = 256
"""Poisoned bytes on either side of an array; shared.ll has the same number."""

DYNAMIC_BYTES: Final = 232_448
"""The most shared memory of a block: 227 KiB from compute capability 9.0 on (CUDA C++ Programming Guide)."""

_ARENA_BYTES: Final = 4 << 20
_WITHOUT_VALUE: Final = re.compile(r" = external | (?:undef|poison)(?:,|$)")


@dataclass(frozen=True, slots=True)
class SharedArray:
    """Bytes of a block's shared memory at a fixed address of the host. A dynamic one gets its size at the launch."""

    symbol: str
    address: int
    size: int
    alignment: int
    dynamic: bool


@cache
def _arena() -> tuple[mmap.mmap, int]:
    memory = mmap.mmap(-1, _ARENA_BYTES)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def shared_arrays(module: Any, target_data: Any) -> Mapping[str, SharedArray]:
    """The module's shared arrays by symbol, with its sigil. UnsupportedKernel when they have values or do not fit.

    Each address is as aligned as the array asks for and no more. All dynamic ones begin at one address, as in CUDA.
    """
    _, base = _arena()
    sizes = {
        variable.name: (target_data.get_abi_size(variable.global_value_type), line)
        for variable in module.global_variables
        for line in (str(variable).strip(),)
        if "addrspace(3)" in unquoted(line).partition(" = ")[2].partition("global")[0]
    }
    dynamic = [_alignment(line) for size, line in sizes.values() if size == 0]
    dynamic_alignment = max(dynamic, default=1)
    dynamic_address = _just_aligned(base + BORDER, dynamic_alignment)
    end = dynamic_address + DYNAMIC_BYTES + BORDER
    arrays: dict[str, SharedArray] = {}
    for size, line in sizes.values():
        symbol = _symbol(line)
        if size == 0:
            arrays[symbol] = SharedArray(symbol, dynamic_address, 0, dynamic_alignment, True)
            continue
        address = _just_aligned(end + BORDER, _alignment(line))
        arrays[symbol] = SharedArray(symbol, address, size, _alignment(line), False)
        end = address + size + BORDER
    if end - base > _ARENA_BYTES:
        raise UnsupportedKernel(f"the module's shared arrays take {end - base} bytes together; room is {_ARENA_BYTES}")
    return arrays


def _symbol(line: str) -> str:
    """The symbol that the line defines. UnsupportedKernel when it also gives it a value, which no GPU would see to."""
    found = SYMBOL.match(line)
    if found is None or not _WITHOUT_VALUE.search(unquoted(line)):
        raise UnsupportedKernel(f"shared memory has no value when a block begins: {line}")
    return found.group()


def _alignment(line: str) -> int:
    # Without one LLVM takes the type's, which is 8 at most for arrays of scalars.
    _, found, value = unquoted(line).rpartition(", align ")
    return int(value) if found else 8


def _just_aligned(address: int, alignment: int) -> int:
    coarse = 2 * max(alignment, 16)
    return -(-address // coarse) * coarse + max(alignment, 16)
