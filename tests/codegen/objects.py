"""What the tests ask of an object."""

from __future__ import annotations

from tensorkiln.elf import UNDEFINED, read_object


def undefined_symbols(code: bytes) -> frozenset[str]:
    """Names that an ELF object refers to and does not define."""
    return frozenset(symbol.name for symbol in read_object(code).symbols[1:] if symbol.home == UNDEFINED)
