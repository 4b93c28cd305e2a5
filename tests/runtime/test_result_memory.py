"""The memory of large results: lent again when nothing holds it, and never before."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.runtime.blocks import LEAST_LENT
from tests.runtime.kernels import DOUBLE
from tests.runtime.sketch import Sketch

N = symbol("n")
LARGE = LEAST_LENT // 4

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def only_what_a_test_makes() -> None:
    """That is what is collected: to look through all that thousands of tests have left takes half a second."""
    gc.freeze()


def doubled(outputs: int = 1) -> Program:
    """A program of `2 * x`, so many times."""
    sketch = Sketch(symbols={"n": (0, 1 << 24)})
    x = sketch.buffer([N], "input")
    for _ in range(outputs):
        sketch.elementwise(DOUBLE, "double_it", [x, sketch.buffer([N], "output")])
    return sketch.program()


def ones(n: int = LARGE) -> Array:
    return np.ones(n, np.float32)


def test_memory_of_a_result_that_nothing_holds_is_lent_again() -> None:
    program = doubled()
    first = program(ones(), n=LARGE)[0].ctypes.data
    assert program(ones(), n=LARGE)[0].ctypes.data == first


def test_calls_in_a_loop_that_keep_the_last_result_go_between_two_blocks() -> None:
    program = doubled()
    result, seen = program(ones(), n=LARGE)[0], set[int]()
    for _ in range(6):
        seen.add(result.ctypes.data)
        result = program(result, n=LARGE)[0]
    assert len(seen) == 2
    np.testing.assert_array_equal(result, np.full(LARGE, 128, np.float32))


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[1:],
        lambda array: array.reshape(2, -1)[1].T,
        lambda array: array.view(np.uint32),
        np.asarray,
        lambda array: np.from_dlpack(array),
        memoryview,
        lambda array: array.base,
        lambda array: array.ctypes,
    ],
    ids=["array", "slice", "view of a view", "other dtype", "asarray", "dlpack", "memoryview", "base", "ctypes"],
)
def test_references_to_a_result_keep_its_memory(hold: Callable[[Array], object]) -> None:
    program = doubled()
    (result,) = program(ones(), n=LARGE)
    address, held = result.ctypes.data, hold(result)
    del result
    gc.collect()
    assert program(ones(), n=LARGE)[0].ctypes.data != address
    del held
    gc.collect()
    assert address in {program(ones(), n=LARGE)[0].ctypes.data for _ in range(2)}


def test_results_outlive_their_program() -> None:
    results = [doubled()(ones(), n=LARGE)[0] for _ in range(3)]
    gc.collect()
    for result in results:
        np.testing.assert_array_equal(result, ones() * 2)


def test_a_program_keeps_no_more_idle_memory_than_a_call_and_one_result() -> None:
    program, n = doubled(outputs=2), 1 << 20
    tracemalloc.start()
    try:
        held = [program(ones(n), n=n) for _ in range(5)]
        del held
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept == pytest.approx(3 * 4 * n, rel=0.1)


def test_a_result_is_aligned_and_belongs_to_its_holder() -> None:
    (result,) = doubled()(ones(LARGE + 3), n=LARGE + 3)
    assert result.ctypes.data % 64 == 0
    assert result.flags.writeable
    result[:] = 0
    assert not result.any()


def test_threads_never_share_the_memory_of_a_result() -> None:
    program, wrong = doubled(), list[int]()

    def call(number: int) -> None:
        values = np.full(LARGE, number, np.float32)
        for _ in range(30):
            first, second = program(values, n=LARGE)[0], program(values + 1, n=LARGE)[0]
            if not ((first == 2 * number).all() and (second == 2 * number + 2).all()):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
