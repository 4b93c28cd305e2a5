"""Calls of kernels in which a fault ends the call instead of the process."""

from __future__ import annotations

import ctypes
import platform
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import llvmlite.binding as _llvm

llvm = cast(Any, _llvm)

MAX_CALLS: Final = 64
"""The most concurrent calls: the size of the table in trap.ll."""

_SIGNALS: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_SA_SIGINFO, _SA_ONSTACK, _SA_NODEFER = 0x4, 0x08000000, 0x40000000
_SI_KERNEL: Final = 0x80
"""The si_code of a fault without an address."""
SAYS_STORES: Final = platform.machine().lower() in ("x86_64", "amd64")
"""Whether this processor reports if a fault was a store."""
_STORE: Final = 2
"""The bit for a store in the error code of an x86 page fault."""


class _Action(ctypes.Structure):
    """`struct sigaction` of 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class _Call(ctypes.Structure):
    """`%call` of trap.ll."""

    _fields_ = (
        ("thread", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("error", ctypes.c_uint64),
        ("signal", ctypes.c_int32),
        ("code", ctypes.c_int32),
        ("jump", ctypes.c_uint64 * 64),
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """A signal that a kernel raised.

    `address` is None if the processor reports none: for a misaligned access or a non-canonical address. `is_store` is
    None if the processor does not report it.
    """

    signal: signal.Signals
    address: int | None
    is_store: bool | None


class Trap:
    """The compiled code of trap.ll, and its signal handlers."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        module = llvm.parse_assembly((Path(__file__).parent / "trap.ll").read_text())
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)
        self._guarded = prototype(self._engine.get_function_address("guarded"))
        self._calls = (_Call * MAX_CALLS).from_address(self._engine.get_global_value_address("calls"))
        self._previous = (_Action * 65).from_address(self._engine.get_global_value_address("previous"))
        flags = _SA_SIGINFO | _SA_ONSTACK | _SA_NODEFER
        self._action = _Action(handler=self._engine.get_function_address("caught"), flags=flags)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._lock = threading.Lock()

    @contextmanager
    def set(self) -> Generator[None]:
        """Install the signal handlers inside the block; one thread at a time."""
        with self._lock:
            for number in _SIGNALS:
                self._install(number, self._action, self._previous[number])
            try:
                yield
            finally:
                for number in _SIGNALS:
                    self._install(number, self._previous[number], None)

    def call(self, number: int, kernel: int, buffers: int, values: int, first: int, last: int) -> Fault | None:
        """Run work-groups of a kernel as the concurrent call `number`; returns the fault, None without one."""
        if not self._guarded(number, kernel, buffers, values, first, last):
            return None
        call = self._calls[number]
        raised = signal.Signals(call.signal)
        is_placed = raised in (signal.SIGSEGV, signal.SIGBUS) and call.code != _SI_KERNEL
        is_store = bool(call.error & _STORE) if is_placed and SAYS_STORES else None
        return Fault(raised, call.address if is_placed else None, is_store)

    def _install(self, number: int, action: _Action, previous: _Action | None) -> None:
        if self._libc.sigaction(number, ctypes.byref(action), None if previous is None else ctypes.byref(previous)):
            raise OSError(ctypes.get_errno(), f"sigaction of signal {number}")


@cache
def trap() -> Trap:
    """The process-wide trap."""
    return Trap()
