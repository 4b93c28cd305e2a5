"""The version of the interface between compiled code and what runs it."""

from __future__ import annotations

ABI_VERSION = 1
ABI_OF_LOOPS = 2
"""Of programs with loops, which what runs programs of before does not know."""
KNOWN_ABIS = (ABI_VERSION, ABI_OF_LOOPS)
