"""The runtime's own code: LLVM IR beside this file, compiled for the host once a process."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import llvmlite.binding as _llvm

from .errors import UnsupportedKernel

MAX_THREADS: Final = 1024
"""Threads of a block: CUDA's limit, and the size of the runtime's tables."""

llvm = cast(Any, _llvm)

_SWITCHES: Final = {"x86_64": "switch_x86_64.ll", "amd64": "switch_x86_64.ll"}
_PARTS: Final = (
    "state.ll",
    "grid.ll",
    "order.ll",
    "shared.ll",
    "weave.ll",
    "barrier.ll",
    "warp.ll",
    "collective.ll",
    "watch.ll",
    "race.ll",
    "notes.ll",
)


_INEXACT: Final = frozenset({"avx512bf16", "avxneconvert"})
"""Their conversions to bfloat16 flush subnormal numbers to zero (Intel SDM, VCVTNEPS2BF16), which a GPU's do not."""


class Thread(ctypes.Structure):
    """`%thread` of state.ll."""

    _fields_ = (
        ("stack", ctypes.c_void_p),
        ("status", ctypes.c_uint32),
        ("site", ctypes.c_int32),
        ("operation", ctypes.c_uint32),
        ("group", ctypes.c_uint32),
        ("operand", ctypes.c_uint32),
        ("clamp", ctypes.c_uint32),
        ("value", ctypes.c_uint32),
        ("result", ctypes.c_uint64),
        ("last_collective", ctypes.c_uint32),
        ("last_barrier", ctypes.c_uint32),
        ("unused", ctypes.c_uint64),
    )


class Launch(ctypes.Structure):
    """`%launch` of state.ll."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("stacks", ctypes.c_void_p),
        ("stack_bytes", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("shared", ctypes.c_void_p),
        ("shared_count", ctypes.c_uint64),
        ("threads", ctypes.c_uint32),
        ("suspends", ctypes.c_uint32),
        ("block", ctypes.c_uint32 * 3),
        ("grid", ctypes.c_uint32 * 3),
    )


class SharedArray(ctypes.Structure):
    """`%shared` of state.ll."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_uint64))


class Report(ctypes.Structure):
    """`%report` of state.ll."""

    _fields_ = (
        ("code", ctypes.c_uint32),
        ("site", ctypes.c_int32),
        ("thread", ctypes.c_uint32),
        ("other", ctypes.c_uint32),
        ("block", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


class Native:
    """The compiled runtime: its addresses, and what it left behind after a launch.

    It keeps one launch's state in globals, so launches take turns; see `launch.py`.
    """

    def __init__(self, text: str) -> None:
        machine = host_machine()
        module = llvm.parse_assembly(text)
        module.verify()
        optimise(module, machine, 2)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.POINTER(Launch), ctypes.c_uint64)
        self._run = prototype(self.address("simt_run"))
        self.threads = (Thread * MAX_THREADS).from_address(self.address("threads"))
        self.report = Report.from_address(self.address("report"))

    def address(self, name: str) -> int:
        """The address of a function or a variable of the runtime."""
        return cast(int, self._engine.get_global_value_address(name) or self._engine.get_function_address(name))

    def word(self, name: str) -> ctypes.c_uint64:
        """A 64-bit variable of the runtime."""
        return ctypes.c_uint64.from_address(self.address(name))

    def run(self, launch: Launch, seed: int) -> int:
        """The report's code, 0 for a launch that ran to its end. `seed` is any non-zero 64-bit number."""
        return self._run(ctypes.byref(launch), seed)


def host_machine(level: int = 2) -> Any:
    """A new target machine for this processor, as an execution engine keeps its own; `level` is LLVM's, from 0."""
    target, name, features = _host()
    return target.create_target_machine(cpu=name, features=features, opt=level, jit=True)


@cache
def _host() -> tuple[Any, str, str]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features: Mapping[str, bool] = llvm.get_host_cpu_features()
    usable = {name: present and name not in _INEXACT for name, present in features.items()}
    text = ",".join(f"{'+' if present else '-'}{name}" for name, present in sorted(usable.items()))
    return llvm.Target.from_default_triple(), llvm.get_host_cpu_name(), text


def optimise(module: Any, machine: Any, level: int) -> None:
    """LLVM's standard pipeline of that level, in place."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(module, builder)


def unsupported_host() -> str:
    """Why the emulator cannot run on this host; empty when it can."""
    host = platform.machine().lower()
    return "" if host in _SWITCHES else f"the emulator switches stacks on x86-64 only and this host is {host}"


@cache
def native() -> Native:
    """The runtime of this process. UnsupportedKernel where `unsupported_host` has a reason."""
    reason, host = unsupported_host(), platform.machine().lower()
    if reason:
        raise UnsupportedKernel(reason)
    return Native("\n".join(runtime_text(part) for part in (*_PARTS, _SWITCHES[host])))


def runtime_text(part: str) -> str:
    """A file of the runtime."""
    return (Path(__file__).parent / "runtime" / part).read_text()
