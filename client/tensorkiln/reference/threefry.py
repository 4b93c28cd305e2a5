"""Threefry-2x32 with 20 rounds (Salmon et al. 2011), as in Random123, JAX and tinygrad."""

from __future__ import annotations

import numpy as np

from ..dtypes import DType
from ..nodes import Threefry
from .precision import Array
from .scope import Evaluator, Scope

_PARITY = np.uint32(0x1BD11BDA)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def evaluate_threefry(node: Threefry, scope: Scope) -> Array:
    """uint64 counters and keys, low word first; or int32 pairs (low, high) on a last axis of 2."""
    counter, key = scope.read(node.ctr_var), scope.read(node.key_var)
    if scope.dtype(node.ctr_var) is DType.UINT64:
        low, high = threefry(_low(counter), _high(counter), _low(key), _high(key))
        return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    counter, key = counter.astype(np.uint32), key.astype(np.uint32)
    words = threefry(counter[..., 0], counter[..., 1], key[..., 0], key[..., 1])
    return np.stack(words, axis=-1).astype(np.int32)


def threefry(low: Array, high: Array, key_low: Array, key_high: Array) -> tuple[Array, Array]:
    """The two output words of uint32 counter and key words; all arithmetic wraps."""
    schedule = (key_high, key_low ^ key_high ^ _PARITY, key_low)
    a, b = low + key_low, high + key_high
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            a = a + b
            b = a ^ _rotated_left(b, rotation)
        a = a + schedule[group % 3]
        b = b + schedule[(group + 1) % 3] + np.uint32(group + 1)
    return a, b


def _rotated_left(x: Array, amount: int) -> Array:
    return (x << np.uint32(amount)) | (x >> np.uint32(32 - amount))


def _low(x: Array) -> Array:
    return (x & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _high(x: Array) -> Array:
    return (x >> np.uint64(32)).astype(np.uint32)


EVALUATORS: dict[type, Evaluator] = {Threefry: evaluate_threefry}
