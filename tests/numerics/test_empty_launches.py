"""Kernels whose tensors are empty, run as their launch sizes say: one work-group, which writes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, matmul, relu, softmax
from tensorkiln.expr import Dim
from tensorkiln.runtime.cpu import load_kernels
from tests.compiled import compiled

UNTOUCHED = 7.0
GRAPHS: dict[str, Callable[[Builder, Dim], Tensor]] = {
    "map": lambda b, n: relu(b.input("float32", (n, 4))),
    "rows": lambda b, n: softmax(b.input("float32", (n, 64)), -1),
    "product": lambda b, n: relu(matmul(b.input("float32", (n, 8)), b.input("float32", (8, 16)))),
    "batch": lambda b, n: relu(matmul(b.input("float32", (n, 4, 8)), b.input("float32", (n, 8, 16)))),
    "columns": lambda b, n: relu(matmul(b.input("float32", (4, 8)), b.input("float32", (8, n)))),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_work_group_of_an_empty_result_writes_nothing(name: str) -> None:
    b = Builder(name)
    b.output(GRAPHS[name](b, b.symbol("n", 0, 64)))
    made = compiled(b.graph())
    kernels = load_kernels(made.program, made.artifacts.__getitem__)
    assert kernels
    for kernel, spec in zip(kernels, made.program.kernels, strict=True):
        memory = [np.full(1 << 17, UNTOUCHED, dtype=np.float32) for _ in spec.buffers]
        launch = spec.launch_dims({"n": 0})
        kernel.execute([array.ctypes.data for array in memory], [0] * len(spec.var_names), launch.global_size)
        for number, array in zip(spec.buffers, memory, strict=True):
            buffer = made.program.buffers[number]
            assert buffer.role == "scratch" or np.all(array == UNTOUCHED), buffer
