"""Compilers that fail: ways in which native code crashes, hangs and grows, and which graphs make it do so.

A graph says by the shape of one of its inputs how it fails, as `tests.service.failing` has it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, cast

from service.sandbox import frames
from service.sandbox.child import Outlet, Task
from service.sandbox.confine import MIB
from service.sandbox.frames import Message
from service.sandbox.tasks import TASKS
from tensorkiln.errors import DiagnosticError

from .failing import COMPILE, NAMES, READ, STAGE

_MARK: Final = re.compile(rb"\[\s*1,\s*2,\s*1,\s*2,\s*([12]),\s*(\d+),\s*(\d+)\s*\]")
"""The shape of the input: what fails, how, and a number that makes the graph another."""


def fail(name: str, outlet: Outlet) -> None:
    """Fail in the way that has this name; most do not return."""
    outlet.stage(STAGE)
    FAILURES[name](outlet)


def install() -> None:
    """Have the compiler of this process, and what reads its requests, fail as graphs say; and a job `fail` by name."""
    jobs = cast(dict[str, Task], TASKS)

    def heeding(what: int, honest: Task) -> Task:
        def job(request: Message, outlet: Outlet) -> Message:
            for content in request.parts.values():
                for found in _MARK.finditer(content):
                    if int(found[1]) == what:
                        fail(NAMES[int(found[2]) - 1], outlet)
            return honest(request, outlet)

        return job

    def failed(request: Message, outlet: Outlet) -> Message:
        fail(request.header["how"], outlet)
        return Message()

    jobs["fail"] = failed
    for kind in ("compile", "tune"):
        jobs[kind] = heeding(COMPILE, jobs[kind])
    jobs["prepare"] = heeding(READ, jobs["prepare"])


def segfault(outlet: Outlet) -> None:
    ctypes.string_at(0)


def illegal_instruction(outlet: Outlet) -> None:
    """Machine code whose first instruction is defined to be none: ud2, or udf."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x0f\x0b" if platform.machine() == "x86_64" else bytes(4))
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


def bus_error(outlet: Outlet) -> None:
    """A page of a file that has been cut off."""
    with Path("cut").open("w+b") as file:
        file.truncate(mmap.PAGESIZE)
        pages = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        pages.read(1)


def spin(outlet: Outlet) -> None:
    """A native loop without end that keeps the interpreter's lock: a jump to itself."""
    spin = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    spin.write(b"\xeb\xfe" if platform.machine() == "x86_64" else b"\x00\x00\x00\x14")
    ctypes.PYFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(spin)))()


def eat_memory(outlet: Outlet) -> NoReturn:
    held: list[bytearray] = []
    while True:
        held.append(bytearray(16 * MIB))


def eat_8_gib(outlet: Outlet) -> NoReturn:
    """Page by page, as a graph that grows does."""
    held = [bytearray(MIB) for _ in range(8 << 10)]
    raise AssertionError(f"the process has {len(held)} MiB")


def eat_native_memory(outlet: Outlet) -> NoReturn:
    """operator new, whose std::bad_alloc nobody catches."""
    allocate = ctypes.CDLL("libstdc++.so.6")._Znwm
    allocate.argtypes = [ctypes.c_size_t]
    while True:
        allocate(64 * MIB)


def overflow_stack(outlet: Outlet) -> None:
    """qsort whose comparison sorts again, all on the C stack."""
    libc = ctypes.PyDLL(None)
    items = (ctypes.c_int * 2)(1, 2)
    comparison = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    callback = comparison(lambda _left, _right: libc.qsort(items, 2, 4, callback) or 0)
    sys.setrecursionlimit(1 << 30)
    libc.qsort(items, 2, 4, callback)


def output(outlet: Outlet) -> NoReturn:
    chunk = bytes(MIB)
    number = 0
    while True:
        outlet.raw(*frames.encode_part(str(number), chunk))
        number += 1


def stderr(outlet: Outlet) -> NoReturn:
    for _ in range(1024):
        os.write(2, b"x" * (64 << 10))
    os.write(2, b"the last words")
    os.abort()


def close_socket(outlet: Outlet) -> None:
    """And go on, so that the end of the process does not tell."""
    os.closerange(3, 64)
    ctypes.PyDLL(None).pause()


def big_file(outlet: Outlet) -> NoReturn:
    with Path("big").open("wb") as file:
        while True:
            file.write(bytes(MIB))


def many_files(outlet: Outlet) -> NoReturn:
    """None above its limit, but more than a process may have, where files are memory."""
    number = 0
    while True:
        Path(str(number)).write_bytes(bytes(MIB))
        number += 1


def refuse(outlet: Outlet) -> NoReturn:
    """What a pass does that cannot lower the third node of the canonical graph."""
    raise DiagnosticError("The compiler refuses /nodes/2.", pointers=["/nodes/2/in_var"], details={"stage": STAGE})


def few_operations(outlet: Outlet) -> None:
    """The compile that follows reaches the limit of its module's operations, which no small graph does."""
    from passes import boundary

    boundary.__dict__["MAX_OPERATIONS"] = 20


def garble(outlet: Outlet, answer: bytes) -> NoReturn:
    outlet.raw(answer)
    os._exit(0)


PROBLEM: Final = {"code": "infra.unavailable", "details": 3}
"""One that is the service's, not the request's, with details that are none."""
SHORT: Final[dict[str, Callable[[Outlet], object]]] = {
    "abort": lambda outlet: os.abort(),
    # A C++ exception that nobody catches.
    "throw": lambda outlet: ctypes.PyDLL("libstdc++.so.6")._ZSt21__throw_runtime_errorPKc(b"thrown on purpose"),
    # PyDLL keeps the interpreter's lock, as a pass manager does: nothing in Python can interrupt it.
    "hang": lambda outlet: ctypes.PyDLL(None).pause(),
    "exit": lambda outlet: os._exit(3),
    "stop": lambda outlet: os.kill(os.getpid(), signal.SIGSTOP),
    "garbage": lambda outlet: garble(outlet, b"\xff" * 64),
    "garbled_json": lambda outlet: garble(outlet, frames.encode(frames.DONE, b"[" * 100_000)),
    "garbled_error": lambda outlet: garble(outlet, frames.encode_json(frames.FAILED, PROBLEM)),
    "half_a_frame": lambda outlet: garble(outlet, frames.encode(frames.PART, bytes(64))[:32]),
}
FAILURES: Final = {name: SHORT.get(name) or globals()[name] for name in NAMES}
