"""A program called from several threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tensorkiln.expr import symbol
from tests.runtime.cuda.kernels import DOUBLE, INCREMENT
from tests.runtime.cuda.sketch import CudaSketch

N = symbol("n")
CALLERS = 6


def chain() -> CudaSketch:
    sketch = CudaSketch(symbols={"n": (0, 1 << 16)})
    x, between, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, between])
    sketch.elementwise(INCREMENT, "increment", [between, out])
    return sketch


def test_each_thread_gets_its_own_result() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    start = threading.Barrier(CALLERS)

    def caller(seed: int) -> bool:
        mine = program if seed % 2 else program.on(program(np.ones(1, np.float32), n=1)[0].ready.stream)
        values = np.random.default_rng(seed).random(500 + 7 * seed, np.float32)
        start.wait()
        results = [mine(values, n=len(values))[0] for _ in range(12)]
        (last,) = mine(results[-1], n=len(values))
        once = values * 2 + 1
        return all(np.array_equal(result.numpy(), once) for result in results) and bool(
            np.array_equal(last.numpy(), once * 2 + 1)
        )

    with ThreadPoolExecutor(CALLERS) as pool:
        assert all(pool.map(caller, range(CALLERS)))


def test_the_first_calls_of_many_threads_load_the_code_once() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    start = threading.Barrier(CALLERS)

    def caller(seed: int) -> float:
        start.wait()
        return float(program(np.full(3, seed, np.float32), n=3)[0].numpy()[0])

    with ThreadPoolExecutor(CALLERS) as pool:
        assert list(pool.map(caller, range(CALLERS))) == [2 * seed + 1 for seed in range(CALLERS)]
    assert len(driver.log.loaded) == 2
