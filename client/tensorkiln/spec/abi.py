"""Versions of the interface between compiled code and the runtime."""

from __future__ import annotations

ABI_VERSION = 1
ABI_OF_LOOPS = 2
"""The version for programs with loops, which older runtimes refuse."""
ABI_IN_PLACE = 3
"""The version for programs whose loops update carried values in place, in the body or from one loop to its result."""
ABI_PREPARED = 4
"""The version for programs with loops whose bodies prepare values that all turns read."""
KNOWN_ABIS = (ABI_VERSION, ABI_OF_LOOPS, ABI_IN_PLACE, ABI_PREPARED)
