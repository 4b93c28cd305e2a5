"""Kernels split over threads, and programs called from several threads."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tensorkiln.expr import Dim, symbol
from tensorkiln.program import Program
from tensorkiln.schedule import ItemAnalysis
from tests.runtime.kernels import CHUNK, DOUBLE, INCREMENT, elementwise
from tests.runtime.sketch import Sketch

N = symbol("n")


def chain(threads: int, *, est_ns: int = 0, flops: Dim = 0) -> Program:
    """`2 * x + 1` by two kernels; `est_ns` and `flops` are what the analysis says of each."""
    sketch = Sketch(symbols={"n": (1, 1 << 23)})
    x, between, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, between])
    sketch.elementwise(INCREMENT, "increment", [between, out])
    if est_ns:
        sketch.analysis = [ItemAnalysis(item_id=item, est_ns=est_ns, flops=flops) for item in range(2)]
    return sketch.program(threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 16, 17, 1000, 100_003])
def test_the_number_of_threads_does_not_change_the_result(threads: int, count: int) -> None:
    values = np.random.default_rng(0).random(count, np.float32)
    program = chain(threads, est_ns=1 << 30)
    assert program.profile(values, n=count)[0].threads == min(threads, -(-count // CHUNK))
    np.testing.assert_array_equal(program(values, n=count)[0], values + values + 1)


def test_every_work_group_runs_exactly_once() -> None:
    sketch = Sketch(symbols={"n": (1, 1 << 22)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    # The kernel adds to what the first kernel left, so that a group run twice would count twice.
    body = "  %o = getelementptr float, ptr %p1, i64 %i\n  %old = load float, ptr %o\n  %y = fadd float %old, %x0"
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    sketch.elementwise(elementwise("accumulate", 1, body), "accumulate", [x, out])
    sketch.analysis = [ItemAnalysis(item_id=item, est_ns=1 << 40) for item in range(2)]
    values = np.ones(50_000, np.float32)
    assert np.unique(sketch.program(threads=7)(values, n=50_000)[0]).tolist() == [3.0]


def test_a_small_kernel_stays_on_the_calling_thread() -> None:
    program = chain(8)
    assert [item.threads for item in program.profile(np.zeros(1000, np.float32), n=1000)] == [1, 1]


@pytest.mark.parametrize(("us", "threads"), [(1, 1), (39, 1), (41, 2), (61, 3), (60_000, 8)])
def test_a_kernel_of_less_than_40_microseconds_has_one_thread(us: int, threads: int) -> None:
    program = chain(8, est_ns=1000 * us)
    values = np.zeros(1000, np.float32)
    assert [item.threads for item in program.profile(values, n=1000)] == [threads, threads]


def test_an_estimate_at_the_largest_size_is_scaled_to_the_size_of_the_call() -> None:
    program = chain(8, est_ns=320_000, flops=2 * N)
    for count, threads in ((1 << 17, 1), (1 << 21, 4), (1 << 23, 8)):
        assert [item.threads for item in program.profile(np.zeros(count, np.float32), n=count)] == [threads] * 2


def test_a_large_kernel_is_split_by_the_bytes_it_touches() -> None:
    count = 1 << 23
    program = chain(4)
    assert [item.threads for item in program.profile(np.zeros(count, np.float32), n=count)] == [4, 4]


def test_one_work_group_is_never_split() -> None:
    program = chain(8, est_ns=1 << 40)
    assert [item.threads for item in program.profile(np.zeros(CHUNK, np.float32), n=CHUNK)] == [1, 1]


def test_a_program_called_from_many_threads_gives_each_its_own_result() -> None:
    program = chain(2, est_ns=1 << 40)
    start = threading.Barrier(8)

    def caller(seed: int) -> bool:
        values = np.random.default_rng(seed).random(10_000 + 7 * seed, np.float32)
        start.wait()
        results = [program(values, n=len(values))[0] for _ in range(30)]
        return all(np.array_equal(result, values + values + 1) for result in results)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(caller, range(8)))


def test_fewer_than_one_thread_is_refused() -> None:
    with pytest.raises(ValueError, match="threads must be 1 or more, got 0"):
        chain(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_still_split_kernels() -> None:
    program = chain(2, est_ns=1 << 40)
    values = np.ones(1000, np.float32)
    program(values, n=1000)
    child = os.fork()
    if not child:
        ok = np.array_equal(program(values, n=1000)[0], values * 3)
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
