"""How long an item takes on one core of a CPU, from what it computes and what it moves."""

from __future__ import annotations

from typing import Final

NS_PER_OPERATION: Final = 0.012
"""Of 32 bits, in the vectors of AVX-512: products of matrices took 0.010 ns, activations 0.010 to 0.016."""
NS_PER_CACHED_BYTE: Final = 0.0125
"""Sums and maps of up to 16 MiB stream at 70 to 80 GB/s when they are called again and again."""
NS_PER_BYTE: Final = 0.05
"""Those of 32 and 64 MiB at 50 and 32 GB/s, all bytes counted."""
CACHED_BYTES: Final = 16 << 20


def core_ns(operations: int, moved: int) -> int:
    """Nanoseconds for `operations` in the measure of `ItemAnalysis.flops`, and `moved` bytes read and written."""
    cached = min(moved, CACHED_BYTES)
    streamed = cached * NS_PER_CACHED_BYTE + (moved - cached) * NS_PER_BYTE
    return int(max(operations * NS_PER_OPERATION, streamed))
