"""Reader for relocatable ELF objects, limited to what loading needs (System V ABI, generic part, chapter 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"\x7fELF\x02\x01"
"""The magic bytes of 64-bit little-endian files, the only supported ones."""

NO_BYTES: Final = 8
"""The kind of a section that occupies memory but no bytes of the file."""
SYMBOL_TABLE: Final = 2
RELOCATIONS: Final = 4
"""The kind of a section of relocations with addends."""
UNDEFINED: Final = 0
"""The home of an undefined symbol, which the loader resolves."""

_NAME_BYTES: Final = 4096
"""The most bytes of a name. The compiler's names have 15; a hostile object may have very long ones."""
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Section:
    """`offset` and `size` are in bytes; the meaning of `link` and `info` depends on the kind."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """`home` is a section number, `UNDEFINED`, or a reserved number; `value` is the offset there."""

    name: str
    binding: int
    kind: int
    home: int
    value: int


@dataclass(frozen=True, slots=True)
class ElfObject:
    """`kind` and `machine` are the numbers of the header; `symbols` are those of the only symbol table."""

    content: bytes
    kind: int
    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def relocations(self, section: Section) -> Iterator[tuple[int, int, int]]:
        """`(offset in bytes, symbol number, type)` of each relocation in a relocation section.

        ValueError when its size is not a multiple of a relocation's.
        """
        if section.size % _RELOCATION.size:
            raise ValueError(f"the section {section.name} ends with a piece of a relocation")
        for offset, info, _ in _RELOCATION.iter_unpack(_bytes(self.content, section)):
            yield offset, info >> 32, info & 0xFFFFFFFF


def read_object(content: bytes) -> ElfObject:
    """Read the headers and the symbol table. ValueError when the file is not a well-formed ELF object."""
    if not content.startswith(MAGIC):
        raise ValueError("it is not 64-bit little-endian ELF")
    try:
        _, kind, machine, _, _, _, start, _, _, _, _, size, count, names = _HEADER.unpack_from(content)
        if size != _SECTION.size or not count or start + count * size > len(content):
            raise ValueError("the section headers are not where they should be")
        raw = [_SECTION.unpack_from(content, start + number * size) for number in range(count)]
        strings = raw[names]
        sections = tuple(_section(content, fields, strings[4], strings[5]) for fields in raw)
        tables = [section for section in sections if section.kind == SYMBOL_TABLE]
        if len(tables) > 1:
            raise ValueError("it has several symbol tables")
        symbols = tuple(_symbols(content, tables[0], sections[tables[0].link])) if tables else ()
    except (struct.error, IndexError) as error:
        raise ValueError(str(error)) from error
    return ElfObject(content, kind, machine, sections, symbols)


def _section(content: bytes, fields: tuple[int, ...], names: int, names_size: int) -> Section:
    name, kind, flags, _, offset, size, link, info, _, _ = fields
    if kind != NO_BYTES and offset + size > len(content):
        raise ValueError("a section ends behind the file")
    return Section(_text(content, names, names_size, name), kind, flags, offset, size, link, info)


def _symbols(content: bytes, table: Section, strings: Section) -> Iterator[Symbol]:
    for name, info, _, home, value, _ in _SYMBOL.iter_unpack(_bytes(content, table)):
        text = _text(content, strings.offset, strings.size, name)
        yield Symbol(text, info >> 4, info & 15, home, value)


def _bytes(content: bytes, section: Section) -> bytes:
    return content[section.offset : section.offset + section.size]


def _text(content: bytes, start: int, size: int, offset: int) -> str:
    begin = start + offset
    return content[begin : content.index(b"\0", begin, min(begin + _NAME_BYTES, start + size))].decode()
