"""The rows as fused loops compiled by numba, without products, which numba would take from SciPy's BLAS."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import prange

from tests.bench.peers.engine import Compile, Engine, Task, row_of

ZERO, ONE, HALF, EPSILON = np.float32(0), np.float32(1), np.float32(0.5), np.float32(1e-5)
BLOCK, STRIP, TILE = 4096, 64, 16

FAST = {"reassoc", "contract", "nsz", "arcp", "afn"}
"""Fast-math flags that all peers may use: sums in any order, no signed zeros; NaN and infinity are preserved."""


def chain(x: Any) -> Any:
    y = np.empty_like(x)
    for i in prange(x.size):
        v = x[i]
        y[i] = np.exp2(v) * HALF + np.sqrt(np.abs(v)) if v > ZERO else v * v - ONE
    return y


def add_relu(x: Any, bias: Any) -> Any:
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = max(x[i, j] + bias[j], ZERO)
    return y


def row_sums(x: Any) -> Any:
    y = np.empty(x.shape[0], np.float32)
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total
    return y


def column_sums(x: Any) -> Any:
    y = np.zeros(x.shape[1], np.float32)
    for strip in prange(x.shape[1] // STRIP):
        for i in range(x.shape[0]):
            for j in range(strip * STRIP, (strip + 1) * STRIP):
                y[j] += x[i, j]
    return y


def full_sum(x: Any) -> Any:
    parts = np.empty(x.size // BLOCK, np.float32)
    for block in prange(parts.size):
        total = ZERO
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            total += x[i]
        parts[block] = total
    return parts.sum()


def softmax(x: Any) -> Any:
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        largest = np.float32(-np.inf)
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = ZERO
        for j in range(x.shape[1]):
            power = np.exp(x[i, j] - largest)
            y[i, j] = power
            total += power
        factor = ONE / total
        for j in range(x.shape[1]):
            y[i, j] *= factor
    return y


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    y = np.empty_like(x)
    part = ONE / np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        mean, squares = total * part, ZERO
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = ONE / np.sqrt(squares * part + EPSILON)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * factor * scale[j] + bias[j]
    return y


def transposed(x: Any) -> Any:
    y = np.empty((x.shape[1], x.shape[0]), np.float32)
    for block in prange(x.shape[0] // TILE):
        for column in range(0, x.shape[1], TILE):
            for j in range(column, column + TILE):
                for i in range(block * TILE, (block + 1) * TILE):
                    y[j, i] = x[i, j]
    return y


def rows_of(table: Any, places: Any) -> Any:
    y = np.empty((places.size, table.shape[1]), np.float32)
    for i in prange(places.size):
        place = places[i]
        for j in range(table.shape[1]):
            y[i, j] = table[place, j]
    return y


def add(a: Any, b: Any) -> Any:
    y = np.empty_like(a)
    for i in range(a.size):
        y[i] = a[i] + b[i]
    return y


ROWS = {
    "E1_1M": chain,
    "E1_16M": chain,
    "E2": add_relu,
    "R1": row_sums,
    "R2": column_sums,
    "R3": full_sum,
    "S1": softmax,
    "L1": layer_norm,
    "T1": transposed,
    "G1": rows_of,
    "O1": add,
}


def engine(cores: int, variant: str) -> Engine:
    """numba on `cores` threads."""
    is_parallel = cores > 1

    def write(task: Task) -> Compile:
        reason = "its products are those of a BLAS" if task.model is None else "reads no ONNX"
        function = row_of(ROWS, task, reason)
        return lambda constants: numba.njit(function, fastmath=FAST, parallel=is_parallel and function is not add)

    return Engine(numba.__version__, write)
