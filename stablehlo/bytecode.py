"""Removal of an unknown dialect's attributes from MLIR bytecode, in place.

The format is https://mlir.llvm.org/docs/BytecodeFormat/: sections with variable-length integers. Only the sections of
strings, dialects and attributes are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS = range(4)
"""The section numbers that this module needs."""
_ALIGNED: Final = 0x80
_FIRST: Final = 4
"""The offset of the version; `read_artifact` checks the magic bytes before it."""


class BytecodeError(ValueError):
    """The bytecode is damaged, or lacks the dialect."""


def without_attributes_of(dialect: str, bytecode: bytes) -> bytes:
    """The module with each attribute of the dialect replaced by an empty list, or by 0 if it has only two bytes.

    Attributes are stored in a table and referenced by number. The list is stored as text, padded with spaces to the
    attribute's size. BytecodeError if the module is damaged.
    """
    changed = bytearray(bytecode)
    sections = _sections(bytecode)
    if not {_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS} <= sections.keys():
        raise BytecodeError("a table is missing")
    own = _number_of(dialect.encode(), bytecode, sections)
    at, end = sections[_OFFSETS].start, sections[_OFFSETS].stop
    (attributes, at), place = _number(bytecode, at, end), sections[_ATTRIBUTES].start
    _, at = _number(bytecode, at, end)
    seen = 0
    while seen < attributes:
        owner, at = _number(bytecode, at, end)
        count, at = _number(bytecode, at, end)
        if count > attributes - seen:
            raise BytecodeError("a group has more attributes than there are")
        for _ in range(count):
            entry, after = _number(bytecode, at, end)
            size = entry >> 1
            if place + size > sections[_ATTRIBUTES].stop:
                raise BytecodeError("an attribute reaches beyond their table")
            if owner == own:
                changed[place : place + size] = _neutral(size)
                changed[at:after] = _spelled(size << 1, after - at)
            place, at = place + size, after
        seen += count
    return bytes(changed)


def _neutral(size: int) -> bytes:
    if size < 2:
        raise BytecodeError("an attribute has no room for another")
    return (b"0" if size == 2 else b"[]").ljust(size - 1) + b"\0"


def _sections(data: bytes) -> dict[int, range]:
    """The byte range of each section, by its number."""
    _, at = _number(data, _FIRST, len(data))
    at = data.find(b"\0", at) + 1
    if at == 0:
        raise BytecodeError("the producer's name does not end")
    found: dict[int, range] = {}
    while at < len(data):
        kind, (size, at) = data[at], _number(data, at + 1, len(data))
        if kind & _ALIGNED:
            alignment, at = _number(data, at, len(data))
            if not alignment:
                raise BytecodeError("an alignment is 0")
            at = -(-at // alignment) * alignment
        if at + size > len(data):
            raise BytecodeError("a section reaches beyond the end")
        found[kind & ~_ALIGNED] = range(at, at + size)
        at += size
    return found


def _number_of(name: bytes, data: bytes, sections: dict[int, range]) -> int:
    """The number of a dialect. BytecodeError if the module does not use it."""
    spelled = next((at for at, text in enumerate(_strings(data, sections[_STRINGS])) if text == name), None)
    at, end = sections[_DIALECTS].start, sections[_DIALECTS].stop
    count, at = _number(data, at, end)
    for number in range(count):
        entry, at = _number(data, at, end)
        if entry >> 1 == spelled:
            return number
        if entry & 1:
            # The dialect's version is a nested section: skip it.
            size, at = _number(data, at + 1, end)
            at += size
    raise BytecodeError("the dialect is not there")


def _strings(data: bytes, section: range) -> Iterator[bytes]:
    """The strings. Their lengths precede them, in reverse order."""
    count, at = _number(data, section.start, section.stop)
    if count > len(section):
        raise BytecodeError("there are more texts than bytes")
    sizes: list[int] = []
    for _ in range(count):
        size, at = _number(data, at, section.stop)
        sizes.append(size)
    for size in reversed(sizes):
        if not 0 < size <= section.stop - at:
            raise BytecodeError("a text reaches beyond their table")
        yield data[at : at + size - 1]
        at += size


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A variable-length integer and its end offset; its trailing zero bits are the number of bytes after the first."""
    if at >= end:
        raise BytecodeError("a number is missing")
    first = data[at]
    size = 9 if first == 0 else (first & -first).bit_length()
    if at + size > end:
        raise BytecodeError("a number is cut off")
    if first == 0:
        return int.from_bytes(data[at + 1 : at + size], "little"), at + size
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


def _spelled(number: int, size: int) -> bytes:
    """Encode an integer in exactly `size` bytes."""
    if size == 9:
        return b"\0" + number.to_bytes(8, "little")
    return ((number << 1 | 1) << (size - 1)).to_bytes(size, "little")
