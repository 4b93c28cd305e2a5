"""Threefry-2x32 with 20 rounds (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)."""

from __future__ import annotations

from dialect.mlir import ir

from .form import I32, I64
from .number import Number

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(counter: ir.Value, key: ir.Value) -> ir.Value:
    """The 64 random bits for a 64-bit counter and key; the first word of each is the lower half."""
    low, high = _words(counter)
    first, second = _words(key)
    keys = (second, first ^ second ^ _PARITY, first)
    a, b = low + first, high + second
    for group in range(5):
        for amount in _ROTATIONS[group % 2]:
            a = a + b
            b = a ^ ((b << amount) | (b >> (32 - amount)))
        a = a + keys[group % 3]
        b = b + keys[(group + 1) % 3] + (group + 1)
    return ((b.zero_extended(I64) << 32) | a.zero_extended(I64)).value


def _words(value: ir.Value) -> tuple[Number, Number]:
    number = Number(value, I64)
    return number.truncated(I32), (number >> 32).truncated(I32)
