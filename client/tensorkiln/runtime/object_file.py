"""What an object file needs of the process it is loaded into, read from its headers.

LLVM's loader ends the whole process on bytes it cannot read, a machine it does not know or a symbol it cannot find;
asked here first, all three are errors.
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
    """The machine that the code is for, and the symbols that it expects the process to have.

    `foreign` are those that no kernel needs, weak ones included; `problems` is what else no kernel has.
    """

    machine: str
    undefined: tuple[str, ...]
    foreign: tuple[str, ...]
    problems: tuple[str, ...]


def object_needs(content: bytes) -> ObjectNeeds:
    """What the ELF object `content` needs. DeviceError when it is none, or contradicts itself."""
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
