"""The machine and symbols that an object file needs, read from its headers.

LLVM's loader aborts the process on malformed bytes, an unknown machine or an unresolved symbol. Checking here first
turns all three into errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..elf import MAGIC, UNDEFINED, ElfObject, read_object
from ..errors import DeviceError
from ..object_rules import foreign_symbols, object_problems

_WEAK: Final = 2
_MACHINES: Final = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "cuda", 224: "amdgpu", 243: "riscv"}
"""The `e_machine` numbers of the System V ABI that a compiler of tensor programs emits."""


@dataclass(frozen=True, slots=True)
class ObjectNeeds:
    """The machine that the code is for, and the undefined symbols that the process must provide.

    `foreign` are symbols that no kernel needs, weak ones included; `problems` are other parts that no kernel has.
    """

    machine: str
    undefined: tuple[str, ...]
    foreign: tuple[str, ...]
    problems: tuple[str, ...]


def object_needs(content: bytes) -> ObjectNeeds:
    """The needs of the ELF object `content`. DeviceError when it is not a well-formed 64-bit ELF object."""
    if not content.startswith(MAGIC):
        raise DeviceError("the program's code is not a 64-bit ELF object; compile it for Linux and this processor")
    try:
        code = read_object(content)
        return ObjectNeeds(
            machine=_MACHINES.get(code.machine, f"machine {code.machine}"),
            undefined=_undefined(code),
            foreign=tuple(foreign_symbols(code)),
            problems=tuple(object_problems(code)),
        )
    except ValueError as error:
        raise DeviceError(f"the program's code is not a well-formed ELF object ({error}); compile it again") from error


def _undefined(code: ElfObject) -> tuple[str, ...]:
    needed = (symbol for symbol in code.symbols if symbol.home == UNDEFINED and symbol.binding != _WEAK)
    return tuple(sorted({symbol.name for symbol in needed if symbol.name}))
