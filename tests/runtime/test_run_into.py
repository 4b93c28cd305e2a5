"""Results that are written to arrays of the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.expr import mul, symbol
from tensorkiln.program import Program
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.sketch import Sketch
from tests.runtime.test_items import sort_item

N = symbol("n")
LEFT = 100

Array = np.ndarray[Any, Any]


def sums(threads: int = 1) -> Program:
    """A program of `x + y` and `2 * y`."""
    sketch = Sketch(symbols={"n": (0, 1 << 20)})
    x, y = sketch.buffer([N], "input"), sketch.buffer([N], "input")
    sketch.elementwise(ADD, "add", [x, y, sketch.buffer([N], "output")])
    sketch.elementwise(DOUBLE, "double_it", [y, sketch.buffer([N], "output")])
    return sketch.program(threads=threads)


def ones(n: int) -> Array:
    return np.ones(n, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_in_the_arrays_and_nowhere_beside_them(threads: int) -> None:
    program = sums(threads)
    around = np.full((2, 110_000), -1, np.float32)
    for n in (1, 17, 100_000):
        around[:] = -1
        out = [around[row, 3 : 3 + n] for row in (0, 1)]
        for _ in range(3):
            program.run_into(out, ones(n), 4 * ones(n), n=n)
            np.testing.assert_array_equal(around[0], np.r_[[-1] * 3, [5] * n, [-1] * (110_000 - 3 - n)])
            np.testing.assert_array_equal(around[1], np.r_[[-1] * 3, [8] * n, [-1] * (110_000 - 3 - n)])


def test_a_call_takes_no_memory_for_results_that_are_given() -> None:
    program = sums()
    program.run_into([ones(1000), ones(1000)], ones(1000), ones(1000), n=1000)
    assert program.measured_peak_bytes < 4000 < program.planned_peak_bytes(n=1000)


def test_results_without_elements_are_written_nowhere() -> None:
    sums().run_into([ones(0), ones(0)], ones(0), ones(0), n=0)


def test_a_result_in_a_larger_storage_is_copied_out_of_it() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    low = sketch.buffer([N], "output", alias_group=7)
    high = sketch.buffer([N], alias_group=7, offset=mul(4, N))
    sketch.elementwise(DOUBLE, "double_it", [x, low])
    sketch.elementwise(INCREMENT, "increment", [low, high])
    around = np.zeros(30, np.float32)
    sketch.program().run_into([around[:9]], ones(9), n=9)
    assert around.tolist() == [2] * 9 + [0] * 21


def test_results_that_no_kernel_writes_are_copied() -> None:
    sketch = Sketch(symbols={"n": (3, 3)})
    x = sketch.buffer([N], "input")
    doubled = sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.bind(x, sketch.outputs)
    sketch.bind(doubled, sketch.outputs)
    out = [np.zeros(3, np.float32) for _ in range(3)]
    sketch.program().run_into(out, np.arange(3, dtype=np.float32), n=3)
    assert [array.tolist() for array in out] == [[0, 2, 4], [0, 1, 2], [0, 2, 4]]


def test_a_host_callback_writes_its_result_there() -> None:
    sketch = Sketch(symbols={"n": (4, 4)})
    x, result = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.operations.append(sort_item(x, result))
    out = np.zeros(4, np.float32)
    sketch.program().run_into([out], np.array([3, 1, 2, 0], np.float32), n=4)
    assert out.tolist() == [0, 1, 2, 3]


def test_a_bound_program_writes_there_too_but_not_over_what_is_bound() -> None:
    weights = ones(5)
    program = sums().bind({LEFT: weights})
    out = [np.zeros(5, np.float32), np.zeros(5, np.float32)]
    program.run_into(out, 2 * ones(5), n=5)
    assert (out[0].tolist(), out[1].tolist()) == ([3] * 5, [4] * 5)
    with pytest.raises(CallInputError, match="output 1 shares memory with an array that the call reads"):
        program.run_into([out[0], weights], ones(5), n=5)
    assert weights.tolist() == [1] * 5


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([ones(4)], "the program has 2 outputs, got 1 arrays for them"),
        ([ones(4), ones(4), ones(4)], "has 2 outputs, got 3 arrays"),
        ([ones(4), [0.0] * 4], "the array for output 1 is a list; pass a NumPy array of dtype float32"),
        ([ones(4), np.ones(4)], r"output 1 has the dtype float64 and the shape \(4,\), but the output has float32"),
        (
            [ones(5), ones(4)],
            r"output 0 has the dtype float32 and the shape \(5,\), but the output has float32 and \(4,\)",
        ),
        ([ones(4), ones(8)[::2]], "output 1 is not C-contiguous; pass an array as numpy.empty makes it"),
        ([_read_only(ones(4)), ones(4)], "output 0 is not writeable"),
        ([np.ones(17, np.uint8)[1:].view(np.float32), ones(4)], "output 0 is not aligned"),
    ],
    ids=["too few", "too many", "a list", "dtype", "shape", "strides", "read-only", "misaligned"],
)
def test_an_array_that_does_not_fit_is_refused_before_anything_runs(out: list[Any], message: str) -> None:
    before = [np.array(array) for array in out]
    with pytest.raises(CallInputError, match=message):
        sums().run_into(out, 7 * ones(4), 7 * ones(4), n=4)
    for array, kept in zip(out, before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_arrays_that_share_memory_are_refused() -> None:
    program, shared = sums(), np.zeros(12, np.float32)
    with pytest.raises(CallInputError, match="output 1 shares memory with that for output 0"):
        program.run_into([shared[:8], shared[4:]], ones(8), ones(8), n=8)
    with pytest.raises(CallInputError, match="output 0 shares memory with an array that the call reads"):
        program.run_into([shared[:8], ones(8)], shared[4:], ones(8), n=8)
    program.run_into([shared[:4], shared[8:]], shared[4:8], ones(4), n=4)
    assert shared.tolist() == [1] * 4 + [0] * 4 + [2] * 4


def test_an_input_that_is_copied_may_be_what_is_written() -> None:
    """A view with strides is read from a copy, which is made before anything runs."""
    values = np.arange(8, dtype=np.float32)
    sums().run_into([values[:4], ones(4)], values[::2], ones(4), n=4)
    assert values.tolist() == [1, 3, 5, 7, 4, 5, 6, 7]


def test_symbols_are_checked_as_for_a_call() -> None:
    with pytest.raises(CallBoundsError, match="the symbol n is missing"):
        sums().run_into([ones(4), ones(4)], ones(4), ones(4))
