"""The rows in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.bench.peers.engine import Compile, Engine, Task, row_of
from tests.bench.peers.workloads import EPSILON, Array, convolution

HALF, ONE, EIGHTH = np.float32(0.5), np.float32(1), np.float32(0.125)


def chain(x: Array) -> Array:
    return np.where(x > 0, np.exp2(x) * HALF + np.sqrt(np.abs(x)), x * x - ONE)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(EPSILON)) * scale + bias


def perceptron(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return softmax(np.maximum(x @ w1 + b1, 0) @ w2 + b2)


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q @ np.swapaxes(k, -1, -2) * EIGHTH) @ v


ROWS: dict[str, Callable[..., Array]] = {
    "E1_1M": chain,
    "E1_16M": chain,
    "E2": lambda x, bias: np.maximum(x + bias, 0),
    "R1": lambda x: x.sum(-1),
    "R2": lambda x: x.sum(0),
    "R3": lambda x: x.sum(),
    "S1": softmax,
    "L1": layer_norm,
    **dict.fromkeys(("M1_512", "M1_1024", "M1_2048", "M2", "M3"), np.matmul),
    "P1": perceptron,
    "A1": attention,
    "C1": convolution,
    "T1": lambda x: np.ascontiguousarray(x.T),
    "G1": lambda table, places: table[places],
    "O1": lambda a, b: a + b,
}


def engine(cores: int, variant: str) -> Engine:
    """NumPy. Products run on `OPENBLAS_NUM_THREADS` threads, all else on one."""
    # Branches that `where` does not select compute roots of negative numbers.
    np.seterr(all="ignore")

    def write(task: Task) -> Compile:
        function = row_of(ROWS, task, "reads no ONNX")
        return lambda constants: function

    return Engine(np.__version__, write)
