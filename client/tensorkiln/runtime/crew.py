"""Native threads that share the work-groups of kernels: started once per process, at the first kernel worth dividing.

LLVM compiles `crew.ll` then. A worker that finds nothing to do looks again for some tenths of a millisecond, and then
sleeps until the next task. Each worker begins with a range of its own, which is the same for equal tasks, and goes on
with what is left of the others' ranges; the calling thread does the same, so it never waits for a worker that has not
begun.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import threading
from typing import Any, Final

from ..errors import DeviceError
from .engine import engine_of_module

MAX_THREADS: Final = 64
SPINS: Final = 16000
"""How often a worker without a task looks for one before it sleeps: 0.1 to 0.6 ms."""
_CACHE_LINE: Final = 64
_MACHINES: Final = {"x86_64": ("@llvm.x86.sse2.pause()", 202, 24), "aarch64": ("@llvm.aarch64.hint(i32 1)", 98, 124)}
"""The instruction to wait for another thread, and the numbers of the system calls futex and sched_yield in Linux."""


class Task(ctypes.Structure):
    """A launch of a kernel on `workers` threads.

    `pointers` has the kernel's arguments for the first worker; those of each next one are `stride` bytes later. `edges`
    are `workers + 1` numbers of work-groups: the range of each worker begins at one and ends before the next. It is run
    in chunks of `chunk` work-groups. `times`, unless null, takes two numbers for each worker: when it began and ended.
    """

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("values", ctypes.c_void_p),
        ("workers", ctypes.c_int64),
        ("chunk", ctypes.c_int64),
        ("edges", ctypes.c_void_p),
        ("times", ctypes.c_void_p),
    )


class _Range(ctypes.Structure):
    """What is left of a worker's range, in a cache line of its own."""

    _fields_ = (("next", ctypes.c_int64), ("end", ctypes.c_int64), ("unused", ctypes.c_int64 * 6))


class _Crew(ctypes.Structure):
    """`busy` is 1 while a caller has the workers; `sequence` counts openings and closings of tasks."""

    _fields_ = (
        ("busy", ctypes.c_int64),
        ("sequence", ctypes.c_int32),
        ("sleepers", ctypes.c_int32),
        ("active", ctypes.c_int64),
        ("task", ctypes.c_void_p),
        ("syscall", ctypes.c_void_p),
        ("clock", ctypes.c_void_p),
        ("spins", ctypes.c_int64),
        ("ranges", _Range * MAX_THREADS),
    )


class _Seat(ctypes.Structure):
    _fields_ = (("crew", ctypes.c_void_p), ("worker", ctypes.c_int64))


class Crew:
    """Workers, which are threads of this process, and the memory that they and their caller share."""

    def __init__(self) -> None:
        machine = platform.machine().lower()
        if machine not in _MACHINES:
            raise DeviceError(f"kernels run on one thread on {machine}: pass threads=1")
        pause, futex, yields = _MACHINES[machine]
        constants = {"@PAUSE@": pause, "@FUTEX@": str(futex), "@YIELD@": str(yields)}
        self._engine = engine_of_module("crew.ll", constants)
        size = ctypes.sizeof(_Crew)
        self._memory = ctypes.create_string_buffer(size + _CACHE_LINE)
        start = -(-ctypes.addressof(self._memory) // _CACHE_LINE) * _CACHE_LINE
        state = _Crew.from_address(start)
        libc = ctypes.CDLL(None)
        state.syscall, state.clock = (
            ctypes.cast(each, ctypes.c_void_p).value for each in (libc.syscall, libc.clock_gettime)
        )
        state.spins = SPINS
        self._start_thread: Any = libc.pthread_create
        self._state = state
        self._seats: list[_Seat] = []
        self._lost = 0
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.code: Final[int] = self._engine.get_function_address("run")
        """The address of the function that runs tasks: it takes `address`, the first task, and their number."""
        self.address: Final = start
        self._run = run(self.code)

    def run(self, tasks: int, count: int) -> None:
        """Run `count` tasks from this address on. Where another caller has the workers, on the calling thread alone."""
        self.regain()
        self._run(ctypes.addressof(self._state), tasks, count)

    def regain(self) -> None:
        """Start the workers again that a fork has lost."""
        if self._lost:
            self.grow(self._lost + 1)

    def keep_for_good(self) -> None:
        """Never free it: workers run its code until the process ends, also while Python finalizes."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def grow(self, threads: int) -> None:
        """Start workers until there are `threads` with the calling thread, as far as the system allows."""
        with _lock:
            self._lost = 0
            while len(self._seats) < min(threads, MAX_THREADS) - 1:
                if not self._start_one():
                    return

    def lose_workers(self) -> None:
        """Forget the workers and the task that they may have been in."""
        self._lost, self._seats = max(self._lost, len(self._seats)), []
        state = self._state
        state.busy = state.sleepers = state.active = 0
        state.sequence += state.sequence & 1

    def _start_one(self) -> bool:
        seat = _Seat(ctypes.addressof(self._state), len(self._seats) + 1)
        # Kept from now on: the thread reads it.
        self._seats.append(seat)
        thread, work = ctypes.c_void_p(), ctypes.c_void_p(self._engine.get_function_address("work"))
        # Signals are for the threads of Python.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            status = self._start_thread(ctypes.byref(thread), None, work, ctypes.byref(seat))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if status:
            self._seats.pop()
        return not status


_lock = threading.Lock()
_crew: Crew | None = None


def crew_of(threads: int) -> Crew:
    """The crew of this process, with workers for so many threads. DeviceError on a machine that has no crew."""
    global _crew
    with _lock:
        if _crew is None:
            _crew = Crew()
            _crew.keep_for_good()
        crew = _crew
    crew.grow(threads)
    return crew


def _start_anew() -> None:
    """In a forked child, which has the crew's memory but none of its threads: start them again at the next task."""
    global _lock
    _lock = threading.Lock()
    if _crew is not None:
        _crew.lose_workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
