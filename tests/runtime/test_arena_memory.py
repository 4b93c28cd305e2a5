"""Temporaries, outputs and scratch of a program: where they lie and what they cost."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.dtypes import DType
from tensorkiln.expr import symbol
from tensorkiln.schedule import ItemAnalysis
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT, triangle_with_scratch
from tests.runtime.sketch import Sketch

N = symbol("n")


def chain(length: int) -> Sketch:
    """`x`, doubled `length` times, every intermediate needed by the next item only."""
    sketch = Sketch(symbols={"n": (0, 1 << 22)})
    value = sketch.buffer([N], "input")
    for step in range(length - 1):
        after = sketch.buffer([N], lifetime=(step, step + 1))
        sketch.elementwise(DOUBLE, "double_it", [value, after])
        value = after
    sketch.elementwise(DOUBLE, "double_it", [value, sketch.buffer([N], "output")])
    return sketch


def test_a_chain_of_kernels_computes_through_temporaries() -> None:
    values = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(chain(9).program()(values, n=1000)[0], values * 512)


def test_a_chain_of_temporaries_takes_the_room_of_two() -> None:
    n = 1 << 16
    planned = chain(20).program().planned_peak_bytes(n=n)
    assert planned == 4 * n * 3, "two temporaries and the output"


def test_a_branch_keeps_its_value_until_it_is_used() -> None:
    sketch = Sketch(symbols={"n": (1, 4096)})
    x = sketch.buffer([N], "input")
    kept = sketch.buffer([N], lifetime=(0, 4))
    sketch.elementwise(INCREMENT, "increment", [x, kept])
    value = x
    for step in range(3):
        after = sketch.buffer([N], lifetime=(step + 1, step + 2))
        sketch.elementwise(DOUBLE, "double_it", [value, after])
        value = after
    sketch.elementwise(ADD, "add", [kept, value, sketch.buffer([N], "output")])
    values = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(sketch.program()(values, n=100)[0], values + 1 + values * 8)


def peak_of(call: Callable[[], object]) -> int:
    """Bytes that NumPy and Python allocated on top of what there was, as tracemalloc saw them."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_the_planned_peak_is_what_a_call_really_allocates_within_a_tenth() -> None:
    n = 1 << 20
    values = np.ones(n, np.float32)
    program = chain(6).program()
    planned = program.planned_peak_bytes(n=n)
    traced = peak_of(lambda: program(values, n=n))
    assert traced == pytest.approx(planned, rel=0.1)
    assert program.measured_peak_bytes == pytest.approx(planned, rel=0.1)
    assert program.measured_peak_bytes == pytest.approx(traced, rel=0.01)


def test_the_measured_peak_is_zero_before_the_first_call() -> None:
    assert chain(2).program().measured_peak_bytes == 0


def test_the_arena_stays_warm_between_calls() -> None:
    n = 1 << 20
    values = np.ones(n, np.float32)
    program = chain(6).program()
    held = program(values, n=n)
    again = peak_of(lambda: program(values, n=n))
    assert again == pytest.approx(4 * n, rel=0.1), "only the output is allocated anew"
    del held


def test_a_size_that_grows_a_little_reuses_the_arena() -> None:
    program = chain(6).program()
    n = 1 << 20
    program(np.ones(n, np.float32), n=n)
    longer = np.ones(n + 1000, np.float32)
    assert peak_of(lambda: program(longer, n=n + 1000)) == pytest.approx(4 * n, rel=0.1)


def test_a_much_smaller_size_does_not_hold_the_large_arena() -> None:
    program = chain(6).program()
    program(np.ones(1 << 20, np.float32), n=1 << 20)
    program(np.ones(1 << 14, np.float32), n=1 << 14)
    assert program.measured_peak_bytes == pytest.approx(program.planned_peak_bytes(n=1 << 14), rel=0.1)


def test_scratch_is_private_to_a_worker_and_counted_for_each() -> None:
    count, groups = 1000, 64
    sketch = Sketch()
    out = sketch.buffer([groups], "output", DType.INT64)
    scratch = sketch.buffer([count], "scratch", DType.INT64)
    sketch.launch(triangle_with_scratch(count), "triangle", [out, scratch], outs=(0, 1), groups=groups)
    expected = [count * count * g + count * (count - 1) // 2 for g in range(groups)]
    for threads in (1, 4):
        # The estimate of the work has to be large enough for the item to be split.
        program = sketch_with_estimate(sketch).program(threads=threads)
        for _ in range(5):
            assert program()[0].tolist() == expected
        assert program.planned_peak_bytes() == threads * 8000 + 8 * groups
        assert program.profile()[0].threads == threads


def sketch_with_estimate(sketch: Sketch) -> Sketch:
    sketch.analysis = [ItemAnalysis(item_id=item, est_ns=10_000_000) for item in range(len(sketch.operations))]
    return sketch
