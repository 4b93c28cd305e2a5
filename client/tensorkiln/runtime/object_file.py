"""What an object file needs of the process it is loaded into, read from its headers.

LLVM's loader ends the whole process on bytes it cannot read, a machine it does not know or a symbol it cannot find;
asked here first, all three are errors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import DeviceError

_ELF: Final = b"\x7fELF\x02\x01"
_MACH_O: Final = b"\xcf\xfa\xed\xfe"
"""Magic numbers of the 64-bit little-endian variants; LLVM makes the second kind for macOS."""

_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_TABLE: Final = 2
_NO_BYTES: Final = 8
_UNDEFINED: Final = 0
_WEAK: Final = 2
_MACHINES: Final = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "cuda", 224: "amdgpu", 243: "riscv"}
"""The `e_machine` numbers of the System V ABI that a compiler of tensor programs emits."""


@dataclass(frozen=True, slots=True)
class ObjectNeeds:
    """The machine that the code is for, and the symbols that it expects the process to have."""

    machine: str
    undefined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def object_needs(content: bytes) -> ObjectNeeds | None:
    """What the ELF object `content` needs; None for a Mach-O object, whose headers are not read.

    DeviceError when it is neither, or an ELF object that contradicts itself.
    """
    if content.startswith(_MACH_O):
        return None
    if not content.startswith(_ELF):
        raise DeviceError("the program's code is not an object file of a 64-bit machine; compile it for this one")
    try:
        (machine,) = struct.unpack_from("<H", content, 18)
        sections = _sections(content)
        undefined = tuple(sorted(set(_undefined_symbols(content, sections))))
    except (struct.error, UnicodeDecodeError, IndexError, ValueError) as error:
        raise DeviceError(f"the program's code is not a well-formed ELF object ({error}); compile it again") from error
    return ObjectNeeds(_MACHINES.get(machine, f"machine {machine}"), undefined)


def _sections(content: bytes) -> list[_Section]:
    """The section headers; ValueError when a section leaves the file."""
    (table,) = struct.unpack_from("<Q", content, 40)
    entry_size, count = struct.unpack_from("<HH", content, 58)
    if entry_size != _HEADER.size or table + count * entry_size > len(content):
        raise ValueError("the section headers lie behind the file")
    sections: list[_Section] = []
    for position in range(count):
        fields = _HEADER.unpack_from(content, table + position * entry_size)
        section = _Section(kind=fields[1], offset=fields[4], size=fields[5], link=fields[6])
        if section.kind != _NO_BYTES and section.offset + section.size > len(content):
            raise ValueError(f"section {position} ends behind the file")
        sections.append(section)
    return sections


def _undefined_symbols(content: bytes, sections: Sequence[_Section]) -> Iterator[str]:
    for section in sections:
        if section.kind != _SYMBOL_TABLE:
            continue
        names = sections[section.link].offset
        entries = content[section.offset : section.offset + section.size]
        for name, info, _, home, _, _ in struct.iter_unpack("<IBBHQQ", entries):
            if home == _UNDEFINED and name and info >> 4 != _WEAK:
                start = names + name
                yield content[start : content.index(b"\0", start)].decode()
