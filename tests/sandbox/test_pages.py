"""A job finds the memory copied that those before it wrote to."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from service.sandbox.pages import Run, Trial, make_own

PAGE = mmap.PAGESIZE
PAGES = 256
WRITTEN = (*range(10, 20), 100, *range(200, 250))

Memory: TypeAlias = "tuple[mmap.mmap, int]"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Private memory that is there, and its address."""
    with mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        held.write(b"x" * len(held))
        address = ctypes.addressof(ctypes.c_char.from_buffer(held))
        yield held, address


def write(held: mmap.mmap) -> None:
    for page in WRITTEN:
        held[page * PAGE] = 0


def written_by(work: Callable[[], object]) -> tuple[Run, ...]:
    trial = Trial(work)
    while trial.hear():
        pass
    return trial.end()


def in_a_fork(work: Callable[[], int]) -> int:
    """What `work` comes to in a fork of this process, up to 255."""
    child = os.fork()
    if child == 0:
        try:
            status = min(work(), 255)
        except BaseException:
            status = 255
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def faults_of_writing(held: mmap.mmap) -> int:
    # The interpreter has memory of its own to copy when it does this for the first time in a fork.
    write(mmap.mmap(-1, PAGES * PAGE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    write(held)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_what_a_fork_writes_to_is_found_and_nothing_is_written_here(memory: Memory) -> None:
    held, address = memory
    found = [(begin - address, length) for begin, length in written_by(lambda: write(held)) if begin - address >= 0]
    pages = {
        page
        for begin, length in found
        if begin < PAGES * PAGE
        for page in range(begin // PAGE, (begin + length) // PAGE)
    }
    assert pages & set(range(PAGES)) == set(WRITTEN)
    assert held[:] == b"x" * len(held)


def test_memory_that_is_made_its_own_costs_a_process_no_fault(memory: Memory) -> None:
    held, address = memory
    runs = tuple((address + page * PAGE, PAGE) for page in WRITTEN)
    assert in_a_fork(lambda: faults_of_writing(held)) >= len(WRITTEN)

    def prepared() -> int:
        make_own(runs)
        return faults_of_writing(held)

    assert in_a_fork(prepared) < len(WRITTEN) / 4
    assert held[:] == b"x" * len(held)


def test_work_that_breaks_off_tells_nothing(memory: Memory) -> None:
    held, _ = memory

    def dies() -> None:
        write(held)
        os.kill(os.getpid(), signal.SIGKILL)

    assert written_by(dies) == ()
    assert written_by(lambda: 1 // 0) == ()


def test_memory_that_is_not_there_is_left_alone() -> None:
    assert in_a_fork(lambda: make_own([(PAGE, PAGE)]) or 0) == 0
