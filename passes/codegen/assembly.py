"""Assembled PTX, and the resource usage that NVIDIA's assembler reports for its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tensorkiln.elf import ElfObject, read_object
from tensorkiln.errors import DiagnosticError
from tensorkiln.spec import Resources

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)' for '[^']+'")
_STACK: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED: Final = re.compile(r"\bUsed (\d+) registers")

_CODE: Final = ".text."
_SHARED: Final = ".nv.shared."
_RESERVED: Final = ".nv.reservedSmem."
"""What the symbols begin with that say that the driver uses the first shared memory of each block."""
RESERVED_BYTES: Final = 1024
"""How much that is: CUDA's programming guide, compute capability 9.0 and later."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of a thread (`registers`, `stack_bytes`, the spills) or a block (`static_shared_bytes`) of a kernel.

    `code_bytes` counts the kernel's own instructions: library functions, such as for division, may be separate.
    """

    registers: int
    static_shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    code_bytes: int

    @property
    def resources(self) -> Resources:
        """The usage as a program records it."""
        return Resources(
            registers=self.registers,
            shared_memory_bytes=self.static_shared_bytes,
            spill_bytes=self.spill_store_bytes + self.spill_load_bytes,
            code_bytes=self.code_bytes,
        )


@dataclass(frozen=True, slots=True)
class Assembly:
    """A cubin, and the usage of each of its entries."""

    cubin: bytes
    usage: Mapping[str, Usage]


def assembly_of(cubin: bytes, log: str) -> Assembly:
    """The assembly of a cubin and its verbose ptxas log. Raises DiagnosticError if either cannot be parsed.

    Shared memory is what the cubin reserves: nvJitLink 13.5 logs 16 bytes too many for kernels with at most 16.
    """
    codes, shared = _sizes(cubin)
    usage: dict[str, Usage] = {}
    entries = list(_ENTRY.finditer(log))
    ends = [*(entry.start() for entry in entries[1:]), len(log)]
    for entry, end in zip(entries, ends, strict=False):
        name, text = entry[1], log[entry.end() : end]
        stack, used = _STACK.search(text), _USED.search(text)
        if stack is None or used is None or name not in codes:
            raise DiagnosticError(f"the assembler's report on {name} is not understood", details={"stage": "assemble"})
        usage[name] = Usage(
            registers=int(used[1]),
            static_shared_bytes=shared.get(name, 0),
            stack_bytes=int(stack[1]),
            spill_store_bytes=int(stack[2]),
            spill_load_bytes=int(stack[3]),
            code_bytes=codes[name],
        )
    if not usage:
        raise DiagnosticError("the assembler reports on no kernel", details={"stage": "assemble"})
    return Assembly(cubin, usage)


def _sizes(cubin: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of instructions and of shared memory by function: the sizes of `.text.NAME` and `.nv.shared.NAME`."""
    try:
        read = read_object(cubin)
    except ValueError as error:
        raise DiagnosticError(f"the cubin cannot be read: {error}", details={"stage": "assemble"}) from error
    codes, shared = (_by_function(read, prefix) for prefix in (_CODE, _SHARED))
    reserved = RESERVED_BYTES if any(symbol.name.startswith(_RESERVED) for symbol in read.symbols) else 0
    return codes, {name: max(size - reserved, 0) for name, size in shared.items()}


def _by_function(read: ElfObject, prefix: str) -> dict[str, int]:
    """The sizes of the sections `prefix` plus the name of a function."""
    return {each.name.removeprefix(prefix): each.size for each in read.sections if each.name.startswith(prefix)}
