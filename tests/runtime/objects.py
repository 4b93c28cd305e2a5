"""ELF objects put together by hand, so that each breaks one rule."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

TEXT = 6
"""Flags of a section: allocated and executable."""
WRITABLE_CODE = 7
PROGBITS, RELA, REL = 1, 4, 9
FUNCTION, FILE = 2, 4
GLOBAL, WEAK = 1, 2
ABSOLUTE = 0xFFF1


@dataclass(frozen=True)
class Part:
    """A section; `info` numbers the section that relocations change."""

    name: str
    kind: int = PROGBITS
    flags: int = TEXT
    content: bytes = b"\xc3"
    info: int = 0


@dataclass(frozen=True)
class Name:
    """A symbol; `home` is the position of a part counted from 1, 0 for a symbol that is left to the loader."""

    name: str
    home: int = 1
    kind: int = FUNCTION
    binding: int = GLOBAL
    value: int = 0


@dataclass(frozen=True)
class ObjectSketch:
    """An object with these sections; the symbol table and the two tables of names come behind them."""

    parts: Sequence[Part] = (Part(".text"),)
    names: Sequence[Name] = (Name("kernel"),)
    machine: int = 62
    kind: int = 1
    tables: int = 1

    def relocated(self, offset: int = 0, symbol: int = 1, kind: int = 2, target: int = 1) -> ObjectSketch:
        """The same, with a relocation in `.text`."""
        content = struct.pack("<QQq", offset, symbol << 32 | kind, 0)
        return replace(self, parts=(*self.parts, Part(".rela.text", RELA, 0, content, target)))

    def __bytes__(self) -> bytes:
        strings = b"\0" + b"".join(name.name.encode() + b"\0" for name in self.names)
        symbols = bytes(24)
        for name in self.names:
            start = strings.index(name.name.encode() + b"\0") if name.name else 0
            symbols += struct.pack("<IBBHQQ", start, name.binding << 4 | name.kind, 0, name.home, name.value, 0)
        link = 1 + len(self.parts) + self.tables
        tables = [(".symtab", 2, 0, symbols, link, 1)] * self.tables
        listed = [(part.name, part.kind, part.flags, part.content, link - 1, part.info) for part in self.parts]
        every = [*listed, *tables, (".strtab", 3, 0, strings, 0, 0)]
        names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in every) + b".shstrtab\0"
        every.append((".shstrtab", 3, 0, names, 0, 0))
        content, headers, start = b"", bytes(64), 0
        for name, kind, flags, own, linked, info in every:
            offset = 64 + len(content)
            start = names.index(b"\0" + name.encode() + b"\0") + 1
            headers += struct.pack("<IIQQQQIIQQ", start, kind, flags, 0, offset, len(own), linked, info, 1, 24)
            content += own
        count = len(every) + 1
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        fields = (identity, self.kind, self.machine, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, count, count - 1)
        return struct.pack("<16sHHIQQQIHHHHHH", *fields) + content + headers
