"""The threads that share kernels: they sleep and wake, leave nothing undone, and end with the process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from errno import EAGAIN
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.program import Program
from tensorkiln.runtime.crew import MAX_THREADS, Crew, crew_of
from tests.compiled import compiled
from tests.passes.modules import output
from tests.runtime.test_threads import chain

Array = np.ndarray[Any, Any]

COUNT = 60_000
VALUES = np.random.default_rng(3).random(COUNT, np.float32)


def layers(threads: int) -> Program:
    """Products with scratch for each worker, sums and maps: kernels with and without several workers by turns."""
    b = Builder()
    x, w = b.input("float32", (384, 256)), b.input("float32", (256, 256))
    y = x
    for _ in range(3):
        y = (y @ w).tanh()
        y = y - y.mean((1,), keepdims=True)
    made = compiled(output(b, y))
    return Program(made.program, made.artifacts.__getitem__, threads=threads)


def arrays() -> tuple[Array, Array]:
    """Arguments of the layers."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((384, 256), np.float32), rng.standard_normal((256, 256), np.float32) / 16


def test_a_worker_that_sleeps_takes_part_in_the_next_task() -> None:
    program, many = chain(2, est_ns=1 << 40), np.ones(1 << 22, np.float32)
    program(many, n=many.size)
    lanes: set[int] = set()
    while lanes != {0, 1}:
        time.sleep(0.01)  # a hundred times as long as a worker looks for a task
        lanes |= {span.lane for item in program.profile(many, n=many.size) for span in item.spans}


def test_the_caller_does_the_work_of_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Crew()
    monkeypatch.setattr(crew, "_start_thread", lambda *_: EAGAIN)
    monkeypatch.setattr("tensorkiln.runtime.frame.crew_of", lambda threads: crew.grow(threads) or crew)
    program = chain(5, est_ns=1 << 40)
    for _ in range(3):
        np.testing.assert_array_equal(program(VALUES, n=COUNT)[0], VALUES + VALUES + 1)
    (first, _) = program.profile(VALUES, n=COUNT)
    assert first.threads == 5
    assert [span.lane for span in first.spans] == [0]


def test_more_workers_than_processors_leave_nothing_undone() -> None:
    program = chain(MAX_THREADS, est_ns=1 << 40)
    for _ in range(20):
        np.testing.assert_array_equal(program(VALUES, n=COUNT)[0], VALUES + VALUES + 1)


def test_the_result_of_a_network_is_the_same_on_any_number_of_threads() -> None:
    x, w = arrays()
    (alone,) = layers(1)(x, w)
    for threads in (2, 3, 16):
        program = layers(threads)
        assert max(item.threads for item in program.profile(x, w)) > 1
        for _ in range(10):
            np.testing.assert_array_equal(program(x, w)[0], alone)


def test_callers_at_the_same_time_each_get_their_own_result() -> None:
    x, w = arrays()
    program = layers(4)
    wanted = [program(x * scale, w)[0] for scale in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for scale, made in enumerate(pool.map(lambda turn: program(x * (turn % 4), w)[0], range(80))):
            np.testing.assert_array_equal(made, wanted[scale % 4])


def test_workers_take_no_signals_of_the_process() -> None:
    before = _threads()
    crew = Crew()
    crew.grow(3)
    started = _threads() - before
    assert len(started) == 2
    for thread in started:
        blocked = Path(f"/proc/self/task/{thread}/status").read_text().partition("SigBlk:")[2].split()[0]
        assert int(blocked, 16) & 1 << 1, "SIGINT is number 2"
    crew.keep_for_good()


def test_a_crew_grows_and_never_shrinks() -> None:
    crew = crew_of(2)
    assert crew_of(4) is crew
    before = _threads()
    crew_of(3)
    assert not _threads() - before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_workers_are_busy_has_workers_of_its_own() -> None:
    # The child must not need a lock that a thread of the parent holds.
    other, program = chain(3, est_ns=1 << 40), chain(3, est_ns=1 << 40)
    program(VALUES, n=COUNT)
    many = np.ones(1 << 22, np.float32)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(10):
            running = pool.submit(other, many, n=1 << 22)
            child = os.fork()
            if not child:
                if os.fork():  # a child of a child loses no count of the workers
                    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
                made = program(VALUES, n=COUNT)[0]
                has_workers = len(_threads()) >= 3
                os._exit(0 if has_workers and np.array_equal(made, VALUES + VALUES + 1) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            running.result()


def test_a_process_ends_while_its_workers_look_for_a_task() -> None:
    code = (
        "import numpy as np\nfrom tests.runtime.test_threads import chain\n"
        "chain(8, est_ns=1 << 40)(np.ones(60000, np.float32), n=60000)\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=120, check=False)
        assert ended.returncode == 0


def _threads() -> frozenset[str]:
    return frozenset(os.listdir("/proc/self/task"))
