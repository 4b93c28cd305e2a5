"""The symbols that an ELF object leaves to its loader (System V ABI, generic part, chapter 4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tensorkiln.errors import DiagnosticError

_SYMBOL_TABLE = 2
_UNDEFINED_SECTION = 0
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def undefined_symbols(data: bytes) -> frozenset[str]:
    """Names that a 64-bit little-endian relocatable object refers to and does not define."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise DiagnosticError("the object is not 64-bit little-endian ELF", details={"stage": "codegen"})
    header = _HEADER.unpack_from(data)
    table_offset, entry_size, count = header[6], header[11], header[12]
    sections = [_section(data, table_offset + index * entry_size) for index in range(count)]
    names: set[str] = set()
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            names |= _undefined(data, section, sections[section.link])
    return frozenset(names)


def _section(data: bytes, offset: int) -> _Section:
    _, kind, _, _, start, size, link, _, _, _ = _SECTION.unpack_from(data, offset)
    return _Section(kind, start, size, link)


def _undefined(data: bytes, symbols: _Section, strings: _Section) -> set[str]:
    table = data[symbols.offset : symbols.offset + symbols.size]
    entries = _SYMBOL.iter_unpack(table)
    starts = [strings.offset + name for name, _, _, section, _, _ in entries if section == _UNDEFINED_SECTION and name]
    return {data[start : data.index(b"\0", start)].decode() for start in starts}
