"""Rules for the object code of kernels. The compiler emits, and the SDK loads, nothing else.

A kernel is called only through its entry, keeps no state, and needs only three C functions, which move bytes. Any other
code that a loader or the C library would run, look up or resolve is refused, by the headers of the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .elf import NO_BYTES, RELOCATIONS, SYMBOL_TABLE, UNDEFINED, ElfObject, Section, Symbol

LOADABLE_SYMBOLS: Final = frozenset({"memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"})
"""Symbols that the C library of every process provides; the last is defined by the linker."""

X86_64: Final = 62
AARCH64: Final = 183

_RELOCATABLE: Final = 1
_STRINGS, _DATA, _EMPTY = 3, 1, 0
_UNWIND: Final = 0x70000001
_ADDRESSED: Final = 0x6FFF4C03
_KINDS: Final = frozenset({_EMPTY, _DATA, SYMBOL_TABLE, _STRINGS, RELOCATIONS, NO_BYTES, _UNWIND, _ADDRESSED})
"""Allowed section kinds. Excludes constructors and destructors, dynamic linking, and groups."""
_RUN_BY_LOADERS: Final = (".init", ".fini", ".ctors", ".dtors", ".preinit_array")
_WRITABLE: Final = 1
_EXECUTABLE: Final = 4
_THREAD_LOCAL: Final = 1 << 10

_BINDINGS: Final = frozenset({0, 1, 2})
"""Allowed symbol bindings: local, global and weak."""
_FILE: Final = 4
_SYMBOL_KINDS: Final = frozenset({0, 1, 2, 3, _FILE})
"""Allowed symbol types: none, data, function, section, file. Excludes common, thread-local and indirect functions."""
_ABSOLUTE: Final = 0xFFF1

_WIDTHS: Final = {
    X86_64: {1: 8, 24: 8, 25: 8} | dict.fromkeys((2, 4, 9, 26, 41, 42), 4),
    AARCH64: {257: 8, 260: 8} | dict.fromkeys((261, *range(274, 281), *range(282, 287), 299, 311, 312), 4),
}
"""The allowed relocation types by machine, with the bytes that each changes (processor supplements of the ABI).

They are addresses of data and code: absolute, PC-relative, page-relative, or through the global offset table. Excludes
thread-local storage, indirect functions and dynamic linking.
"""


def foreign_symbols(code: ElfObject) -> list[str]:
    """The undefined symbols, sorted, that are not in `LOADABLE_SYMBOLS`."""
    return sorted({symbol.name for symbol in code.symbols[1:] if symbol.home == UNDEFINED} - LOADABLE_SYMBOLS)


def object_problems(code: ElfObject) -> list[str]:
    """Violations of the rules, except foreign symbols, each listed once. ValueError when the object is malformed."""
    found: dict[str, None] = {}
    if code.kind != _RELOCATABLE:
        found[f"a file of type {code.kind}, not a relocatable object"] = None
    for section in code.sections:
        found |= dict.fromkeys(_of_section(section))
    for symbol in code.symbols:
        found |= dict.fromkeys(_of_symbol(symbol, code))
    relocations = [section for section in code.sections if section.kind == RELOCATIONS]
    if sum(section.size for section in relocations) > len(code.content):
        found["sections of relocations that overlap"] = None
        return list(found)
    for section in relocations:
        found |= dict.fromkeys(_of_relocations(section, code))
    return list(found)


def _of_section(section: Section) -> Iterator[str]:
    if section.name.startswith(_RUN_BY_LOADERS):
        yield f"the section {section.name}, which loaders run"
    elif section.kind not in _KINDS:
        yield f"the section {section.name} of kind {section.kind:#x}"
    if section.flags & _WRITABLE and section.flags & _EXECUTABLE:
        yield f"the section {section.name}, which is writable and executable"
    if section.flags & _THREAD_LOCAL:
        yield f"the section {section.name}, which is thread-local"


def _of_symbol(symbol: Symbol, code: ElfObject) -> Iterator[str]:
    if symbol.kind not in _SYMBOL_KINDS:
        yield f"the symbol {symbol.name} of kind {symbol.kind}"
    elif symbol.binding not in _BINDINGS:
        yield f"the symbol {symbol.name} of binding {symbol.binding}"
    elif symbol.home >= len(code.sections):
        if (symbol.home, symbol.kind) != (_ABSOLUTE, _FILE):
            yield f"the symbol {symbol.name} in no section"
    elif symbol.home != UNDEFINED and symbol.value > code.sections[symbol.home].size:
        yield f"the symbol {symbol.name} outside its section"


def _of_relocations(section: Section, code: ElfObject) -> Iterator[str]:
    widths = _WIDTHS.get(code.machine, {})
    if not 0 < section.info < len(code.sections):
        yield f"the section {section.name} of relocations of no section"
        return
    size = code.sections[section.info].size
    for offset, symbol, kind in code.relocations(section):
        if kind not in widths:
            yield f"a relocation of type {kind} in {section.name}"
        elif offset + widths[kind] > size:
            yield f"a relocation outside its section in {section.name}"
        elif symbol >= len(code.symbols):
            yield f"a relocation to no symbol in {section.name}"
