"""Assembled PTX, and the resource usage that NVIDIA's assembler reports for its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tensorkiln.elf import read_object
from tensorkiln.errors import DiagnosticError
from tensorkiln.spec import Resources

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)' for '[^']+'")
_STACK: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED: Final = re.compile(r"\bUsed (\d+) registers(.*)")
_SHARED: Final = re.compile(r"(\d+) bytes smem")

_CODE: Final = ".text."


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
    """The assembly of a cubin and its verbose ptxas log. Raises DiagnosticError if either cannot be parsed."""
    codes = _code_sizes(cubin)
    usage: dict[str, Usage] = {}
    entries = list(_ENTRY.finditer(log))
    ends = [*(entry.start() for entry in entries[1:]), len(log)]
    for entry, end in zip(entries, ends, strict=False):
        name, text = entry[1], log[entry.end() : end]
        stack, used = _STACK.search(text), _USED.search(text)
        if stack is None or used is None or name not in codes:
            raise DiagnosticError(f"the assembler's report on {name} is not understood", details={"stage": "assemble"})
        shared = _SHARED.search(used[2])
        usage[name] = Usage(
            registers=int(used[1]),
            static_shared_bytes=int(shared[1]) if shared else 0,
            stack_bytes=int(stack[1]),
            spill_store_bytes=int(stack[2]),
            spill_load_bytes=int(stack[3]),
            code_bytes=codes[name],
        )
    if not usage:
        raise DiagnosticError("the assembler reports on no kernel", details={"stage": "assemble"})
    return Assembly(cubin, usage)


def _code_sizes(cubin: bytes) -> dict[str, int]:
    """Bytes of instructions by function: the sizes of the sections `.text.NAME`."""
    try:
        sections = read_object(cubin).sections
    except ValueError as error:
        raise DiagnosticError(f"the cubin cannot be read: {error}", details={"stage": "assemble"}) from error
    return {section.name.removeprefix(_CODE): section.size for section in sections if section.name.startswith(_CODE)}
