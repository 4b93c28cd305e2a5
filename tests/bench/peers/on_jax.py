"""The rows in JAX, for its own compiler (XLA) and, as StableHLO, for IREE's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench.peers.engine import Compile, Engine, Task, row_of
from tests.bench.peers.workloads import EPSILON


def chain(x: Any) -> Any:
    return jnp.where(x > 0, jnp.exp2(x) * 0.5 + jnp.sqrt(jnp.abs(x)), x * x - 1)


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON) * scale + bias


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


def convolution(x: Any, weight: Any) -> Any:
    names = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, weight, (1, 1), ((1, 1), (1, 1)), dimension_numbers=names)


def product(a: Any, b: Any) -> Any:
    return a @ b


ROWS: dict[str, Callable[..., Any]] = {
    "E1_1M": chain,
    "E1_16M": chain,
    "E2": lambda x, bias: jax.nn.relu(x + bias),
    "R1": lambda x: x.sum(-1),
    "R2": lambda x: x.sum(0),
    "R3": lambda x: x.sum(),
    "S1": softmax,
    "L1": layer_norm,
    **dict.fromkeys(("M1_512", "M1_1024", "M1_2048", "M2", "M3"), product),
    "P1": lambda x, w1, b1, w2, b2: softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2),
    "A1": lambda q, k, v: softmax(q @ jnp.swapaxes(k, -1, -2) / 8) @ v,
    "C1": convolution,
    "T1": jnp.transpose,
    "G1": lambda table, places: table[places],
    "O1": lambda a, b: a + b,
}


def engine(cores: int, variant: str) -> Engine:
    """JAX, with one thread per available processor. Its arrays are copies with its own alignment."""

    def write(task: Task) -> Compile:
        function = row_of(ROWS, task, "reads no ONNX")

        def compile_row(constants: Any) -> Any:
            compiled = jax.jit(lambda *inputs: function(*inputs))
            return lambda *inputs: compiled(*inputs).block_until_ready()

        return compile_row

    return Engine(jax.__version__, write, place=lambda array: jax.device_put(array).block_until_ready())
